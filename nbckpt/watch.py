"""Files that a step touches, noticed through the interpreter's audit events (PEP 578).

Native readers and child processes can't be seen: ``--reads`` and ``--writes`` are the
contract for them.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nbckpt.evidence import Paths

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


SYSTEM = ("/dev/", "/proc/", "/sys/", "/run/")


HOME_IGNORED = (".cache", ".config", ".ipython", ".jupyter", ".local", ".matplotlib")


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
        self._ignored = _ignored_folders(paths.base, store)
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

    def _is_noticed(self, full: str, name: str) -> bool:
        """Tell whether a file is the user's: of no installation, system or cache."""
        if full.startswith(self._ignored) or "/__pycache__/" in full:
            return False
        return name != full or not full.startswith(SYSTEM)

    def _touch(self, path: str, *, changes: bool, reads: bool) -> None:
        """Note one file."""
        full = os.path.abspath(path)
        name = self._paths.name(full)
        if not self._is_noticed(full, name):
            return
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
        yield from _renamed(*arguments)
    elif event in {"os.remove", "os.truncate"}:
        path, *folders = arguments
        if _is_path(path):
            folder = folders[0] if event == "os.remove" else -1
            yield _in_folder(path, folder), True, event == "os.truncate"
    elif _is_path(arguments[1]):
        yield os.fsdecode(arguments[1]), True, False


def _renamed(
    source: Any, target: Any, *folders: int
) -> Iterable[tuple[str, bool, bool]]:
    """Yield both names of a file that is renamed; folders are left alone."""
    if _is_path(source) and _is_path(target) and Path(os.fsdecode(source)).is_file():
        yield _in_folder(source, folders[0]), True, False
        yield _in_folder(target, folders[1]), True, False


def _is_path(value: object) -> bool:
    """Tell whether an event names a path; numbers are open files."""
    return isinstance(value, (str, bytes, os.PathLike))


def _in_folder(path: Any, folder: int) -> str:
    """Return a path that is relative to an open folder."""
    if folder < 0:
        return os.fsdecode(path)
    return str(Path(f"/proc/self/fd/{folder}").readlink() / os.fsdecode(path))


def _open_mode(mode: str | None, flags: int) -> tuple[bool, bool]:
    """Return whether an open changes and whether it reads the content."""
    if mode is not None:
        changes = any(letter in mode for letter in "wax+")
        return changes, "w" not in mode and "x" not in mode
    changes = bool(flags & WRITE_FLAGS)
    return changes, not flags & os.O_TRUNC


def _ignored_folders(base: Path, store: Path) -> tuple[str, ...]:
    """Return the folders whose files are no evidence: installations, caches, our own."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    places = [sysconfig.get_path(name) for name in names] + [
        sys.prefix,
        sys.base_prefix,
    ]
    home = [str(Path.home() / name) for name in HOME_IGNORED]
    real = [os.path.realpath(place) for place in places]
    found = [f"{place}/" for place in [*places, *real, *home]]
    # A notebook that lies inside an installation still has files of its own.
    return (*(p for p in found if not str(base).startswith(p)), f"{store.absolute()}/")
