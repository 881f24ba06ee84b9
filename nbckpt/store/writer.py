"""All writes of a process, made by one thread, each in one transaction."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import diskcache

from nbckpt import places, records
from nbckpt.errors import StoreDamaged, StoreError, StoreRefused
from nbckpt.store.database import SETTINGS, StrictDisk, translated

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from queue import SimpleQueue

    from nbckpt.trust import Secret

T = TypeVar("T")
META = "store"
LOCK_TRIES = 12
PATIENCE = 5.0
"""Seconds that a locked store takes at a time; after the first is told what it waits for."""


class Transaction:
    """What may be done inside `Store.transact`; all of it is on disk, or none.

    Attributes
    ----------
    written : set of str
        Keys that were written or deleted.
    """

    def __init__(self, cache: Any, secret: Secret) -> None:
        self._cache = cache
        self._secret = secret
        self.written: set[str] = set()

    def get(self, key: str) -> Any:
        """Return a record's JSON values, or None."""
        data = self.get_bytes(key)
        return None if data is None else records.loads(data)

    def get_bytes(self, key: str) -> bytes | None:
        """Return the bytes written under a key, or None."""
        data = self._cache.get(key)
        return None if data is None else self._secret.unseal(key, data)

    def put(self, key: str, value: Any) -> None:
        """Write a record's JSON values."""
        self.put_bytes(key, records.dumps(value))

    def put_bytes(self, key: str, body: bytes) -> None:
        """Write bytes."""
        self.written.add(key)
        self._cache.set(key, self._secret.seal(key, body))

    def delete(self, key: str) -> None:
        """Delete a record if it is there."""
        self.written.add(key)
        self._cache.delete(key)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin so, in order."""
        return keys_in(self._cache._con, prefix)


def keys_in(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the keys that begin with a prefix, in order."""
    rows = connection.execute(
        "SELECT key FROM Cache WHERE raw = 1 AND key >= ? AND key < ? ORDER BY key",
        (prefix, prefix + "\U0010ffff"),
    ).fetchall()
    return [row[0] for row in rows if type(row[0]) is str]


class Reply:
    """The outcome of one change, handed from the writing thread to the one that waits."""

    def __init__(self) -> None:
        self._outcome: tuple[bool, Any] | None = None
        self._closed = threading.Lock()
        self._closed.acquire()

    def give(self, *, done: bool, value: Any) -> None:
        """Tell what the change returned, or the error that it ended with."""
        self._outcome = done, value
        self._closed.release()

    def wait(self) -> Any:
        """Return the outcome or raise it."""
        self._closed.acquire()
        if self._outcome is None:
            raise AssertionError(self)
        done, value = self._outcome
        if not done:
            raise value
        return value


def say_locked(folder: Path) -> None:
    """Tell what a store waits for, which it does for a minute.

    Parameters
    ----------
    folder : Path
        The store's folder.
    """
    sys.stderr.write(
        f"nbckpt: waiting for the store {folder}: another process writes to it, or was "
        "stopped while it wrote; that is to be ended or continued (nbckpt status names "
        "the holder of the run)\n"
    )


def write_all(
    folder: Path,
    secret: Secret,
    jobs: SimpleQueue[Any],
    started: SimpleQueue[BaseException | None],
) -> None:
    """Open the records and make every write of this process, in order."""
    try:
        cache = _open_cache(folder, secret)
    except BaseException as error:
        started.put(translated(error, folder.parent))
        return
    started.put(None)
    opened = (folder / "cache.db").stat()
    while (job := jobs.get()) is not None:
        change, durable, reply = job
        try:
            _require_same(folder / "cache.db", opened)
            value = _commit(cache, secret, change, durable=durable)
        except BaseException as error:
            reply.give(done=False, value=translated(error, folder.parent))
        else:
            reply.give(done=True, value=value)
    cache.close()


def _require_same(database: Path, opened: os.stat_result) -> None:
    """Refuse to write into a file that has no name any more: nobody would find it."""
    try:
        is_same = os.path.samestat(database.stat(), opened)
    except FileNotFoundError:
        is_same = False
    if not is_same:
        raise StoreError(
            f"the store {database.parent.parent} was deleted or replaced while this "
            "kernel had it open",
            "Nothing more is recorded. Put it back, or restart the kernel: what is not "
            "in the store runs again",
        )


def _open_cache(folder: Path, secret: Secret) -> Any:
    """Open diskcache with the settings that keep records; write the store's mark."""
    with places.locked(folder.parent):
        if not (folder / "cache.db").exists():
            _create(folder, secret)
        cache = diskcache.Cache(
            str(folder), timeout=PATIENCE, disk=StrictDisk, **SETTINGS
        )
        _mark_schema(Transaction(cache, secret))
    level = cache._con.execute("PRAGMA synchronous").fetchone()[0]
    if level != SETTINGS["sqlite_synchronous"]:
        raise StoreRefused(f"SQLite does not sync at {folder} (level {level})")
    return cache


def _mark_schema(transaction: Transaction) -> None:
    """Mark a store of an older schema as one that has newer records from now on."""
    meta = transaction.get(META)
    if meta is None:
        raise StoreDamaged(
            "the store has lost the mark that tells whose it is",
            "Nothing of it was used. Move it aside and run again",
        )
    if meta["schema_version"] < records.SCHEMA_VERSION:
        transaction.put(META, {**meta, "schema_version": records.SCHEMA_VERSION})


def _create(folder: Path, secret: Secret) -> None:
    """Make the database beside its place and move it there whole.

    diskcache makes its tables in many commits; killed among them, what is left would not
    be told from a database that somebody changed.
    """
    for left in folder.glob("new-*"):
        shutil.rmtree(left)
    scratch = Path(tempfile.mkdtemp(prefix="new-", dir=folder))
    # SQLite gives its own files the mode of the database, whatever the umask.
    (scratch / "cache.db").touch(mode=0o600)
    cache = diskcache.Cache(str(scratch), timeout=PATIENCE, disk=StrictDisk, **SETTINGS)
    meta = {"identity": secret.identity, "schema_version": records.SCHEMA_VERSION}
    Transaction(cache, secret).put(META, meta)
    cache.close()
    (scratch / "cache.db").replace(folder / "cache.db")
    places.sync_folder(folder)
    shutil.rmtree(scratch)


def _commit(
    cache: Any, secret: Secret, change: Callable[[Transaction], T], *, durable: bool
) -> T:
    """Run one change in one transaction of the writing thread."""
    connection = cache._con
    if not durable:
        connection.execute("PRAGMA synchronous = 1")
    try:
        for left in range(LOCK_TRIES, 0, -1):
            try:
                with cache.transact():
                    return change(Transaction(cache, secret))
            except diskcache.Timeout:
                if left == 1:
                    raise
                if left == LOCK_TRIES:
                    say_locked(Path(cache.directory).parent)
        raise AssertionError
    finally:
        if connection.in_transaction:
            # COMMIT itself failed (disk full): without this the store stays locked.
            connection.rollback()
        if not durable:
            connection.execute("PRAGMA synchronous = 2")
