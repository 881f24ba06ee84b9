"""Who uses which pack: noted in the transaction of the record that names it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt.errors import SaveFailed, StoreDamaged

if TYPE_CHECKING:
    from nbckpt.records import Contents
    from nbckpt.store import Transaction


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that a completion brings along."""

    name: str
    inline: bytes | None
    """The whole pack if it is small; None if it is a file that was synced."""


def use_packs(
    transaction: Transaction, user: str, contents: Contents, pack: Pack
) -> None:
    """Note a record as a user of every pack it rests on.

    Parameters
    ----------
    transaction : Transaction
        The transaction in which the record is written.
    user : str
        The record's key.
    contents : Contents
        What it names.
    pack : Pack
        The pack that comes along.

    Raises
    ------
    SaveFailed
        If a pack that the record rests on was dropped by another process meanwhile.
    """
    for name in contents.packs:
        found = transaction.get(f"pack/{name}")
        if found is None and name != pack.name:
            raise SaveFailed(
                f"{user}: the pack {name} was dropped meanwhile",
                "Run the cell again: nothing is lost, the body does not run",
            )
        users = set(found["users"]) if found else set()
        transaction.put(f"pack/{name}", {"users": sorted(users | {user})})
    if pack.inline is not None and pack.name in contents.packs:
        transaction.put_bytes(f"inline/{pack.name}", pack.inline)


def release_packs(
    transaction: Transaction, user: str, before: dict[str, Any] | None, kept: set[str]
) -> list[str]:
    """Note that a record does not use its packs any more; return those without users.

    Parameters
    ----------
    transaction : Transaction
        The transaction in which the record changes.
    user : str
        The record's key.
    before : dict or None
        The record as it was.
    kept : set of str
        Packs that it goes on using.

    Returns
    -------
    list of str
        Their rows are gone; their files may go once the transaction is on disk.
    """
    freed = []
    for name in packs_of(before) - kept:
        found = transaction.get(f"pack/{name}") or {"users": []}
        users = [other for other in found["users"] if other != user]
        if users:
            transaction.put(f"pack/{name}", {"users": users})
        else:
            transaction.delete(f"pack/{name}")
            transaction.delete(f"inline/{name}")
            freed.append(name)
    return freed


def release_loops(transaction: Transaction, run_id: str, step: str) -> list[str]:
    """Take from a step's loops what only a resume of them needs.

    Parameters
    ----------
    transaction : Transaction
        The transaction in which the step is completed.
    run_id, step : str
        The step.

    Returns
    -------
    list of str
        Packs without users; see `release_packs`.
    """
    freed: list[str] = []
    for key in transaction.keys(f"loop/{run_id}/{step}/"):
        try:
            record = transaction.get(key)
        except StoreDamaged:
            continue
        if record["contents"] is not None:
            freed += release_packs(transaction, key, record, set())
            transaction.put(key, {**record, "contents": None})
    for key in transaction.keys(f"result/{run_id}/{step}/"):
        transaction.delete(key)
    return freed


def packs_of(record: dict[str, Any] | None) -> set[str]:
    """Return the packs that a record names.

    Parameters
    ----------
    record : dict or None
        JSON values of a step's record, or of a loop's.

    Returns
    -------
    set of str
        Their names.
    """
    contents = record["contents"] if record else None
    return set(contents["packs"]) if contents else set()
