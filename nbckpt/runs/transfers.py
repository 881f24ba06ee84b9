"""A run out of a store into a file, and from a file into a store.

Order of an import: packs are on disk, then one transaction brings all records. Killed
before it, there is no run and `nbckpt gc` removes the packs; killed after it, all is there.
Without the user's word the run goes into a store that is nobody's, which opens read-only:
nothing of it is unpickled before `nbckpt trust`.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from nbckpt import places
from nbckpt.errors import NotFound, RunHeld, StoreDamaged, StoreRefused
from nbckpt.records import Event, Lease, RunRecord, Worktree, dumps, loads
from nbckpt.runs import lines, parcels
from nbckpt.runs.history import Reader
from nbckpt.runs.leases import describe, is_held
from nbckpt.runs.parcels import OF_STORE, Parcel
from nbckpt.runs.persons import person
from nbckpt.store import Store
from nbckpt.trust import SEAL_BYTES, Secret

if TYPE_CHECKING:
    from zipfile import ZipFile

    from nbckpt.store import Transaction

HERE = {"lease", "run", "worktree"}
"""Records that an import adapts to where it is."""
GROWING = {"counter", "history"}
"""Records that grow while a run is only looked at or skipped through."""
IGNORED = {*HERE, *GROWING, "pack"}


def export_run(store: Store, run_id: str, path: Path) -> int:
    """Write all of a run into one file.

    Parameters
    ----------
    store : Store
        Its store.
    run_id : str
        The run.
    path : Path
        The file; written whole or not at all.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    BadStep
        If there is no folder to write it to.
    RunHeld
        If another process is working on the run.
    StoreDamaged
        If a record or pack is damaged.
    """
    places.require_target(path)
    _require_still(store, run_id)
    before = lines.head(store, run_id)
    parcel = _parcel(store, run_id)
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with scratch.open("xb") as file:
            parcels.write(parcel, store.folder / "packs", file)
            file.flush()
            os.fsync(file.fileno())
        if lines.head(store, run_id) != before:
            raise RunHeld(
                f"run {run_id} went on while it was exported", "Export it again"
            )
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    places.sync_folder(path.parent)
    return path.stat().st_size


def _require_still(store: Store, run_id: str) -> None:
    """Refuse a run that another living process works on."""
    lease = Reader(store).lease(run_id)
    if lease is None or lease.holder.pid == os.getpid():
        return
    if is_held(lease):
        raise RunHeld(
            f"run {run_id} is held by {describe(lease)}",
            "Close that kernel first, or export it from there: %nbckpt export",
        )


def _parcel(store: Store, run_id: str) -> Parcel:
    """Return a run with the rows of the packs that it uses."""
    records: dict[str, bytes] = {}
    for key in store.keys(""):
        parts = key.split("/")
        if len(parts) > 1 and parts[1] == run_id and parts[0] not in OF_STORE:
            records[key] = _body(store, key)
    packs = _packs(store, run_id)
    files: dict[str, str] = {}
    for name, users in packs.items():
        records[f"pack/{name}"] = dumps({"users": users})
        inline = store.get_bytes(f"inline/{name}")
        if inline is not None:
            records[f"inline/{name}"] = inline
        else:
            files[name] = _digest(store.folder / "packs" / f"{name}.pack")
    current = store.scan("current/")
    stems = [key.split("/", 1)[1] for key, row in current if row["run_id"] == run_id]
    return Parcel(run_id, records, files, tuple(stems))


def _body(store: Store, key: str) -> bytes:
    """Return a record's bytes."""
    body = store.get_bytes(key)
    if body is None:
        raise StoreDamaged(f"the record {key!r} went away", "Export it again")
    return body


def _packs(store: Store, run_id: str) -> dict[str, list[str]]:
    """Return the packs that a run uses, with those of its records that do."""
    found: dict[str, list[str]] = {}
    for key, row in store.scan("pack/"):
        users = [user for user in row["users"] if user.split("/")[1:2] == [run_id]]
        if users:
            found[key.removeprefix("pack/")] = users
    return found


def _digest(path: Path) -> str:
    """Return the BLAKE3 of a file."""
    total = blake3()
    try:
        total.update_mmap(path)
    except OSError as error:
        raise StoreDamaged(
            f"the pack {path.name} can't be read ({error})",
            "The step that made it runs again; export the run then",
        ) from None
    return total.hexdigest()


def import_run(path: Path, folder: Path, secret: Secret | None) -> tuple[str, bool]:
    """Bring a run from a file into a store.

    Parameters
    ----------
    path : Path
        The file; anybody may have made it.
    folder : Path
        The store's folder; made if need be.
    secret : Secret or None
        The user's own, if the user trusts the file; None: the run goes into a new store
        that opens read-only, and nothing of it is loaded.

    Returns
    -------
    tuple of str and bool
        The run's id, and whether it is new there.

    Raises
    ------
    NotFound
        If there is no such file.
    StoreRefused
        If the file is no proper archive, or the store has another run of this id.
    """
    if not path.is_file():
        raise NotFound(f"there is no file {path}", "Make one: nbckpt export RUN")
    if secret is None:
        _require_new(folder)
    # Sealed with a key that nobody keeps, the records are nobody's: not even ours.
    store = Store(folder, secret or Secret(secrets.token_bytes(SEAL_BYTES)))
    try:
        with parcels.opened(path) as (parcel, file):
            if _is_there(store, parcel):
                return parcel.run_id, False
            # Makes the store's folders.
            store.transact(lambda _: None)
            with places.locked(store.folder, "packs.lock"):
                for name in parcel.packs:
                    _bring_pack(store.folder, parcel, file, name)
                store.transact(lambda tx: _bring(tx, parcel, folder))
    finally:
        store.close()
    return parcel.run_id, True


def _require_new(folder: Path) -> None:
    """Refuse to put a run that nobody vouches for into a store that is there."""
    if os.path.lexists(folder):
        raise StoreRefused(
            f"{folder} is there already, and nobody vouches for the run yet",
            "Give it a store of its own with --store DIR and look at it; or say with "
            "--trust that you would run what it holds",
        )


def _is_there(store: Store, parcel: Parcel) -> bool:
    """Tell whether a store has the run already; another one of its id is refused."""
    if not store.exists or store.get(f"run/{parcel.run_id}") is None:
        return False
    other = [
        key
        for key, body in parcel.records.items()
        if key.split("/")[0] not in IGNORED and store.get_bytes(key) != body
    ]
    if other:
        raise StoreRefused(
            f"the store {store.folder} has another run {parcel.run_id} ({other[0]} differs)",
            "A run id is never used twice: import it into another --store",
        )
    return True


def _bring_pack(folder: Path, parcel: Parcel, file: ZipFile, name: str) -> None:
    """Write a pack beside its place and move it there whole."""
    target = folder / "packs" / f"{name}.pack"
    if target.exists():
        if _digest(target) != parcel.packs[name]:
            raise StoreRefused(
                f"the store has another pack {name}", "Nothing was changed"
            )
        return
    scratch = folder / "spill" / f"import.{secrets.token_hex(8)}"
    try:
        with scratch.open("xb") as copy:
            parcels.copy_pack(file, parcel, name, copy)
            copy.flush()
            os.fsync(copy.fileno())
        scratch.chmod(0o600)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
    places.sync_folder(target.parent)


def _bring(transaction: Transaction, parcel: Parcel, folder: Path) -> None:
    """Write all records of a run, adapted to where it is now."""
    run_id = parcel.run_id
    if transaction.get(f"run/{run_id}") is not None:
        raise StoreRefused(f"another process made run {run_id} meanwhile", "Look at it")
    for key, body in parcel.records.items():
        if key.startswith("pack/"):
            _use_pack(transaction, key, loads(body))
        else:
            transaction.put_bytes(key, body)
    run = _here(parcel.run, folder)
    transaction.put(f"run/{run_id}", run.to_json())
    _adapt(transaction, f"lease/{run_id}", Lease, released=True)
    # The path of another machine says nothing here; the branch does.
    _adapt(transaction, f"worktree/{run_id}", Worktree, path="")
    for stem in parcel.stems:
        # A notebook that has a run of its own here goes on with that.
        if transaction.get(f"current/{stem}") is None:
            transaction.put(f"current/{stem}", {"run_id": run_id})
    head = transaction.get(f"counter/{run_id}/history")
    if head is None or not head["closed"]:
        said = Event(time.time(), "imported", reason=f"by {person()}")
        lines.add_line(transaction, run_id, said)


def _use_pack(transaction: Transaction, key: str, row: dict[str, Any]) -> None:
    """Add the run's records to the users of a pack."""
    before = transaction.get(key) or {"users": []}
    users = sorted({*before["users"], *map(str, row["users"])})
    transaction.put(key, {"users": users})


def _here(run: RunRecord, folder: Path) -> RunRecord:
    """Return a run whose notebook lies beside its store now, if it does."""
    beside = folder.absolute().parent / Path(run.notebook).name
    return replace(run, notebook=str(beside)) if beside.is_file() else run


def _adapt(transaction: Transaction, key: str, kind: Any, **changes: Any) -> None:
    """Change some fields of a record, if it is there."""
    found = transaction.get(key)
    if found is not None:
        record = replace(kind.from_json(found), **changes)
        transaction.put(key, record.to_json())
