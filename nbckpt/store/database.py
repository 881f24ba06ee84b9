"""The database file of a store: its rows, its schema, and how it is opened safely."""

from __future__ import annotations

import hashlib
import sqlite3
from typing import TYPE_CHECKING, Any

import diskcache
from diskcache.core import MODE_RAW, UNKNOWN, Disk

from nbckpt.errors import NbckptError, StoreDamaged, StoreError, StoreFull

if TYPE_CHECKING:
    from pathlib import Path

INLINE = 1 << 62
SETTINGS: dict[str, Any] = {
    "eviction_policy": "none",
    "cull_limit": 0,
    "size_limit": INLINE,
    "statistics": 0,
    "tag_index": 0,
    "sqlite_journal_mode": "wal",
    "sqlite_synchronous": 2,
    "sqlite_mmap_size": 0,
    "sqlite_auto_vacuum": 0,
    "sqlite_cache_size": 8192,
    "disk_min_file_size": INLINE,
    "disk_pickle_protocol": 0,
}

NO_ROOM = ("full", "No space", "too large", "disk I/O")
"""One of these is in what SQLite and the system say when nothing more can be written."""
COUNTERS = {"count", "size", "hits", "misses"}


# Names and definitions of all tables, indexes and triggers that diskcache 5.6.3 makes.
SCHEMA_DIGEST = "91921ee26f684c33c8e6c083499ba4dc7092cccda47fffe7c5662d8f812dd399"


class StrictDisk(Disk):  # type: ignore[misc]
    """diskcache's rows without its pickles and files: str keys, inline bytes."""

    def __init__(self, directory: str, **_settings: object) -> None:
        super().__init__(directory, min_file_size=INLINE, pickle_protocol=0)

    def put(self, key: object) -> tuple[str, bool]:
        """Return the form of a key in its row."""
        if type(key) is not str:
            raise TypeError(key)
        return key, True

    def get(self, key: object, raw: object) -> str:
        """Return the key of a row; a pickled one is refused unread."""
        if not raw or type(key) is not str:
            raise StoreDamaged("the store holds a key that nbckpt did not write")
        return key

    def store(
        self, value: object, read: object, key: object = UNKNOWN
    ) -> tuple[int, int, None, memoryview]:
        """Return the form of a value in its row."""
        del key
        if read or type(value) is not bytes:
            raise TypeError(value)
        return 0, MODE_RAW, None, memoryview(value)

    def fetch(
        self, mode: object, filename: object, value: object, read: object
    ) -> bytes:
        """Return the value of a row; a pickle or a file is refused unread."""
        return checked_value(None if read else mode, filename, value)

    def remove(self, file_path: str) -> None:
        """Refuse: a row's file name must never delete anything."""
        raise StoreDamaged(
            f"the store names a file, {file_path!r}, that is not nbckpt's"
        )


def checked_value(mode: object, filename: object, value: object) -> bytes:
    """Return the value of a row; a pickle or a file is refused unread."""
    if mode != MODE_RAW or filename is not None or type(value) is not bytes:
        raise StoreDamaged("the store holds a value that nbckpt did not write")
    return value


def log_of(database: Path) -> Path:
    """Return where SQLite keeps what was not merged into a database yet."""
    return database.with_name(f"{database.name}-wal")


def connect_readonly(database: Path) -> sqlite3.Connection:
    """Return a connection that can't write.

    Parameters
    ----------
    database : Path
        File of a store's records.

    Returns
    -------
    sqlite3.Connection
        Usable from every thread, one at a time.
    """
    # Without a log nobody has the store open, and it can be read as a file that does not
    # change: an ordinary connection would make the log's files, and looking must not
    # write. A folder that can't be written has no place for them either.
    modes = ["mode=ro", "mode=ro&immutable=1"]
    for mode in modes if log_of(database).exists() else modes[1:]:
        try:
            return _connected(f"{database.absolute().as_uri()}?{mode}")
        except sqlite3.OperationalError:
            continue
        except sqlite3.DatabaseError as error:
            raise translated(error, database.parent.parent) from None
    raise StoreError(
        f"the store {database.parent.parent} can't be opened",
        "Check its disk, and the rights of the files in it",
    )


def _connected(address: str) -> sqlite3.Connection:
    """Return a connection that has read something."""
    connection = sqlite3.connect(
        address, uri=True, timeout=5, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def inspect_database(database: Path) -> None:
    """Refuse a database whose schema or settings are not diskcache's own.

    Triggers, views and settings run or change things when a store is merely opened, so
    they are compared before diskcache sees them.

    Parameters
    ----------
    database : Path
        File of a store's records.

    Raises
    ------
    StoreDamaged
        If anything is there that nbckpt did not make.
    """
    connection = connect_readonly(database)
    try:
        rows = connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
        ).fetchall()
        settings = dict(
            connection.execute("SELECT key, value FROM Settings").fetchall()
        )
    except sqlite3.Error as error:
        raise translated(error, database.parent.parent) from None
    finally:
        connection.close()
    found = hashlib.sha256(repr(rows).encode()).hexdigest()
    changed = {
        k for k, v in settings.items() if k not in COUNTERS and v != SETTINGS.get(k)
    }
    if found != SCHEMA_DIGEST or changed:
        raise StoreDamaged(
            f"the store {database.parent.parent} was changed by something else "
            f"({', '.join(sorted(map(str, changed))) or 'its schema'})",
            "Nothing of it was used. Move it aside and run again",
        )


def translated(error: BaseException, folder: Path) -> BaseException:
    """Return our error for one of SQLite, diskcache or the system.

    Parameters
    ----------
    error : BaseException
        What was raised.
    folder : Path
        The store's folder.

    Returns
    -------
    BaseException
        The same error if it is one of ours.
    """
    if isinstance(error, NbckptError) or not isinstance(error, Exception):
        return error
    text = str(error)
    if any(word in text for word in NO_ROOM):
        return StoreFull(
            f"no room for the store {folder} ({text})",
            "Free some space (nbckpt gc helps), then run the cell again",
        )
    if isinstance(error, diskcache.Timeout) or "locked" in text:
        return StoreError(
            f"the store {folder} stays locked by another process",
            "A process stopped in the middle of a write holds it: end or continue it",
        )
    if isinstance(error, sqlite3.DatabaseError):
        return StoreDamaged(
            f"the store {folder} is damaged ({text})", "Move it aside and run again"
        )
    return error
