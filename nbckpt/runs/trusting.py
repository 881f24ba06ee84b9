"""Making another user's store one's own: the user's explicit word that it is trusted.

Until then nothing of a foreign store is loaded. Afterwards its values are unpickled when
its notebook runs, which can execute anything: the word is the user's, never ours.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from nbckpt import places, records
from nbckpt.errors import NotFound, StoreDamaged
from nbckpt.store import META, Store, translated
from nbckpt.trust import SEAL_BYTES, Secret

if TYPE_CHECKING:
    from pathlib import Path

RAW = 1
"""diskcache's mode of a value that is plain bytes in its row."""


def make_own(folder: Path, secret: Secret) -> int:
    """Seal all records of a store with the user's own secret.

    Parameters
    ----------
    folder : Path
        The store's folder.
    secret : Secret
        The user's secret.

    Returns
    -------
    int
        Number of records; 0 if the store was the user's already.

    Raises
    ------
    NotFound
        If there is no store.
    StoreRefused
        If the folder is another user's, open to others, or of a newer schema.
    StoreDamaged
        If it holds anything that nbckpt did not write. Nothing is changed then.
    """
    # Opening it looks at owner, permissions, schema and settings.
    store = Store(folder, secret)
    store.close()
    if not store.exists:
        raise NotFound(
            f"there is no store {folder}", "Name its folder: nbckpt trust DIR"
        )
    if store.trusted:
        return 0
    with places.locked(folder):
        try:
            return _seal_all(folder / "records" / "cache.db", secret)
        except sqlite3.Error as error:
            raise translated(error, folder) from None


def trusted_text(count: int, folder: Path) -> str:
    """Return what trusting a store did.

    Parameters
    ----------
    count : int
        Records that were sealed.
    folder : Path
        The store's folder.

    Returns
    -------
    str
        One line.
    """
    if not count:
        return f"the store {folder} is yours already; nothing to do"
    return f"the store {folder} is yours now: {count} records sealed with your key"


def _seal_all(database: Path, secret: Secret) -> int:
    """Seal every row in one transaction."""
    connection = sqlite3.connect(database, timeout=5, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = 2")
        connection.execute("BEGIN IMMEDIATE")
        rows = connection.execute(
            "SELECT rowid, key, raw, mode, filename, value FROM Cache"
        ).fetchall()
        for rowid, *row in rows:
            sealed = _sealed(row, secret)
            connection.execute(
                "UPDATE Cache SET value = ? WHERE rowid = ?", (sealed, rowid)
            )
        connection.execute("COMMIT")
    finally:
        # Without a COMMIT this takes everything back.
        connection.close()
    return len(rows)


def _sealed(row: list[object], secret: Secret) -> bytes:
    """Return the new bytes of a row."""
    key, raw, mode, filename, value = row
    plain = raw == 1 and mode == RAW and filename is None
    if not plain or not isinstance(key, str) or not isinstance(value, bytes):
        raise StoreDamaged(
            "the store holds a row that nbckpt did not write", "Nothing was changed"
        )
    body = value[SEAL_BYTES:]
    if key == META:
        schema = records.loads(body)["schema_version"]
        body = records.dumps({"identity": secret.identity, "schema_version": schema})
    return secret.seal(key, body)
