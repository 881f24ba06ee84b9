"""What a folder holds: names as an input of steps that list it or look for a pattern."""

from __future__ import annotations

import fnmatch
import os
import re
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

SCRAPS = re.compile(
    r"__pycache__|\.(git|hg|svn|nbckpt|ipynb_checkpoints|virtual_documents|DS_Store"
    r"|mypy_cache|pytest_cache|ruff_cache)|\.~.*|\..*\.\d+\.tmp|.*-(wal|shm|journal)"
)
"""Names that tools leave in a folder; they come and go without anybody's doing."""

CACHE_TAG = "CACHEDIR.TAG"
MAGIC = re.compile(r"[*?\[]")

STDLIB = tuple({sysconfig.get_path("stdlib"), os.path.realpath(os.__file__)[:-6]})


def names_in(folder: Path) -> tuple[str, ...]:
    """Return the names in a folder, in order.

    Parameters
    ----------
    folder : Path
        It need not exist.

    Returns
    -------
    tuple of str
        Without those that tools leave there.
    """
    try:
        found = [path.name for path in folder.iterdir()]
    except OSError:
        return ()
    return tuple(sorted(name for name in found if not SCRAPS.fullmatch(name)))


def matches(base: Path, pattern: str) -> tuple[str, ...]:
    """Return what matches a pattern, in order.

    Parameters
    ----------
    base : Path
        The folder that a relative pattern is told from.
    pattern : str
        As of `glob.glob` with ``recursive=True``.

    Returns
    -------
    tuple of str
        Files and folders; hidden ones too. ``**`` does not go into caches.
    """
    path = Path(pattern)
    is_whole = path.is_absolute()
    root = Path(path.anchor) if is_whole else base
    found = {str(p) for p in _search(root, list(path.parts[is_whole:]))}
    inside = f"{base}{os.sep}"
    return tuple(sorted(name.removeprefix(inside) for name in found))


def fixed_part(pattern: str) -> str:
    """Return the folder below which all matches of a pattern lie.

    Parameters
    ----------
    pattern : str
        A pattern, or a path without any.

    Returns
    -------
    str
        ``.`` for the notebook's folder.
    """
    parts = Path(pattern).parts
    fixed = next((i for i, part in enumerate(parts) if MAGIC.search(part)), len(parts))
    return str(Path(*parts[: min(fixed, len(parts) - 1)]))


def _search(folder: Path, parts: list[str]) -> Iterator[Path]:
    """Yield what matches the parts of a pattern below a folder."""
    if not parts:
        yield folder
        return
    head, *rest = parts
    if head == "**":
        yield from _search_deep(folder, parts)
    elif MAGIC.search(head):
        for name in fnmatch.filter(names_in(folder), head):
            yield from _below(folder / name, rest)
    else:
        yield from _below(folder / head, rest)


def _search_deep(folder: Path, parts: list[str]) -> Iterator[Path]:
    """Yield what matches the parts of a pattern that begins with ``**``."""
    rest = parts[1:]
    yield from _search(folder, rest)
    for name in names_in(folder):
        path = folder / name
        if _is_searched(path):
            yield from _search(path, parts)
        elif not rest:
            yield path


def _below(path: Path, rest: list[str]) -> Iterator[Path]:
    """Go on below a match, if it is there."""
    if os.path.isdir(path) if rest else os.path.lexists(path):
        yield from _search(path, rest)


def _is_searched(path: Path) -> bool:
    """Tell whether ``**`` goes into a folder: not into caches, not through links."""
    is_folder = os.path.isdir(path) and not os.path.islink(path)
    return is_folder and not os.path.exists(path / CACHE_TAG)


@dataclass(slots=True)
class Doing:
    """Files and folders that steps of a run changed.

    Attributes
    ----------
    explain : callable
        Tells whether the run explains a file's content, or that it is not there.
    """

    explain: Callable[[str], bool]
    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    """Those that files lie in, too."""
    whole: set[str] = field(default_factory=set)
    """Folders of which a step took everything, ending in a slash."""

    def take(self, files: Iterable[str], made: Iterable[str]) -> None:
        """Add what a step changed.

        Parameters
        ----------
        files : iterable of str
            Names of files; of folders that it took whole, ending in a slash.
        made : iterable of str
            Folders that it made, moved or removed.
        """
        for name in files:
            (self.whole if name.endswith("/") else self.files).add(name)
        changed = [*self.files, *made]
        self.folders |= {str(p) for name in changed for p in Path(name).parents}
        self.folders |= set(made)

    def undone(
        self, folder: str, before: tuple[str, ...], now: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the names in a folder as if these steps had left it alone.

        Parameters
        ----------
        folder : str
            Its name; empty if the names are whole.
        before, now : tuple of str
            The names as a step had found them, and as they are.

        Returns
        -------
        tuple of str
            In order; equal to `before` if nobody else did anything.
        """
        came = {n for n in {*now} - {*before} if self._made(member(folder, n))}
        went = {n for n in {*before} - {*now} if self._removed(member(folder, n))}
        return tuple(sorted(({*now} - came) | went))

    def _made(self, name: str) -> bool:
        """Tell whether a name is there through these steps."""
        if name in self.files or name in self.folders:
            return True
        return any(lies_in(name, place) for place in self.whole)

    def _removed(self, name: str) -> bool:
        """Tell whether a name is gone through these steps."""
        if name in self.folders:
            return True
        return self._made(name) and self.explain(name)


def member(folder: str, name: str) -> str:
    """Return how a record names what lies in a folder that it names.

    Parameters
    ----------
    folder, name : str
        The folder; the name in it.

    Returns
    -------
    str
        Relative to the notebook if the folder is.
    """
    return os.path.normpath(Path(folder) / name)


def lies_in(name: str, folder: str) -> bool:
    """Tell whether something lies below a folder.

    Parameters
    ----------
    name, folder : str
        As records name them; the folder ends in a slash.

    Returns
    -------
    bool
        At any depth.
    """
    here = folder == "./" and not name.startswith(("/", "../"))
    return here or name.startswith(folder)


def is_listing(frame: FrameType | None) -> bool:
    """Tell whether a folder is listed for its names' sake.

    Parameters
    ----------
    frame : frame or None
        Where the interpreter's listing function is called.

    Returns
    -------
    bool
        False while a module is imported, a tree removed, or a pattern looked for, which
        is noticed as such.
    """
    while frame is not None and _is_stdlib(frame):
        module, function = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        package = module.partition(".")[0]
        if package in {"importlib", "_frozen_importlib_external", "pkgutil", "glob"}:
            return False
        if package == "pathlib" and function in {"glob", "rglob"}:
            return False
        if package == "shutil" and function.startswith("_rmtree"):
            return False
        frame = frame.f_back
    return True


def caller(frame: FrameType | None) -> str:
    """Return the file whose code lists a folder, through whatever of Python's own."""
    while frame is not None and _is_stdlib(frame):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def _is_stdlib(frame: FrameType) -> bool:
    """Tell whether a frame is of Python's own modules."""
    file = frame.f_code.co_filename
    is_own = file.startswith(STDLIB) and "site-packages" not in file
    return is_own or file.startswith("<frozen")
