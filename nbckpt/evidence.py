"""Files as evidence: which ones a step touched, and whether they are as it left them.

Files that Python opens, renames or removes are noticed through the interpreter's audit
events (PEP 578). Native readers and child processes can't be seen: ``--reads`` and
``--writes`` are the contract for them. Content alone counts, never time stamps.
"""

from __future__ import annotations

import glob
import os
import stat
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

from nbckpt.errors import CheckFailed
from nbckpt.records import Attempt, StepRecord

ABSENT = ""
"""Stands in place of a digest for a file that must not exist."""
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
IGNORED = ("/dev", "/proc", "/sys", "/run")
HOME_IGNORED = (".cache", ".config", ".ipython", ".jupyter", ".local", ".matplotlib")


class Paths:
    """Names of files relative to the notebook, and back.

    Parameters
    ----------
    base : Path
        The notebook's folder.
    """

    def __init__(self, base: Path) -> None:
        self.base = Path(os.path.abspath(base))  # noqa: PTH100 - symlinks stay

    def name(self, path: str) -> str:
        """Return how a record names a file: relative if it lies below the notebook."""
        full = os.path.abspath(path)  # noqa: PTH100 - symlinks stay
        inside = full.startswith(f"{self.base}{os.sep}")
        return os.path.relpath(full, self.base) if inside else full

    def locate(self, name: str) -> Path:
        """Return where a file lies that a record names."""
        return self.base / name

    def expand(self, patterns: Iterable[str]) -> list[str]:
        """Return the names of the files that globs mean now, in order."""
        found = set()
        for pattern in patterns:
            where = str(self.base / Path(pattern).expanduser())
            matches = glob.glob(where, recursive=True)  # noqa: PTH207 - absolute patterns
            found |= {self.name(path) for path in matches if Path(path).is_file()}
        return sorted(found)

    def digest(self, name: str) -> str:
        """Return the digest of a file's content; `ABSENT` if there is no such file."""
        path = self.locate(name)
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return ABSENT
            total = blake3(max_threads=blake3.AUTO)
            return str(total.update_mmap(path).hexdigest()[:32])
        except (FileNotFoundError, NotADirectoryError):
            return ABSENT
        except OSError as error:
            return f"unreadable: {error}"


@dataclass(slots=True)
class Touched:
    """Files that a step touched, by name."""

    read: dict[str, str] = field(default_factory=dict)
    """Name → digest before the step changed it; empty: not changed by the step."""
    written: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    """Written ones that stood before the step."""


class Watch:
    """Notices the files that this process touches while a step runs.

    Parameters
    ----------
    paths : Paths
        Names of files.
    store : Path
        Folder that is never noticed.
    claim : callable
        Called with a file's name before it is changed for the first time.
    """

    def __init__(self, paths: Paths, store: Path, claim: Callable[[str], None]) -> None:
        self._paths = paths
        self._claim = claim
        self._ignored = _ignored_folders(store)
        self._pid = os.getpid()
        self._busy = threading.local()
        self.touched = Touched()

    def start(self) -> None:
        """Begin to notice."""
        if _audit not in _installed:
            sys.addaudithook(_audit)
            _installed.append(_audit)
        _active[:] = [self]

    def stop(self) -> Touched:
        """End, and return what was noticed."""
        _active.clear()
        return self.touched

    def notice(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take one audit event.

        Parameters
        ----------
        event : str
            Its name.
        arguments : tuple
            As PEP 578 gives them.
        """
        if os.getpid() != self._pid or getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            for path, changes, reads in _files_in(event, arguments):
                self._touch(path, changes=changes, reads=reads)
        finally:
            self._busy.now = False

    def _touch(self, path: str, *, changes: bool, reads: bool) -> None:
        """Note one file."""
        full = os.path.abspath(path)  # noqa: PTH100 - symlinks stay
        if full.startswith(self._ignored) or "/__pycache__/" in full:
            return
        name = self._paths.name(full)
        touched = self.touched
        if name in touched.written:
            return
        if reads and Path(full).is_file():
            touched.read.setdefault(name, "")
        if changes:
            if touched.read.get(name) == "":
                # Taken now, before the first change: later it would be our own content.
                touched.read[name] = self._paths.digest(name)
            if Path(full).exists():
                touched.removed.add(name)
            self._claim(name)
            touched.written.add(name)


_active: list[Watch] = []
_installed: list[Any] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Hand an event to the watch that is on."""
    if _active and event in _EVENTS:
        _active[0].notice(event, arguments)


_EVENTS = {"open", "os.rename", "os.remove", "os.truncate", "os.link", "os.symlink"}


def _files_in(
    event: str, arguments: tuple[Any, ...]
) -> Iterable[tuple[str, bool, bool]]:
    """Yield path, whether it is changed, whether it is read, for an audit event."""
    if event == "open":
        path, mode, flags = arguments
        if _is_path(path):
            yield os.fsdecode(path), *_open_mode(mode, flags)
    elif event == "os.rename":
        source, target, *folders = arguments
        if _is_path(source) and _is_path(target) and Path(os.fsdecode(source)).is_file():
            yield _in_folder(source, folders[0]), True, False
            yield _in_folder(target, folders[1]), True, False
    elif event in {"os.remove", "os.truncate"}:
        path, *folders = arguments
        if _is_path(path):
            folder = folders[0] if event == "os.remove" else -1
            yield _in_folder(path, folder), True, event == "os.truncate"
    elif _is_path(arguments[1]):
        yield os.fsdecode(arguments[1]), True, False


def _is_path(value: object) -> bool:
    """Tell whether an event names a path; numbers are open files."""
    return isinstance(value, (str, bytes, os.PathLike))


def _in_folder(path: Any, folder: int) -> str:
    """Return a path that is relative to an open folder."""
    if folder is None or folder < 0:
        return os.fsdecode(path)
    return str(Path(f"/proc/self/fd/{folder}").readlink() / os.fsdecode(path))


def _open_mode(mode: str | None, flags: int) -> tuple[bool, bool]:
    """Return whether an open changes and whether it reads the content."""
    if mode is not None:
        changes = any(letter in mode for letter in "wax+")
        return changes, "w" not in mode and "x" not in mode
    changes = bool(flags & WRITE_FLAGS)
    return changes, not flags & os.O_TRUNC


def _ignored_folders(store: Path) -> tuple[str, ...]:
    """Return the folders whose files are no evidence: installations, caches, our own."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    places = [sysconfig.get_path(name) for name in names] + [sys.prefix, sys.base_prefix]
    home = [str(Path.home() / name) for name in HOME_IGNORED]
    real = [os.path.realpath(place) for place in places]
    return (*(f"{p}/" for p in [*places, *real, *home, *IGNORED]), f"{store.absolute()}/")


class Writers:
    """Who wrote which file in a run.

    A file belongs to the last step that wrote it. While that one is verified, or was
    interrupted at the file, earlier writers and readers are not blamed for its content.

    Parameters
    ----------
    order : sequence of str
        The steps as the plan orders them; a step above never explains one below.
    records : dict
        Completed steps of the run by name.
    attempts : dict
        Last attempt of each step by name.
    """

    def __init__(
        self,
        order: Sequence[str],
        records: dict[str, StepRecord],
        attempts: dict[str, Attempt],
    ) -> None:
        self._place = {name: number for number, name in enumerate(order)}
        self._records = [record for name, record in records.items() if name in self._place]
        self._open = [
            attempt
            for name, attempt in attempts.items()
            if name in self._place
            and (name not in records or records[name].attempt < attempt.attempt)
        ]

    def others(self, step: str) -> set[str]:
        """Return the files that belong to other steps than this one."""
        last: dict[str, str] = {}
        for record in sorted(self._records, key=lambda r: self._place[r.step]):
            last.update(dict.fromkeys(record.evidence.files, record.step))
        return {name for name, owner in last.items() if owner != step}

    def explain(self, record: StepRecord, name: str, now: str) -> bool:
        """Tell whether the run itself explains a file's content.

        Parameters
        ----------
        record : StepRecord
            A step that read or wrote the file.
        name : str
            The file.
        now : str
            Digest of its content.

        Returns
        -------
        bool
            Whether the step itself or one below left it so, or one was interrupted.
        """
        place = self._place.get(record.step, 0)
        below = [w for w in self._records if self._place[w.step] > place and name in w.evidence.files]
        if any(w.evidence.files[name] == now for w in below):
            return True
        if record.evidence.files.get(name) == now:
            return True
        if any(self._place[a.step] > place and name in a.writes for a in self._open):
            return True
        # A later step that overwrites a file unread needs nothing of what was there.
        return any(name not in w.fingerprint.files for w in below)


def verify_files(record: StepRecord, writers: Writers, paths: Paths) -> list[str]:
    """Return which files of a record are not as they should be.

    Parameters
    ----------
    record : StepRecord
        The step whose evidence is verified.
    writers : Writers
        Of its run.
    paths : Paths
        Names of files.

    Returns
    -------
    list of str
        One text for each file that differs; empty if all is well.
    """
    found = []
    for name, recorded in sorted(record.evidence.files.items()):
        now = paths.digest(name)
        if now != recorded and not writers.explain(record, name, now):
            found.append(_finding(name, recorded, now))
    return found


def _finding(name: str, recorded: str, now: str) -> str:
    """Return what is wrong with a file."""
    if recorded == ABSENT:
        return f"file {name!r} is back"
    if now == ABSENT:
        return f"file {name!r} is missing"
    return f"file {name!r} was changed"


def evaluate_checks(checks: Iterable[str], namespace: dict[str, Any]) -> list[str]:
    """Return which completion checks are not true.

    Parameters
    ----------
    checks : iterable of str
        Expressions.
    namespace : dict
        The notebook's names.

    Returns
    -------
    list of str
        One text for each check that fails or raises.
    """
    found = []
    for check in checks:
        try:
            if not eval(check, namespace):  # noqa: S307 - the user's own expression
                found.append(f"check {check!r} is not true")
        except Exception as error:  # noqa: BLE001 - a check may raise anything
            found.append(f"check {check!r} raised {type(error).__name__}: {error}")
    return found


def require_checks(step: str, checks: Iterable[str], namespace: dict[str, Any]) -> None:
    """Raise if a completion check of a step is not true.

    Parameters
    ----------
    step : str
        The step, for the message.
    checks : iterable of str
        Expressions.
    namespace : dict
        The notebook's names.

    Raises
    ------
    CheckFailed
        With every check that fails.
    """
    failed = evaluate_checks(checks, namespace)
    if failed:
        raise CheckFailed(
            f"step {step}: {'; '.join(failed)}",
            "The step is not recorded; mend it and run the cell again",
        )
