"""The working folder: where the relative paths of a step are told from.

A kernel may begin anywhere, and a project may move. So the folder is known by the way to
it from where the kernel began, and by the way from the notebook: one that is as it was
is enough.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbckpt.inputs.passes import Passes

FOLDER = "working folder"
ASKING = {"getcwd", "cwd", "abspath", "realpath", "resolve"}
"""Last names of calls whose value holds the working folder."""


def here() -> str:
    """Return the working folder; the root if it is not there any more."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return os.sep


class WorkingFolder:
    """Where a kernel works, told so that it can be compared between kernels.

    Parameters
    ----------
    base : Path
        The notebook's folder.
    passes : Passes
        Where an earlier pass of this kernel ended.
    """

    def __init__(self, base: Path, passes: Passes) -> None:
        self._base = base
        self._passes = passes
        self._began = here()

    def standing(self) -> dict[str, str]:
        """Return where the kernel works, as a part of what outlives a pass."""
        return {FOLDER: here()}

    def gone(self, around: dict[str, Any]) -> str:
        """Return why a step that went to a folder can't be skipped; empty if it can."""
        folder = around.get("folder", ".")
        is_there = (self._base / folder).is_dir()
        return "" if is_there else f"the folder {folder!r} that it went to is gone"

    def ways(self, folder: str) -> tuple[str, ...]:
        """Return the ways to a folder: from where the kernel began, from the notebook."""
        return tuple(os.path.relpath(folder, x) for x in (self._began, self._base))

    def compared(self, recorded: tuple[str, ...]) -> tuple[str, ...]:
        """Return the ways to the folder as they compare with recorded ones.

        Parameters
        ----------
        recorded : tuple of str
            As of `ways`; empty if the step has used no relative path.

        Returns
        -------
        tuple of str
            The recorded ones if no cell of this pass went elsewhere.
        """
        now = here()
        return (
            self.ways(now)
            if recorded and now != self._passes.ended.get(FOLDER)
            else recorded
        )
