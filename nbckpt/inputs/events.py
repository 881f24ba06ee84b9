"""Audit events (PEP 578): which files and folders each is about."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _patterns_of_glob(
    pattern: Any,
    recursive: bool,
    root: Any,
    folder: Any,
) -> tuple[str, str]:
    """Return where `glob.glob` looks, and for what."""
    found = os.fsdecode(pattern)
    start = os.fsdecode(root) if root is not None else ""
    if isinstance(folder, int):
        start = str(Path(folder_of(folder)) / start)
    return start, found if recursive else found.replace("**", "*")


LISTINGS = {"os.listdir", "os.scandir"}
PATTERNS: dict[str, Callable[..., tuple[str, str]]] = {
    "glob.glob/2": _patterns_of_glob,
    "pathlib.Path.glob": lambda path, pattern: (str(path), str(pattern)),
    "pathlib.Path.rglob": lambda path, pattern: (str(path), f"**/{pattern}"),
}

FOLDERS = {"os.mkdir", "os.rmdir"}
CHILDREN = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty"}
EVENTS = {
    "open",
    "os.rename",
    "os.remove",
    "os.truncate",
    "os.link",
    "os.symlink",
    "sqlite3.connect",
    "os.chdir",
    *LISTINGS,
    *PATTERNS,
    *FOLDERS,
    *CHILDREN,
}


def files_in(
    event: str, arguments: tuple[Any, ...]
) -> Iterable[tuple[str, bool, bool]]:
    """Yield the files that an audit event is about.

    Parameters
    ----------
    event : str
        Its name.
    arguments : tuple
        As the interpreter gives them.

    Yields
    ------
    tuple of str, bool and bool
        Path, whether it is changed, whether it is read.
    """
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
            yield in_folder(path, folder), True, event == "os.truncate"
    elif _is_path(arguments[1]):
        yield os.fsdecode(arguments[1]), True, False


def renamed_folders(source: Any, target: Any, *places: int) -> list[str]:
    """Return both names of a folder that is renamed.

    Parameters
    ----------
    source, target : object
        Paths, as the event gives them.
    *places : int
        Open folders that they are relative to.

    Returns
    -------
    list of str
        Empty if it is a file that is renamed.
    """
    if not (_is_path(source) and _is_path(target)):
        return []
    old, new = in_folder(source, places[0]), in_folder(target, places[1])
    return [old, new] if os.path.isdir(old) else []


def _renamed(
    source: Any, target: Any, *places: int
) -> Iterator[tuple[str, bool, bool]]:
    """Yield both names of a file that is renamed, or of all files in a folder."""
    if not (_is_path(source) and _is_path(target)):
        return
    old = Path(in_folder(source, places[0]))
    new = Path(in_folder(target, places[1]))
    if os.path.isfile(old):
        yield str(old), True, False
        yield str(new), True, False
    for folder, _, names in os.walk(old):
        for name in names:
            path = Path(folder) / name
            yield str(path), True, False
            yield str(new / path.relative_to(old)), True, False


def _is_path(value: object) -> bool:
    """Tell whether an event names a path; numbers are open files."""
    return isinstance(value, (str, bytes, os.PathLike))


def in_folder(path: Any, folder: int) -> str:
    """Return a path that is relative to an open folder."""
    if folder < 0:
        return os.fsdecode(path)
    return str(Path(folder_of(folder)) / os.fsdecode(path))


def folder_of(folder: Any) -> str:
    """Return the path of a folder that is listed; an open one by where it lies."""
    if isinstance(folder, int):
        return str(Path(f"/proc/self/fd/{folder}").readlink())
    return os.fsdecode(folder) if folder is not None else "."


def _open_mode(mode: str | None, flags: int) -> tuple[bool, bool]:
    """Return whether an open changes and whether it reads the content."""
    if mode is not None:
        changes = any(letter in mode for letter in "wax+")
        return changes, "w" not in mode and "x" not in mode
    changes = bool(flags & WRITE_FLAGS)
    return changes, not flags & os.O_TRUNC
