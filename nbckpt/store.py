"""Keyed records in transactions, on diskcache, with every setting that keeps them.

diskcache's defaults lose data: it evicts at 1 GiB, commits without syncing, keeps large
values in files that are never synced, and unpickles whatever a row says. Here values
are sealed bytes, always inline, never evicted; all writes are made by one thread, so that
an interrupt can't leave a transaction open; reads go through a read-only connection, so
that looking at a store never writes.

Guarantee: when `Store.transact` returns, all its writes or none are on disk (power loss
included, unless ``durable=False``). Limit: one machine, a local file system.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import diskcache
from diskcache.core import MODE_RAW, UNKNOWN, Disk

from nbckpt import places, records
from nbckpt.errors import NbckptError, StoreDamaged, StoreError, StoreFull, StoreRefused
from nbckpt.trust import SEAL_BYTES, Secret

T = TypeVar("T")

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
COUNTERS = {"count", "size", "hits", "misses"}
# Names and definitions of all tables, indexes and triggers that diskcache 5.6.3 makes.
SCHEMA_DIGEST = "91921ee26f684c33c8e6c083499ba4dc7092cccda47fffe7c5662d8f812dd399"
META = "store"
LOCK_TRIES = 12


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

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        """Return the value of a row; a pickle or a file is refused unread."""
        if mode != MODE_RAW or filename is not None or read or type(value) is not bytes:
            raise StoreDamaged("the store holds a value that nbckpt did not write")
        return value

    def remove(self, file_path: str) -> None:
        """Refuse: a row's file name must never delete anything."""
        raise StoreDamaged("the store names a file that nbckpt did not write")


class Transaction:
    """What may be done inside `Store.transact`; all of it is on disk, or none."""

    def __init__(self, cache: Any, secret: Secret) -> None:
        self._cache = cache
        self._secret = secret

    def get(self, key: str) -> Any:
        """Return a record's JSON values, or None."""
        data = self._cache.get(key)
        return None if data is None else records.loads(self._secret.unseal(key, data))

    def put(self, key: str, value: Any) -> None:
        """Write a record's JSON values."""
        self.put_bytes(key, records.dumps(value))

    def put_bytes(self, key: str, body: bytes) -> None:
        """Write bytes."""
        self._cache.set(key, self._secret.seal(key, body))

    def delete(self, key: str) -> None:
        """Delete a record if it is there."""
        self._cache.delete(key)

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin so, in order."""
        return _keys(self._cache._con, prefix)  # noqa: SLF001 - no public query by prefix


class Store:
    """A folder of sealed records.

    Parameters
    ----------
    folder : Path
        The store's folder.
    secret : Secret
        The user's secret.

    Attributes
    ----------
    trusted : bool
        Whether the records were sealed with the user's secret. In a foreign store they
        were not: text can be looked at, nothing is loaded, nothing written.

    Raises
    ------
    StoreRefused
        If the place is unsafe, the schema newer or unknown.
    """

    def __init__(self, folder: Path, secret: Secret) -> None:
        places.inspect(folder)
        self.folder = folder
        self.secret = secret
        self.trusted = True
        self._jobs: SimpleQueue[Any] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._reader: sqlite3.Connection | None = None
        self._frozen = False
        self._pid = os.getpid()
        if self._database.exists() and self._database.stat().st_size:
            inspect_database(self._database)
            self._read_meta()

    @property
    def _database(self) -> Path:
        """Path of the records."""
        return self.folder / "records" / "cache.db"

    @property
    def exists(self) -> bool:
        """Whether anything was ever written."""
        return self._database.exists() and self._database.stat().st_size > 0

    def _read_meta(self) -> None:
        """Learn whose store it is and of which schema."""
        data = self._raw(META)
        if data is None:
            return
        meta = _json(META, data[SEAL_BYTES:])
        if int(meta.get("schema_version", 0)) > records.SCHEMA_VERSION:
            raise StoreRefused(
                f"the store {self.folder} was written by a newer nbckpt "
                f"(schema {meta['schema_version']}, this one knows {records.SCHEMA_VERSION})",
                "Nothing was changed. Update nbckpt, or choose another --store",
            )
        self.trusted = meta.get("identity") == self.secret.identity
        if self.trusted:
            self.secret.unseal(META, data)

    def get(self, key: str) -> Any:
        """Return a record's JSON values.

        Parameters
        ----------
        key : str
            The record's key.

        Returns
        -------
        object or None
            None if there is no such record.

        Raises
        ------
        StoreDamaged
            If the record is not what the user wrote under this key.
        """
        body = self.get_bytes(key)
        return None if body is None else _json(key, body)

    def get_bytes(self, key: str) -> bytes | None:
        """Return the bytes written under a key; see `get`."""
        data = self._raw(key)
        if data is None:
            return None
        # Of a foreign store only text is shown; callers load nothing from it.
        return self.secret.unseal(key, data) if self.trusted else data[SEAL_BYTES:]

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin so.

        Parameters
        ----------
        prefix : str
            First letters of the keys.

        Returns
        -------
        list of str
            In order.
        """
        with self._lock:
            reader = self._open_reader()
            return _keys(reader, prefix) if reader else []

    def scan(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """Yield the records whose keys begin so; damaged ones are left out.

        Parameters
        ----------
        prefix : str
            First letters of the keys.

        Yields
        ------
        tuple of str and object
            Key and JSON values, in order of the keys.
        """
        for key in self.keys(prefix):
            try:
                value = self.get(key)
            except StoreDamaged:
                continue
            if value is not None:
                yield key, value

    def transact(self, change: Callable[[Transaction], T], *, durable: bool = True) -> T:
        """Make several writes as one.

        An interrupt waits for the outcome, so that it is always known.

        Parameters
        ----------
        change : callable
            Reads and writes through the transaction that it is given. It runs on the
            store's thread and must be short.
        durable : bool, optional
            Whether the writes must also survive a loss of power.

        Returns
        -------
        object
            What `change` returned.

        Raises
        ------
        StoreRefused
            If the store is another user's, or this process was forked from its owner.
        StoreFull
            If no room is left.
        StoreError
            If the store stays locked or can't be written.
        """
        if self._pid != os.getpid():
            raise StoreRefused("a forked process must not write to its parent's store")
        if not self.trusted:
            raise StoreRefused(
                f"the store {self.folder} was made with another user's key",
                f"It is read-only. To make it yours: nbckpt trust {self.folder}",
            )
        self._start()
        reply: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._jobs.put((change, durable, reply))
        done, outcome = _wait(reply)
        if not done:
            raise outcome
        return cast("T", outcome)

    def close(self) -> None:
        """Wait for the writes and close the files."""
        if self._thread is not None and self._pid == os.getpid():
            self._jobs.put(None)
            self._thread.join()
            self._thread = None
        if self._reader is not None and self._pid == os.getpid():
            self._reader.close()
        self._reader = None

    def _start(self) -> None:
        """Start the writing thread once; the store's files are made then."""
        with self._lock:
            if self._thread is not None:
                return
            places.create(self.folder)
            started: SimpleQueue[BaseException | None] = SimpleQueue()
            thread = threading.Thread(
                target=_write_all,
                args=(self._database.parent, self.secret, self._jobs, started),
                name="nbckpt-store",
                daemon=True,
            )
            thread.start()
            failure = started.get()
            if failure is not None:
                raise failure
            self._thread = thread
            weakref.finalize(self, self._jobs.put, None)

    def _raw(self, key: str) -> bytes | None:
        """Return the sealed bytes of a key as they lie in the store."""
        with self._lock:
            reader = self._open_reader()
            if reader is None:
                return None
            try:
                row = reader.execute(
                    "SELECT mode, filename, value FROM Cache WHERE key = ? AND raw = 1",
                    (key,),
                ).fetchone()
            except sqlite3.Error as error:
                raise translated(error, self.folder) from None
        return None if row is None else StrictDisk.fetch(_DISK, row[0], row[1], row[2], None)

    def _open_reader(self) -> sqlite3.Connection | None:
        """Return the read-only connection, or None while nothing was written."""
        if self._pid != os.getpid():
            return None
        frozen = not log_of(self._database).exists()
        if self._reader is not None and self._frozen and not frozen:
            # A process began to write: what was opened as unchanging is so no more.
            self._reader.close()
            self._reader = None
        if self._reader is None and self.exists:
            self._reader, self._frozen = connect_readonly(self._database), frozen
        return self._reader


_DISK = cast("StrictDisk", None)


def _json(key: str, body: bytes) -> Any:
    """Return JSON values, or say that the record is damaged."""
    try:
        return records.loads(body)
    except ValueError:
        raise StoreDamaged(f"the record {key!r} is damaged", "Nothing of it is used") from None


def _keys(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the keys that begin with a prefix, in order."""
    rows = connection.execute(
        "SELECT key FROM Cache WHERE raw = 1 AND key >= ? AND key < ? ORDER BY key",
        (prefix, prefix + "\U0010ffff"),
    ).fetchall()
    return [row[0] for row in rows if type(row[0]) is str]


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
        connection = sqlite3.connect(
            f"{database.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=5,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            connection.close()
            continue
        except sqlite3.DatabaseError as error:
            connection.close()
            raise translated(error, database.parent.parent) from None
        return connection
    raise StoreError(f"the store {database.parent.parent} can't be opened")


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
        settings = dict(connection.execute("SELECT key, value FROM Settings").fetchall())
    except sqlite3.Error as error:
        raise translated(error, database.parent.parent) from None
    finally:
        connection.close()
    found = hashlib.sha256(repr(rows).encode()).hexdigest()
    changed = {k for k, v in settings.items() if k not in COUNTERS and v != SETTINGS.get(k)}
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
    if "full" in text or "No space" in text or "too large" in text or "disk I/O" in text:
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


def _wait(reply: SimpleQueue[tuple[bool, Any]]) -> tuple[bool, Any]:
    """Wait for an outcome; an interrupt is kept until it is there."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            outcome = reply.get()
        except KeyboardInterrupt as error:
            interrupt = error
            continue
        if interrupt is not None:
            raise interrupt
        return outcome


def _write_all(
    folder: Path,
    secret: Secret,
    jobs: SimpleQueue[Any],
    started: SimpleQueue[BaseException | None],
) -> None:
    """Open the records and make every write of this process, in order."""
    try:
        cache = _open_cache(folder, secret)
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
        started.put(translated(error, folder.parent))
        return
    started.put(None)
    while (job := jobs.get()) is not None:
        change, durable, reply = job
        try:
            reply.put((True, _commit(cache, secret, change, durable=durable)))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            reply.put((False, translated(error, folder.parent)))
    cache.close()


def _open_cache(folder: Path, secret: Secret) -> Any:
    """Open diskcache with the settings that keep records; write the store's mark."""
    with places.locked(folder.parent):
        cache = diskcache.Cache(str(folder), timeout=5, disk=StrictDisk, **SETTINGS)
        level = cache._con.execute("PRAGMA synchronous").fetchone()[0]  # noqa: SLF001
        if level != SETTINGS["sqlite_synchronous"]:
            raise StoreRefused(f"SQLite does not sync at {folder} (level {level})")
        meta = {"identity": secret.identity, "schema_version": records.SCHEMA_VERSION}
        transaction = Transaction(cache, secret)
        if cache.get(META) is None or transaction.get(META) != meta:
            transaction.put(META, meta)
    return cache


def _commit(
    cache: Any, secret: Secret, change: Callable[[Transaction], T], *, durable: bool
) -> T:
    """Run one change in one transaction of the writing thread."""
    connection = cache._con  # noqa: SLF001 - pragmas and rollback have no public way
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
        raise AssertionError
    finally:
        if connection.in_transaction:
            # COMMIT itself failed (disk full): without this the store stays locked.
            connection.rollback()
        if not durable:
            connection.execute("PRAGMA synchronous = 2")
