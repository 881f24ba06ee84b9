"""Files that stood still while a step read them, and those that somebody changed.

A file is told by its content once the body has ended. Changed by another process after
the step had opened it, that would be the content of a file that the step never saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nbckpt.inputs.proofs import Paths

Stamp = tuple[int, int, int]


@dataclass(slots=True)
class StillFiles:
    """Files as a step opened them last."""

    stamps: dict[str, Stamp] = field(default_factory=dict)
    has_children: bool = False
    """Whether the step started processes: what these change is its own doing."""

    def note(self, name: str, path: Path) -> None:
        """Note a file that is opened now, once more or for the first time."""
        stamp = _stamp(path)
        if stamp is not None:
            self.stamps[name] = stamp

    def changed(self, paths: Paths, own: Iterable[str]) -> list[str]:
        """Return the files that are not as they were when they were opened last.

        Parameters
        ----------
        paths : Paths
            Names of files.
        own : iterable of str
            Files that the step changes itself.

        Returns
        -------
        list of str
            Names; none if the step started processes, which may have done it. A file
            that is gone is told as gone elsewhere.
        """
        if self.has_children:
            return []
        names = sorted(self.stamps.keys() - set(own))
        now = {name: _stamp(paths.locate(name)) for name in names}
        return [n for n in names if now[n] not in (None, self.stamps[n])]


def _stamp(path: Path) -> Stamp | None:
    """Return what changes with a file's content; None if there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
