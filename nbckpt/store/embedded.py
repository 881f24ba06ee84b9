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

import os
import sqlite3
import threading
import weakref
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nbckpt import places, records
from nbckpt.errors import StoreDamaged, StoreRefused
from nbckpt.store.database import (
    checked_value,
    connect_readonly,
    inspect_database,
    log_of,
    translated,
)
from nbckpt.store.interrupts import waiting
from nbckpt.store.writer import (
    META,
    PATIENCE,
    Reply,
    Transaction,
    keys_in,
    say_locked,
    write_all,
)
from nbckpt.trust import SEAL_BYTES, Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")


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
        self._database = folder / "records" / "cache.db"
        self._log = log_of(self._database)
        if self._database.exists() and self._database.stat().st_size:
            inspect_database(self._database)
            self._read_meta()

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
            return keys_in(reader, prefix) if reader else []

    def scan(self, prefix: str, after: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the records whose keys begin so; damaged ones are left out.

        Parameters
        ----------
        prefix : str
            First letters of the keys.
        after : str, optional
            Keys up to this one are left out.

        Yields
        ------
        tuple of str and object
            Key and JSON values, in order of the keys.
        """
        for key in (key for key in self.keys(prefix) if key > after):
            try:
                value = self.get(key)
            except StoreDamaged:
                continue
            if value is not None:
                yield key, value

    def transact(
        self, change: Callable[[Transaction], T], *, durable: bool = True
    ) -> T:
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
        with waiting():
            self._start()
            reply = Reply()
            self._jobs.put((change, durable, reply))
            return cast("T", reply.wait())

    def close(self) -> None:
        """Wait for the writes and close the files."""
        if self._pid != os.getpid():
            return
        # The writer must be the last one to close: only then SQLite folds its log into
        # the database, which can then be read without making any file.
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _start(self) -> None:
        """Start the writing thread once; the store's files are made then."""
        with self._lock:
            if self._thread is not None:
                return
            places.create(self.folder)
            started: SimpleQueue[BaseException | None] = SimpleQueue()
            thread = threading.Thread(
                target=write_all,
                args=(self._database.parent, self.secret, self._jobs, started),
                name="nbckpt-store",
                daemon=True,
            )
            thread.start()
            failure = _awaited(started, self.folder)
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
        return None if row is None else checked_value(*row)

    def _open_reader(self) -> sqlite3.Connection | None:
        """Return the read-only connection, or None while nothing was written."""
        if self._pid != os.getpid():
            return None
        frozen = not self._log.exists()
        if self._reader is not None and self._frozen and not frozen:
            # A process began to write: what was opened as unchanging is so no more.
            self._reader.close()
            self._reader = None
        if self._reader is None and self.exists:
            self._reader, self._frozen = connect_readonly(self._database), frozen
        return self._reader


def _awaited(
    started: SimpleQueue[BaseException | None], folder: Path
) -> BaseException | None:
    """Return how the writing thread started; tell what it waits for."""
    try:
        return started.get(timeout=PATIENCE)
    except Empty:
        say_locked(folder)
        return started.get()


def _json(key: str, body: bytes) -> Any:
    """Return JSON values, or say that the record is damaged."""
    try:
        return records.loads(body)
    except ValueError:
        raise StoreDamaged(
            f"the record {key!r} is damaged", "Nothing of it is used"
        ) from None
