"""Environment variables that a step's code reads, whatever the names are made of.

The source tells names that it spells out; the others show only as they are read.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

LOOKING = {"get", "getenv", "__contains__", "setdefault", "pop"}
"""Functions of Python's own that look a variable up for whoever calls them."""
FILES = {os.getenv.__code__.co_filename, Mapping.get.__code__.co_filename}

_original: list[Callable[..., Any]] = []


def watch(notice: Callable[[str, str | None, FrameType | None], None]) -> None:
    """Have each read of an environment variable told, until `leave`.

    Parameters
    ----------
    notice : callable
        Takes the name, the value or None, and where it is read.
    """
    leave()
    read: Any = os._Environ.__getitem__
    values = os.environ

    def told(self: Any, key: Any) -> Any:
        frame = inspect.currentframe()
        value = None
        try:
            value = read(self, key)
        finally:
            if self is values and isinstance(key, str):
                notice(key, value, frame.f_back if frame else None)
        return value

    _original.append(read)
    os._Environ.__getitem__ = told  # type: ignore[method-assign]


def reader(frame: FrameType | None) -> str:
    """Return the file whose code reads a variable; empty if it can't be told.

    Parameters
    ----------
    frame : frame or None
        Where it is read. What Python's own modules look up to do their work, such as
        ``PATH`` to start a process, is read by them.

    Returns
    -------
    str
        A file's name; empty too for Python's own frozen modules.
    """
    while frame is not None and frame.f_code.co_name in LOOKING:
        if frame.f_code.co_filename not in FILES:
            break
        frame = frame.f_back
    file = frame.f_code.co_filename if frame is not None else ""
    return "" if file.startswith("<frozen") else file


def leave() -> None:
    """Let environment variables be read as ever."""
    if _original:
        os._Environ.__getitem__ = _original.pop()  # type: ignore[method-assign]
