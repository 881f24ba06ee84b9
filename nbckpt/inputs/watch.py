"""Files that a step touches, noticed through the interpreter's audit events (PEP 578).

Native readers and child processes can't be seen: ``--reads`` and ``--writes`` are the
contract for them.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt.inputs import databases, environs, events, folders
from nbckpt.inputs.proofs import ABSENT
from nbckpt.inputs.stillfiles import StillFiles
from nbckpt.inputs.workingfolder import here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from nbckpt.inputs.proofs import Paths

SYSTEM = ("/dev/", "/proc/", "/sys/", "/run/")
HOME_IGNORED = (".cache", ".config", ".ipython", ".jupyter", ".local", ".matplotlib")


@dataclass(slots=True)
class Touched:
    """Files that a step touched, by name."""

    read: dict[str, str] = field(default_factory=dict)
    """Name → digest before the step changed it; empty: not changed by the step."""
    written: set[str] = field(default_factory=set)
    order: list[tuple[str, int]] = field(default_factory=list)
    """Written ones as they were noticed, each with the thread that wrote it."""
    removed: set[str] = field(default_factory=set)
    """Written ones that stood before the step."""
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Folder that was listed → names in it when it was listed first."""
    globs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Pattern that was looked for → what matched first."""
    moved: dict[str, bool] = field(default_factory=dict)
    """Folder that was made, moved or removed → whether it stood before."""
    opened: dict[str, str] = field(default_factory=dict)
    """Database that was opened → digest before."""
    environment: dict[str, str | None] = field(default_factory=dict)
    """Environment variable that was read → its value then, or None."""
    still: StillFiles = field(default_factory=StillFiles, compare=False)
    """Files as they were opened last."""
    began: str = field(default_factory=here)
    """The working folder before the step."""
    is_placed: bool = False
    """Whether a relative path was told from there."""

    def lasting_folders(self, paths: Paths) -> tuple[str, ...]:
        """Return the folders that the step made, moved or removed for good.

        Parameters
        ----------
        paths : Paths
            Names of files.

        Returns
        -------
        tuple of str
            Without those that it made and removed again.
        """
        found = self.moved.items()
        return tuple(sorted(n for n, old in found if old or paths.locate(n).is_dir()))

    def listings(self, paths: Paths) -> dict[str, Any]:
        """Return what was listed, but for what the step made and removed again.

        Parameters
        ----------
        paths : Paths
            Names of files.

        Returns
        -------
        dict
            The parts ``folders`` and ``globs`` of a fingerprint.
        """
        new = {name for name, old in self.moved.items() if not old}
        new |= self.written - self.removed
        scratch = {name for name in new if not paths.locate(name).exists()}
        lasting = {p: names for p, names in self.folders.items() if p not in scratch}
        return {
            "folders": {p: _without(scratch, p, n) for p, n in lasting.items()},
            "globs": {p: _without(scratch, "", n) for p, n in self.globs.items()},
        }

    def settle(self, paths: Paths) -> None:
        """Tell by their content which databases were changed, and which only read.

        Parameters
        ----------
        paths : Paths
            Names of files.
        """
        for name, before in self.opened.items():
            changed = name in self.written or paths.digest(name) != before
            if changed:
                self.written.add(name)
            if before == ABSENT:
                continue
            if not changed:
                self.read.setdefault(name, "")
                continue
            self.removed.add(name)
            self.read[name] = self.read.get(name) or before


def _without(scratch: set[str], folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names in a folder without those that did not stay."""
    return tuple(n for n in names if folders.member(folder, n) not in scratch)


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
        self.touched = Touched()

    def start(self) -> None:
        """Begin to notice, and nobody else."""
        _activate([self])

    def stop(self) -> Touched:
        """End, and return what was noticed."""
        _activate([])
        self._finish()
        return self.touched

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Notice for a while, beside a step that may be running."""
        others = list(_active)
        _activate([*others, self])
        try:
            yield
        finally:
            _activate(others)
            self._finish()

    def _finish(self) -> None:
        """Forget the variables if all were read: to hand them on, none is meant."""
        if self.touched.environment.keys() >= set(os.environ):
            self.touched.environment = {}

    def notice(
        self, event: str, arguments: tuple[Any, ...], frame: FrameType | None = None
    ) -> None:
        """Take one audit event.

        Parameters
        ----------
        event : str
            Its name.
        arguments : tuple
            As PEP 578 gives them.
        frame : frame, optional
            Where it happened.
        """
        if os.getpid() != self._pid or getattr(_busy, "now", False):
            return
        _busy.now = True
        try:
            self._take(event, arguments, frame)
        finally:
            _busy.now = False

    def notice_variable(
        self, name: str, value: str | None, frame: FrameType | None
    ) -> None:
        """Take an environment variable that is read.

        Parameters
        ----------
        name : str
            Its name.
        value : str or None
            Its value; None if it is not set.
        frame : frame, optional
            Where it is read: what libraries look up by themselves is no input.
        """
        file = environs.reader(frame)
        if file and os.getpid() == self._pid and not file.startswith(self._ignored):
            self.touched.environment.setdefault(name, value)

    def consider(self, values: Iterable[Any]) -> None:
        """Take databases that are open already as opened by the step.

        Parameters
        ----------
        values : iterable
            What the step can reach.
        """
        for value in values:
            for path in databases.files_of(value):
                self._open_database(path, is_read_only=False)

    def _take(
        self, event: str, arguments: tuple[Any, ...], frame: FrameType | None
    ) -> None:
        """Sort an audit event by what it is about."""
        if event in events.LISTINGS:
            self._list(arguments[0], frame)
        elif event in events.PATTERNS:
            self._glob(*events.PATTERNS[event](*arguments), frame)
        elif event == "sqlite3.connect":
            path, is_read_only = databases.opened(arguments[0])
            if path:
                self._open_database(path, is_read_only=is_read_only)
        elif event in events.CHILDREN:
            self.touched.still.has_children = True
        elif event == "os.chdir":
            self._whole(events.folder_of(arguments[0]))
        elif event in events.FOLDERS:
            self._move(events.in_folder(arguments[0], arguments[-1]))
        else:
            self._take_files(event, arguments)

    def _take_files(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note the files, and folders full of files, of an event."""
        for path, changes, reads in events.files_in(event, arguments):
            self._touch(path, changes=changes, reads=reads)
        if event == "os.rename":
            for path in events.renamed_folders(*arguments):
                self._move(path)

    def _whole(self, path: str) -> str:
        """Return where a path leads; note one that the working folder tells."""
        if not os.path.isabs(path) and here() == self.touched.began:
            self.touched.is_placed = True
        return os.path.abspath(path)

    def _move(self, path: str) -> None:
        """Note a folder that is made, moved or removed."""
        full = self._whole(path)
        name = self._paths.name(full)
        if self._is_noticed(f"{full}/", name):
            self.touched.moved.setdefault(name, os.path.isdir(full))
            self._claim(name)

    def _list(self, folder: Any, frame: FrameType | None) -> None:
        """Note a folder whose names are read."""
        full = self._whole(events.folder_of(folder))
        name = self._paths.name(full)
        is_new = name not in self.touched.folders
        if is_new and self._is_looked_at(full, frame) and folders.is_listing(frame):
            self.touched.folders[name] = folders.names_in(Path(full))

    def _glob(self, root: str, pattern: str, frame: FrameType | None) -> None:
        """Note a pattern whose matches are read."""
        full = self._whole(os.path.join(root, pattern))
        name = self._paths.name(full)
        where = os.path.join(self._paths.base, folders.fixed_part(name))
        if name not in self.touched.globs and self._is_looked_at(where, frame):
            self.touched.globs[name] = folders.matches(self._paths.base, name)

    def _is_looked_at(self, full: str, frame: FrameType | None) -> bool:
        """Tell whether a folder's names are an input: the user's, or read by the user."""
        name = self._paths.name(full)
        if not self._is_noticed(f"{full.rstrip('/')}/", name):
            return False
        if any(folders.SCRAPS.fullmatch(part) for part in Path(name).parts):
            return False
        return name != full or not folders.caller(frame).startswith(self._ignored)

    def _open_database(self, path: str, *, is_read_only: bool) -> None:
        """Note a database before it is opened; whether it is changed is told later."""
        full = self._whole(path)
        name = self._paths.name(full)
        touched = self.touched
        is_known = name in touched.opened or name in touched.written
        if is_known or not self._is_noticed(full, name):
            return
        touched.opened[name] = self._paths.digest(name)
        if not is_read_only:
            self._claim(name)

    def _is_noticed(self, full: str, name: str) -> bool:
        """Tell whether a file is the user's: of no installation, system or cache."""
        if full.startswith(self._ignored) or "/__pycache__/" in full:
            return False
        return name != full or not full.startswith(SYSTEM)

    def _touch(self, path: str, *, changes: bool, reads: bool) -> None:
        """Note one file."""
        full = self._whole(path)
        name = self._paths.name(full)
        if name in self.touched.written or not self._is_noticed(full, name):
            return
        if reads and _is_input(full, is_inside=name != full and not changes):
            self.touched.read.setdefault(name, "")
            self.touched.still.note(name, Path(full))
        if changes:
            self._change(full, name)

    def _change(self, full: str, name: str) -> None:
        """Note a file that is about to be changed for the first time."""
        touched = self.touched
        if touched.read.get(name) == "":
            # Taken now, before the first change: later it would be our own content.
            touched.read[name] = self._paths.digest(name)
        if Path(full).exists():
            touched.removed.add(name)
        self._claim(name)
        touched.written.add(name)
        touched.order.append((name, threading.get_ident()))


def _is_input(full: str, *, is_inside: bool) -> bool:
    """Tell whether a file is read: that one of the notebook's is missing counts too."""
    return Path(full).is_file() or (is_inside and not os.path.lexists(full))


_active: list[Watch] = []
_busy = threading.local()
"""Set while an event is sorted: what we open ourselves is nobody's doing."""
_installed: list[Any] = []


def _activate(watches: list[Watch]) -> None:
    """Have some watches on, and no others."""
    if _audit not in _installed:
        sys.addaudithook(_audit)
        _installed.append(_audit)
    _active[:] = watches
    if watches:
        environs.watch(_read_variable)
    else:
        environs.leave()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Hand an event to the watch that is on."""
    if _active and event in events.EVENTS:
        frame = inspect.currentframe()
        for watch in _active:
            watch.notice(event, arguments, frame.f_back if frame else None)


def _read_variable(name: str, value: str | None, frame: FrameType | None) -> None:
    """Hand an environment variable that is read to the watches that are on."""
    for watch in _active:
        watch.notice_variable(name, value, frame)


def _ignored_folders(base: Path, store: Path) -> tuple[str, ...]:
    """Return the folders whose files are no evidence: installations, caches, our own."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    # We may be imported from a clone, and load our modules when a step first needs them.
    places = [sysconfig.get_path(name) for name in names] + [
        sys.prefix,
        sys.base_prefix,
        str(Path(__file__).parents[1]),
    ]
    home = [str(Path.home() / name) for name in HOME_IGNORED]
    real = [os.path.realpath(place) for place in places]
    found = [f"{place}/" for place in [*places, *real, *home]]
    # A notebook that lies inside an installation still has files of its own.
    return (*(p for p in found if not str(base).startswith(p)), f"{store.absolute()}/")
