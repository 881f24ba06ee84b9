"""The lines of a run's history, chained by digest, and what numbers them.

Each line holds a digest of itself and of the line before it, and the head of the chain
is written in the same transaction: a line that is changed, taken out, moved or put in
later shows. Limit: who has the user's key and writes the whole chain anew is not seen,
unless somebody kept the head, which `audit` shows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbckpt.credentials import Secrets
from nbckpt.errors import StopForHuman, StoreDamaged
from nbckpt.keys import link
from nbckpt.records import Head, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.records import Event
    from nbckpt.store import Store, Transaction


def count(transaction: Transaction, run_id: str, counter: str) -> int:
    """Return the next number of one of a run's counters.

    Parameters
    ----------
    transaction : Transaction
        The transaction of what is counted.
    run_id : str
        The run.
    counter : str
        The counter's name.

    Returns
    -------
    int
        From 1.
    """
    key = f"counter/{run_id}/{counter}"
    number = int(transaction.get(key) or 0) + 1
    transaction.put(key, number)
    return number


def add_line(transaction: Transaction, run_id: str, event: Event) -> None:
    """Add a line to the history of a run that this process may not hold.

    Parameters
    ----------
    transaction : Transaction
        The transaction of what the line tells of: a person's word, mostly.
    run_id : str
        The run.
    event : Event
        The line; credentials of the environment are masked in it.

    Raises
    ------
    StopForHuman
        If the run is archived; nothing of the transaction is written then.
    """
    before = require_open(transaction, run_id)
    # As it will be read: a dict's keys are text then, and sorted as such.
    line = loads(dumps(event.to_json()))
    hidden = Secrets.of_environment()
    line |= {part: hidden.mask_all(line[part]) for part in ("reason", "detail")}
    line["chain"] = link(before.chain, line)
    number = before.number + 1
    transaction.put(f"history/{run_id}/{number:010d}", line)
    end = Head(number, line["chain"])
    transaction.put(f"counter/{run_id}/history", end.to_json())


def require_open(transaction: Transaction, run_id: str) -> Head:
    """Refuse to change a run that is archived; called in each write from outside.

    Parameters
    ----------
    transaction : Transaction
        The transaction of the write.
    run_id : str
        The run.

    Returns
    -------
    Head
        The end of its history.

    Raises
    ------
    StopForHuman
        If the run is archived.
    """
    found = transaction.get(f"counter/{run_id}/history")
    head = Head.from_json(found) if found else Head()
    if head.closed:
        raise archived(run_id)
    return head


def archived(run_id: str) -> StopForHuman:
    """Return the refusal to change a run that is finished.

    Parameters
    ----------
    run_id : str
        The run.

    Returns
    -------
    StopForHuman
        Says how to look at it and how to begin another.
    """
    return StopForHuman(
        f"run {run_id} is finished and archived: nothing of it changes any more",
        f"Look at it: nbckpt audit {run_id}. Begin another: %nbckpt start --fresh, "
        "or another run id",
    )


def close(transaction: Transaction, run_id: str) -> None:
    """Let nothing be added to a run's history any more.

    Parameters
    ----------
    transaction : Transaction
        The transaction that archives the run.
    run_id : str
        The run.
    """
    head = require_open(transaction, run_id)
    closed = replace(head, closed=True)
    transaction.put(f"counter/{run_id}/history", closed.to_json())


def head(store: Store | Transaction, run_id: str) -> Head:
    """Return the end of a run's history.

    Parameters
    ----------
    store : Store
        Any store.
    run_id : str
        The run.

    Returns
    -------
    Head
        Of number 0 if the run has no lines.
    """
    found = store.get(f"counter/{run_id}/history")
    return Head.from_json(found) if found else Head()


def broken(store: Store, run_id: str) -> str:
    """Return what is wrong with the first line that is not as it was written.

    Parameters
    ----------
    store : Store
        Any store.
    run_id : str
        The run.

    Returns
    -------
    str
        Number of the line and whether it is missing, changed, damaged or out of order;
        empty if all lines are as they were written.
    """
    try:
        end = head(store, run_id)
    except (StoreDamaged, TypeError, AttributeError):
        return "the end of the history is damaged"
    prefix, chain = f"history/{run_id}/", ""
    keys = store.keys(prefix)
    wanted = [f"{prefix}{number:010d}" for number in range(1, end.number + 1)]
    for key in wanted:
        line = _line(store, key)
        if isinstance(line, str):
            return f"line {_number(key)} is {line}"
        if link(chain, line) != line.get("chain"):
            return _displaced(store, keys, key, chain)
        chain = str(line["chain"])
    extra = sorted(set(keys) - set(wanted))
    if extra:
        return f"line {_number(extra[0])} was added after the end, line {end.number}"
    return "" if chain == end.chain else f"the end, line {end.number}, is another"


def _line(store: Store, key: str) -> dict[str, Any] | str:
    """Return a line, or why there is none."""
    try:
        found = store.get(key)
    except StoreDamaged:
        return "damaged"
    if found is None:
        return "missing"
    return found if isinstance(found, dict) else "damaged"


def _displaced(store: Store, keys: list[str], key: str, chain: str) -> str:
    """Say of a line that does not follow the one before whether it was moved."""
    for other, line in _readable(store, keys):
        if other != key and link(chain, line) == line.get("chain"):
            return (
                f"line {_number(key)} is out of order: what belongs there "
                f"is line {_number(other)}"
            )
    return f"line {_number(key)} is changed"


def _readable(store: Store, keys: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines that can be read."""
    for key in keys:
        line = _line(store, key)
        if not isinstance(line, str):
            yield key, line


def _number(key: str) -> str:
    """Return a line's number as it is shown."""
    return key.rsplit("/", 1)[-1].lstrip("0")
