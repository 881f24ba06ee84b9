"""What no record needs any more: found and removed.

Nothing that a record names, and nothing that a living process is writing, is touched.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbckpt.places import locked
from nbckpt.runs.history import Reader, readable
from nbckpt.runs.leases import standing
from nbckpt.store.packs import packs_of

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.store import Store, Transaction

PACK_NAME_PARTS = 4
SPILL_SECONDS = 86400.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What `collect` removed."""

    files: int
    bytes: int


def collect(store: Store) -> Swept:
    """Remove what no record needs: packs, spilled outputs, rows.

    Nothing that a record names, and nothing that a living process is writing, is ever
    removed.

    Parameters
    ----------
    store : Store
        The user's own store.

    Returns
    -------
    Swept
        Number of files and their bytes.
    """
    store.transact(_drop_unused_rows)
    # Until an import has recorded what it brings, only the lock tells of it.
    with locked(store.folder, "packs.lock"):
        stray = _stray(store)
        return Swept(len(stray), sum(map(_remove, stray)))


def _stray(store: Store) -> list[Path]:
    """Return files that no record names and no living process is writing."""
    reader = Reader(store)
    files = (store.folder / "packs").glob("*.pack")
    left = [path for path in files if not _is_being_written(reader, path.stem)]
    # Read last: a holder that ended while it was asked for may have recorded its pack.
    known = {key.removeprefix("pack/") for key in store.keys("pack/")}
    stray = [path for path in left if path.stem not in known]
    return stray + [p for p in (store.folder / "spill").glob("*") if _is_old(p)]


def _drop_unused_rows(transaction: Transaction) -> None:
    """Delete the rows of packs that no record rests on."""
    used: dict[str, set[str]] = {}
    for key in [*transaction.keys("step/"), *transaction.keys("loop/")]:
        record, _ = readable(transaction, key)
        for name in packs_of(record):
            used.setdefault(name, set()).add(key)
    for key in transaction.keys("pack/"):
        name = key.removeprefix("pack/")
        if name in used:
            transaction.put(key, {"users": sorted(used[name])})
        else:
            transaction.delete(key)
    for key in transaction.keys("inline/"):
        if key.removeprefix("inline/") not in used:
            transaction.delete(key)


def _is_being_written(reader: Reader, name: str) -> bool:
    """Tell whether a pack without a record belongs to a living holder."""
    parts = name.rsplit(".", 3)
    if len(parts) != PACK_NAME_PARTS:
        return False
    run_id, token, *_ = parts
    lease = reader.lease(run_id)
    if lease is None or str(lease.token) != token:
        return False
    return standing(lease) in {"alive", "late", "unknown"}


def _is_old(path: Path) -> bool:
    """Tell whether nobody has written to a file for a day; one that is gone is not old."""
    with suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime > SPILL_SECONDS
    return False


def _remove(path: Path) -> int:
    """Remove a file; return its bytes, none if another process was faster."""
    with suppress(FileNotFoundError):
        count = path.stat().st_size
        path.unlink()
        return count
    return 0
