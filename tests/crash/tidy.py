"""What lies in a store: records that name missing bytes, and parts nobody needs."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

SEAL_BYTES = 32
STANDING = {".gitignore", "CACHEDIR.TAG", "lock", "packs.lock"}
DATABASE = {"cache.db", "cache.db-wal", "cache.db-shm"}


@dataclass
class Contents:
    """A store's records and files, read without its own code and without touching it."""

    store: Path
    records: dict[str, Any] = field(default_factory=dict)
    inline: dict[str, bytes] = field(default_factory=dict)
    sound: bool = True
    """Whether SQLite finds the database whole."""

    @property
    def steps(self) -> dict[str, Any]:
        """The records of completed steps by key."""
        return {k: v for k, v in self.records.items() if k.startswith("step/")}

    @property
    def resting(self) -> dict[str, Any]:
        """The records that rest on packs by key: of steps, and of loops that keep names."""
        loops = {
            k: v
            for k, v in self.records.items()
            if k.startswith("loop/") and v["contents"]
        }
        return self.steps | loops

    def dangling(self) -> list[str]:
        """Return the records whose bytes are missing or are not those written."""
        return [
            key for key, record in self.resting.items() if not self._is_whole(record)
        ]

    def stray(self) -> list[str]:
        """Return the files and rows that no record needs."""
        used = {p for r in self.resting.values() for p in r["contents"]["packs"]}
        rows = [
            key
            for key in (*self.records, *(f"inline/{name}" for name in self.inline))
            if key.startswith(("pack/", "inline/"))
            and key.partition("/")[2] not in used
        ]
        return rows + [
            str(path) for path in self._files() if not self._is_used(path, used)
        ]

    def _files(self) -> list[Path]:
        """Return all files, relative to the store."""
        found = (p for p in self.store.rglob("*") if not p.is_dir())
        return sorted(path.relative_to(self.store) for path in found)

    @staticmethod
    def _is_used(path: Path, packs: set[str]) -> bool:
        """Tell whether a file is a standing one, the database or a pack in use."""
        match path.parts:
            case (name,):
                return name in STANDING
            case ("records", name):
                return name in DATABASE
            case ("packs", name):
                return name.removesuffix(".pack") in packs
            case _:
                return False

    def _is_whole(self, record: dict[str, Any]) -> bool:
        """Tell whether the packs of a record are there and its manifest is whole."""
        contents = record["contents"]
        place = contents["manifest"]
        if not all(self._size(name) for name in contents["packs"]):
            return False
        return place is None or self._is_written(place)

    def _is_written(self, place: dict[str, Any]) -> bool:
        """Compare a stretch of a pack with its digest."""
        data = self._pack(place["pack"])
        part = data[place["offset"] : place["offset"] + place["length"]]
        return bool(blake3(part).hexdigest() == place["digest"])

    def _size(self, name: str) -> int:
        """Return the bytes of a pack; 0 if it is missing."""
        path = self.store / "packs" / f"{name}.pack"
        return path.stat().st_size if path.exists() else len(self.inline.get(name, b""))

    def _pack(self, name: str) -> bytes:
        """Return a pack's bytes."""
        path = self.store / "packs" / f"{name}.pack"
        return path.read_bytes() if path.exists() else self.inline.get(name, b"")


def read(store: Path) -> Contents:
    """Return what lies in a store.

    Parameters
    ----------
    store : Path
        Its folder; no process may be writing to it.

    Returns
    -------
    Contents
        Read from a copy of the database, so that nothing is changed by looking.
    """
    contents = Contents(store)
    database = store / "records" / "cache.db"
    if not database.exists() or not database.stat().st_size:
        return contents
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(database.parent, scratch, dirs_exist_ok=True)
        with closing(sqlite3.connect(Path(scratch) / "cache.db")) as connection:
            verdict = connection.execute("PRAGMA integrity_check").fetchone()[0]
            contents.sound = verdict == "ok"
            if not connection.execute(TABLES).fetchone()[0]:
                return contents
            rows = connection.execute("SELECT key, value FROM Cache").fetchall()
    for key, value in rows:
        if key.startswith("inline/"):
            contents.inline[key.removeprefix("inline/")] = value[SEAL_BYTES:]
        elif not key.startswith("result/"):
            contents.records[key] = json.loads(value[SEAL_BYTES:])
    return contents


TABLES = "SELECT count(*) FROM sqlite_master WHERE name = 'Cache'"
