"""Which notebook a kernel runs, and what its user asked for."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadStep

if TYPE_CHECKING:
    from nbckpt.records import Overlap


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for before the first step."""

    run_id: str = ""
    version: str = ""
    overlap: Overlap = "skip"
    fresh: bool = False
    store: str = ""
    stop_on_redo: bool = False


def wish_of_environment() -> Wish:
    """Return what the environment asks for, as ``nbckpt run`` sets it.

    Returns
    -------
    Wish
        Without a store: the notebook's folder counts for that.

    Raises
    ------
    BadStep
        If there is no such overlap policy.
    """
    return Wish(
        run_id=os.environ.get("NBCKPT_RUN_ID", ""),
        version=os.environ.get("NBCKPT_VERSION", ""),
        overlap=read_overlap(os.environ.get("NBCKPT_OVERLAP", "skip")),
        stop_on_redo=bool(os.environ.get("NBCKPT_STOP_ON_REDO")),
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Which notebook a kernel runs."""

    base: Path
    """Folder that relative paths are told from."""
    notebook: Path | None = None

    @property
    def stem(self) -> str:
        """The notebook's name without its ending."""
        return self.notebook.stem if self.notebook else "notebook"


def identify(namespace: dict[str, Any]) -> Identity:
    """Return which notebook this kernel runs.

    Parameters
    ----------
    namespace : dict
        The shell's names; VS Code leaves the path there.

    Returns
    -------
    Identity
        Without a notebook if nothing tells; the folder is then the kernel's.
    """
    told = [os.environ.get("NBCKPT_NOTEBOOK"), namespace.get("__vsc_ipynb_file__")]
    told.append(os.environ.get("JPY_SESSION_NAME"))
    for name in told:
        path = Path(str(name)).absolute() if name else None
        if path is not None and path.is_file():
            return Identity(path.parent, path)
    return Identity(Path.cwd())


def read_overlap(text: str) -> Overlap:
    """Return an overlap policy, or say which ones there are."""
    if text not in {"skip", "replace", "concurrent"}:
        raise BadStep(
            f"{text!r} is no overlap policy", "Choose skip, replace or concurrent"
        )
    return text  # type: ignore[return-value]


def cell_id(shell: Any) -> str:
    """Return the front end's id of the running cell; empty if it tells none."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    metadata = (parent or {}).get("metadata") or {}
    return str(metadata.get("cellId", ""))
