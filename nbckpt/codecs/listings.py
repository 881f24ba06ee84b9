"""Listings of folders: one that is over holds nothing, and an entry is its place."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

LOOKS = 20
PAUSE = 0.005


def listing(_: Any) -> tuple[Any, ...] | str:
    """Keep a listing of a folder that is over.

    It can't be asked without taking its next entry; but one that is not over holds its
    folder open, and mostly no folder is, but for a moment in another thread.
    """
    held, pause = _open_folders(), threading.Event()
    for _ in range(LOOKS):
        if not held:
            return revive_listing, ()
        pause.wait(PAUSE)
        held &= _open_folders()
    return "a listing of a folder that may not be over; make it a list"


def _open_folders() -> set[str]:
    """Return the numbers under which folders are open."""
    # A whole list first: the folder of the numbers is closed again then.
    return {p.name for p in list(Path("/dev/fd").iterdir()) if _is_open_folder(p)}


def _is_open_folder(number: Path) -> bool:
    """Tell whether a folder is open under a number."""
    try:
        return stat.S_ISDIR(os.fstat(int(number.name)).st_mode)
    except OSError:  # the one by which the numbers were listed
        return False


def revive_listing() -> Any:
    """Return a listing that is over; called while decoding."""
    listing = os.scandir(os.sep)
    listing.close()
    return listing


def entry(entry: os.DirEntry[Any]) -> tuple[Any, ...] | str:
    """Keep an entry of a folder as its place."""
    folder = entry.path[: len(entry.path) - len(entry.name)]
    if not folder:
        return "an entry of a folder that was opened by number; keep its name"
    return revive_entry, (folder, entry.name)


def revive_entry(folder: Any, name: Any) -> Any:
    """List a folder again; called while decoding."""
    with os.scandir(folder) as listing:
        for entry in listing:
            if entry.name == name:
                return entry
    raise FileNotFoundError(errno.ENOENT, "no such entry any more", folder + name)
