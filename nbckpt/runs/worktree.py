"""The Git worktree of a notebook: read at each step that runs, compared on resume.

Branch and commit are read from Git's own files, which costs microseconds; only the list
of changed files needs ``git status``, and only when a body runs. Git is never needed: what
it can't tell is left out, and no step fails for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.errors import StopForHuman
from nbckpt.records import Event, Worktree
from nbckpt.runs.lines import add_line

if TYPE_CHECKING:
    from nbckpt.runs.journal import Journal
    from nbckpt.store import Store, Transaction

SHOWN = 50
"""Changed files that are named in a record."""
SECONDS = 5.0
"""What ``git status`` may take; a worktree for which that is too little is not listed."""
SHARE = 10
"""The list may be as old as this many times what it took: a tenth of the time at most."""
REF = "ref: "
HEADS = "refs/heads/"
STATUS = (
    "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "status",
    "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames",
    "--ignore-submodules=dirty",
)  # fmt: skip


def read(folder: Path) -> Worktree | None:
    """Return the worktree that a folder lies in, without its changed files.

    Parameters
    ----------
    folder : Path
        Any folder.

    Returns
    -------
    Worktree or None
        None if it lies in none, or Git's files can't be read.
    """
    top = next((p for p in (folder, *folder.parents) if (p / ".git").exists()), None)
    if top is None:
        return None
    try:
        inner = _inner(top)
        head = _text(inner / "HEAD")
        if not head.startswith(REF):
            return Worktree(str(top), "", head)
        ref = head.removeprefix(REF)
        return Worktree(str(top), ref.removeprefix(HEADS), _commit(inner, ref))
    except (OSError, UnicodeError, ValueError):
        return None


def _inner(top: Path) -> Path:
    """Return where Git keeps what belongs to a worktree."""
    mark = top / ".git"
    if mark.is_dir():
        return mark
    return top / _text(mark).removeprefix("gitdir: ")


def _text(path: Path) -> str:
    """Return a small file's text."""
    return path.read_text("utf-8").strip()


def _commit(inner: Path, ref: str) -> str:
    """Return the commit of a branch; empty if it has none, or it lies elsewhere."""
    shared = inner / "commondir"
    common = inner / _text(shared) if shared.exists() else inner
    loose = common / ref
    if loose.is_file():
        return _text(loose)
    packed = common / "packed-refs"
    rows = _text(packed).splitlines() if packed.exists() else []
    return next((row.split()[0] for row in rows if row.endswith(f" {ref}")), "")


def changed_files(top: Path) -> tuple[str, ...] | None:
    """Return the tracked files that differ from the commit.

    Parameters
    ----------
    top : Path
        Top folder of a worktree.

    Returns
    -------
    tuple of str or None
        None if Git is missing, slow or does not answer.
    """
    told = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            STATUS, cwd=top, env=told, capture_output=True, check=True, timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    names = done.stdout.decode("utf-8", "replace").split("\0")
    return tuple(sorted(name[3:] for name in names if name))


@dataclass(frozen=True, slots=True)
class Difference:
    """How a worktree differs from the one that a run was in."""

    stop: str = ""
    """Why a person must say whether to go on."""
    told: str = ""
    """What is only told."""


def compare(before: Worktree, now: Worktree | None) -> Difference:
    """Say how a worktree differs from the one that a run was in.

    Parameters
    ----------
    before : Worktree
        As it was recorded.
    now : Worktree or None
        As it is.

    Returns
    -------
    Difference
        Another worktree or branch stops; another commit, or other changed files, are
        told.
    """
    if now is None and not before.path:
        return Difference()
    if now is None:
        return Difference(f"it was in the worktree {before.path}, and this is none")
    if before.path and before.path != now.path:
        return Difference(f"it was in the worktree {before.path}, this is {now.path}")
    if before.branch != now.branch:
        return Difference(
            f"it was on {checked_out(before)}, this is {checked_out(now)}"
        )
    return Difference(told="; ".join([*_commits(before, now), *_changes(before, now)]))


def checked_out(worktree: Worktree) -> str:
    """Return what is checked out in a worktree, for messages.

    Parameters
    ----------
    worktree : Worktree
        Any.

    Returns
    -------
    str
        The branch, or the commit without one.
    """
    if worktree.branch:
        return f"branch {worktree.branch}"
    return f"commit {worktree.commit[:12]} without a branch"


def _commits(before: Worktree, now: Worktree) -> list[str]:
    """Say whether the commit is another."""
    if before.commit == now.commit:
        return []
    one, other = (tree.commit[:12] or "none" for tree in (before, now))
    return [f"commit {other}, was {one}"]


def _changes(before: Worktree, now: Worktree) -> list[str]:
    """Say which tracked files are changed that were not, and the other way round."""
    if before.changed is None or now.changed is None:
        return []
    more = sorted({*now.changed} - {*before.changed})
    fewer = sorted({*before.changed} - {*now.changed})
    found = [f"changed since: {', '.join(more[:5])}"] if more else []
    return [*found, f"no longer changed: {', '.join(fewer[:5])}"] if fewer else found


def recorded(store: Store, run_id: str) -> Worktree | None:
    """Return the worktree that a run was in last.

    Parameters
    ----------
    store : Store
        Any store.
    run_id : str
        The run.

    Returns
    -------
    Worktree or None
        None if it was in none.
    """
    found = store.get(f"worktree/{run_id}")
    return Worktree.from_json(found) if found else None


class WorktreeWatch:
    """The worktree that a held run works in.

    Parameters
    ----------
    store : Store
        The user's own store.
    run_id : str
        The run.
    base : Path
        The notebook's folder.

    Raises
    ------
    StopForHuman
        If the run was in another worktree, or on another branch.
    """

    def __init__(self, store: Store, run_id: str, base: Path) -> None:
        self._base = base
        self._listed: tuple[str, ...] | None = None
        self._until = 0.0
        self._last = recorded(store, run_id)
        self._told = ""
        if self._last is None:
            return
        difference = compare(self._last, self.look())
        if difference.stop:
            event = Event(time.time(), "stopped", "", difference.stop)
            store.transact(lambda tx: add_line(tx, run_id, event))
            raise StopForHuman(
                f"run {run_id}: {difference.stop}",
                "Go there and run the notebook again; or say that this one counts: "
                f"%nbckpt accept --worktree, or nbckpt accept {run_id} --worktree",
            )
        self._told = difference.told

    def look(self) -> Worktree | None:
        """Return the worktree as it is, with its changed files."""
        found = read(self._base)
        if found is None:
            return None
        if time.monotonic() >= self._until:
            begun = time.monotonic()
            self._listed = changed_files(Path(found.path))
            took = time.monotonic() - begun
            self._until = time.monotonic() + SHARE * took
        listed = self._listed[:SHOWN] if self._listed is not None else None
        return replace(found, changed=listed)

    def enter(self, journal: Journal) -> None:
        """Record where a run is that was just taken, and tell what changed meanwhile.

        Parameters
        ----------
        journal : Journal
            The run's memory.
        """
        if self._told:
            sys.stderr.write(f"nbckpt: run {journal.run_id}: {self._told}\n")
        now = self.look()
        if now is not None and now != self._last:
            journal.write(lambda tx: put(tx, journal.run_id, now, self._told))
            self._last = now


def put(
    transaction: Transaction, run_id: str, worktree: Worktree | None, reason: str
) -> None:
    """Record the worktree that a run is in, with a line in its history.

    Parameters
    ----------
    transaction : Transaction
        Any transaction.
    run_id : str
        The run.
    worktree : Worktree or None
        None: in none, and nothing is compared until it is in one.
    reason : str
        What is told of it.
    """
    key, detail = f"worktree/{run_id}", worktree.to_json() if worktree else {}
    if worktree is None:
        transaction.delete(key)
    else:
        transaction.put(key, detail)
    event = Event(time.time(), "worktree", "", reason, detail=detail)
    add_line(transaction, run_id, event)
