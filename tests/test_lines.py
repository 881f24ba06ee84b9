"""The lines of a history are numbered in the order in which they were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.history import Reader
from nbckpt.lines import add_line, count
from nbckpt.records import Event
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.store import Transaction


def test_lines_come_back_in_the_order_in_which_they_were_added(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", load_secret())

    def change(transaction: Transaction) -> None:
        for number in range(12):
            add_line(transaction, "r-1", Event(float(number), "note"))

    store.transact(change)
    lines = [event.at for _, event in Reader(store).history("r-1")]
    store.close()
    assert lines == [float(number) for number in range(12)]


def test_counters_of_two_runs_do_not_meet(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", load_secret())
    numbers = store.transact(lambda tx: [count(tx, r, "n") for r in ("a", "b", "a")])
    store.close()
    assert numbers == [1, 1, 2]
