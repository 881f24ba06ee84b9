"""What is stored of the Git worktree that a run works in."""

from __future__ import annotations

from dataclasses import dataclass

from nbckpt.records.base import Record


@dataclass(frozen=True, slots=True)
class Worktree(Record):
    """A Git worktree as a step found it."""

    path: str = ""
    """Its top folder; empty: of another machine, and not compared."""
    branch: str = ""
    """Empty: a commit was checked out without a branch."""
    commit: str = ""
    """Empty: none yet, or it could not be told."""
    changed: tuple[str, ...] | None = None
    """Tracked files that differ from the commit, the first of them; None: not known."""
