"""Points at which a process kills itself: before and after each durable operation.

A durable operation is a call that changes what a store holds on disk: creating, writing,
syncing, renaming or removing a file under its folder, and every SQL statement but a query.
The calls are counted in the order in which they come; number N of them is where the
process dies, the hard way.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

When = Literal["before", "after"]

BY_PATH = ("mkdir", "link", "symlink", "rename", "replace", "unlink", "remove", "rmdir")
BY_HANDLE = (
    "write", "pwrite", "writev", "pwritev", "fsync", "fdatasync", "ftruncate",
    "posix_fallocate", "copy_file_range",
)  # fmt: skip
QUERIES = ("SELECT", "PRAGMA", "EXPLAIN")


@dataclass
class Points:
    """Counts the durable operations of a store, and dies at one of them.

    Parameters
    ----------
    store : Path
        Folder of the store.
    log : int
        File descriptor to which each point's label is written.
    number : int, optional
        The point to die at, from 1; 0: none.
    when : {"before", "after"}, optional
        On which side of the operation.
    by : int, optional
        The signal; one that stops lets the process be continued.
    commits_only : bool, optional
        Whether a transaction passes one point, its commit: a process that dies before
        it leaves the same behind, wherever it was.

    Attributes
    ----------
    is_on : bool
        Whether points are counted.
    """

    store: Path
    log: int
    number: int = 0
    when: When = "before"
    by: int = signal.SIGKILL
    commits_only: bool = False
    is_on: bool = True
    count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _write: Callable[[int, bytes], int] = os.write

    @contextmanager
    def passing(self, label: str) -> Iterator[None]:
        """Pass one point."""
        if not self.is_on:
            yield
            return
        with self._lock:
            self.count += 1
            here = self.count == self.number
            self._write(self.log, f"{label}\n".encode())
        if here and self.when == "before":
            self._end()
        yield
        if here and self.when == "after":
            self._end()

    def _end(self) -> None:
        """End or stop this process here: a signal to all of it lets a thread run on."""
        signal.pthread_kill(threading.get_ident(), self.by)

    def label(self, path: str) -> str | None:
        """Return what kind of file of the store a path is; None if it is elsewhere."""
        try:
            inside = Path(os.path.abspath(path)).relative_to(self.store)  # noqa: PTH100
        except ValueError:
            return None
        parts = inside.parts or (".",)
        return "/".join((*parts[:-1][:1], parts[-1].rpartition(".")[2] or parts[-1]))


def install(points: Points) -> None:
    """Put the points around the calls of this process, for good.

    Parameters
    ----------
    points : Points
        The counter.
    """
    plant(os, **{name: _by_path(points, name, getattr(os, name)) for name in BY_PATH})
    plant(
        os, **{name: _by_handle(points, name, getattr(os, name)) for name in BY_HANDLE}
    )
    plant(os, open=_creating(points, os.open))
    plant(sqlite3, connect=_connecting(points, sqlite3.connect))


def plant(owner: object, **calls: object) -> None:
    """Put calls in place of those of a module or class, for good.

    Parameters
    ----------
    owner : object
        The module or class.
    **calls
        Name and new call.
    """
    for name, call in calls.items():
        setattr(owner, name, call)


def _by_path(points: Points, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that passes a point if its path lies in the store."""

    def wrapped(path: Any, *args: Any, **options: Any) -> Any:
        label = None if isinstance(path, int) else points.label(os.fsdecode(path))
        if label is None:
            return call(path, *args, **options)
        with points.passing(f"{name} {label}"):
            return call(path, *args, **options)

    return wrapped


def _by_handle(
    points: Points, name: str, call: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a call that passes a point if its file lies in the store."""

    def wrapped(handle: int, *args: Any, **options: Any) -> Any:
        try:
            label = points.label(str(Path(f"/proc/self/fd/{handle}").readlink()))
        except OSError:
            label = None
        if label is None:
            return call(handle, *args, **options)
        with points.passing(f"{name} {label}"):
            return call(handle, *args, **options)

    return wrapped


def _creating(points: Points, call: Callable[..., int]) -> Callable[..., int]:
    """Return `os.open`, passing a point if it makes a file in the store."""

    def wrapped(path: Any, flags: int, *args: Any, **options: Any) -> int:
        makes = flags & os.O_CREAT and not isinstance(path, int)
        label = points.label(os.fsdecode(path)) if makes else None
        if label is None:
            return call(path, flags, *args, **options)
        with points.passing(f"create {label}"):
            return call(path, flags, *args, **options)

    return wrapped


def _connecting(points: Points, call: Callable[..., Any]) -> Callable[..., Any]:
    """Return `sqlite3.connect`, whose connections to the store pass points."""

    class Counted(sqlite3.Connection):
        """A connection whose statements pass points."""

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            verb = sql.split(None, 1)[0].upper().rstrip(";")
            is_query = verb in QUERIES and "journal_mode" not in sql
            if is_query or self._is_within(verb):
                return super().execute(sql, *args)
            with points.passing(f"sql {verb}"):
                return super().execute(sql, *args)

        def _is_within(self, verb: str) -> bool:
            """Tell whether a statement is a part of a transaction that is one point."""
            is_part = verb == "BEGIN" or self.in_transaction
            return points.commits_only and is_part and verb != "COMMIT"

        def commit(self) -> None:
            with points.passing("sql COMMIT"):
                super().commit()

    def wrapped(database: Any, *args: Any, **options: Any) -> Any:
        if points.label(os.fsdecode(database)) is None:
            return call(database, *args, **options)
        return call(database, *args, **{"factory": Counted, **options})

    return wrapped
