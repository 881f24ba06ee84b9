"""The lines of a run's history, and what numbers them; within a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbckpt.records import Event
    from nbckpt.store import Transaction


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
        The line.
    """
    number = count(transaction, run_id, "history")
    transaction.put(f"history/{run_id}/{number:010d}", event.to_json())
