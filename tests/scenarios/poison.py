"""Ways to poison a store: whoever opens one must execute nothing of it."""

from __future__ import annotations

import pickle
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEAL_BYTES = 32
TRIGGER = (
    "CREATE TRIGGER evil_EVENT AFTER EVENT ON Cache"
    " BEGIN UPDATE Cache SET value = x'HEX', mode = 4; END"
)


class Boom:
    """Makes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = str(target)

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.target, "w")


def boom(target: Path, protocol: int = 4) -> bytes:
    """Return bytes that make a file when they are unpickled."""
    return pickle.dumps(Boom(target), protocol)


def database(store: Path) -> Any:
    """Open the store's database; committed and closed by a ``with``."""
    connection = sqlite3.connect(store / "records" / "cache.db", isolation_level=None)
    return closing(connection)


def every_value(store: Path, target: Path, **_: Any) -> None:
    """Replace each value by a pickle, as the case's own script does."""
    with database(store) as db:
        db.execute("UPDATE Cache SET value = ?", (boom(target),))


def every_value_in_pickle_mode(store: Path, target: Path, **_: Any) -> None:
    """Replace each value, and say that it is pickled (mode 4 of diskcache)."""
    with database(store) as db:
        db.execute("UPDATE Cache SET value = ?, mode = 4", (boom(target, 2),))


def bodies_under_seals(store: Path, target: Path, **_: Any) -> None:
    """Keep each seal and replace what it seals."""
    with database(store) as db:
        for rowid, value in db.execute("SELECT rowid, value FROM Cache").fetchall():
            sealed = bytes(value)[:SEAL_BYTES] + boom(target)
            db.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (sealed, rowid))


def every_key(store: Path, target: Path, **_: Any) -> None:
    """Replace each key by a pickle (raw 0 of diskcache)."""
    with database(store) as db:
        for (rowid,) in db.execute("SELECT rowid FROM Cache").fetchall():
            key = boom(target) + bytes([rowid % 256, rowid // 256])
            db.execute(
                "UPDATE Cache SET key = ?, raw = 0 WHERE rowid = ?", (key, rowid)
            )


def more_keys(store: Path, target: Path, **_: Any) -> None:
    """Add rows of which key and value are pickles, beside the good ones."""
    with database(store) as db:
        db.execute(
            "INSERT INTO Cache(key, raw, store_time, expire_time, access_time,"
            " access_count, tag, size, mode, filename, value)"
            " VALUES (?, 0, 0, 1, 0, 0, NULL, 0, 4, NULL, ?)",
            (boom(target), boom(target)),
        )


def file_names(store: Path, target: Path, **_: Any) -> None:
    """Let each row name a file outside, to be read as a pickle or removed."""
    bait = target.with_name("bait.pickle")
    bait.write_bytes(boom(target))
    with database(store) as db:
        db.execute(
            "UPDATE Cache SET filename = ?, mode = 4, value = NULL", (str(bait),)
        )


def settings(store: Path, target: Path, **_: Any) -> None:
    """Replace methods of the store's object, and its disk, through its settings."""
    with database(store) as db:
        for name in ("get", "set", "disk_pickle_protocol", "sqlite_synchronous"):
            db.execute(
                "INSERT OR REPLACE INTO Settings VALUES (?, ?)", (name, boom(target))
            )
        db.execute("UPDATE Settings SET value = 0 WHERE key = 'disk_min_file_size'")


def triggers(store: Path, target: Path, **_: Any) -> None:
    """Plant triggers that change what is written and read."""
    with database(store) as db:
        for event in ("INSERT", "UPDATE"):
            db.execute(
                TRIGGER.replace("EVENT", event).replace("HEX", boom(target).hex())
            )


def view(store: Path, target: Path, **_: Any) -> None:
    """Put a view in place of the table of records."""
    with database(store) as db:
        db.execute("ALTER TABLE Cache RENAME TO Hidden")
        rows = f"SELECT key, 1 AS raw, x'{boom(target).hex()}' AS value, 4 AS mode"
        db.execute(f"CREATE VIEW Cache AS {rows}, NULL AS filename FROM Hidden")


def packs(store: Path, target: Path, **_: Any) -> None:
    """Replace each pack, in files and among the records, by a pickle."""
    for path in (store / "packs").glob("*"):
        path.write_bytes(boom(target))
    with database(store) as db:
        db.execute(
            "UPDATE Cache SET value = ? WHERE key LIKE 'inline/%'", (boom(target),)
        )


def packs_patched(store: Path, target: Path, **_: Any) -> None:
    """Overwrite the beginning of each pack, keeping its length."""
    evil = boom(target)
    for path in (store / "packs").glob("*"):
        data = path.read_bytes()
        path.write_bytes((evil + data[len(evil) :])[: max(len(data), len(evil))])


def packs_swapped(store: Path, **_: Any) -> None:
    """Exchange the contents of packs."""
    found = sorted((store / "packs").glob("*"))
    data = [path.read_bytes() for path in found]
    for path, other in zip(found, data[1:] + data[:1], strict=True):
        path.write_bytes(other)


def records_swapped(store: Path, **_: Any) -> None:
    """Exchange the values of all records, each valid under another key."""
    with database(store) as db:
        rows = db.execute("SELECT rowid, value FROM Cache ORDER BY rowid").fetchall()
        for (rowid, _old), (_other, value) in zip(
            rows, rows[1:] + rows[:1], strict=True
        ):
            db.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (value, rowid))


def records_of_another_user(store: Path, other: Path, **_: Any) -> None:
    """Put valid records and packs of another user's store in place of the user's."""
    with database(other) as db:
        rows = db.execute("SELECT key, value FROM Cache").fetchall()
    with database(store) as db:
        for key, value in rows:
            db.execute("UPDATE Cache SET value = ? WHERE key = ?", (value, key))
    for path in (other / "packs").glob("*"):
        shutil.copy(path, store / "packs")


def store_of_another_user(store: Path, other: Path, **_: Any) -> None:
    """Put another user's whole store in place of the user's."""
    shutil.rmtree(store)
    shutil.copytree(other, store)


def spill(store: Path, target: Path, **_: Any) -> None:
    """Plant files in every folder of the store."""
    for folder in [store, *(p for p in store.iterdir() if p.is_dir())]:
        for name in ("evil.pack", "evil.py", "evil.json", "sitecustomize.py"):
            (folder / name).write_bytes(boom(target))


def no_database(store: Path, target: Path, **_: Any) -> None:
    """Put a pickle in place of the database."""
    for path in (store / "records").glob("*"):
        path.unlink()
    path = store / "records" / "cache.db"
    path.write_bytes(boom(target))
    path.chmod(0o600)


POISONS: tuple[Callable[..., None], ...] = (
    every_value, every_value_in_pickle_mode, bodies_under_seals, every_key, more_keys,
    file_names, settings, triggers, view, packs, packs_patched, packs_swapped,
    records_swapped, records_of_another_user, store_of_another_user, spill, no_database,
)  # fmt: skip
