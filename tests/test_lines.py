"""A history's lines are numbered and chained; one that is not as written is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.errors import StopForHuman
from nbckpt.records import Event, Mark
from nbckpt.runs import lines
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import set_mark
from nbckpt.runs.lines import add_line, broken, count, head
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nbckpt.store import Transaction

LINES = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store with a history of twelve lines."""
    store = Store(tmp_path / "s", load_secret())

    def change(transaction: Transaction) -> None:
        for number in range(1, LINES + 1):
            detail = {"some": number, "more": {10: "a", 9: (1, "\udcff")}}
            event = Event(float(number), "note", detail=detail)
            add_line(transaction, "r-1", event)

    store.transact(change)
    yield store
    store.close()


def key(number: int) -> str:
    return f"history/r-1/{number:010d}"


def edit(transaction: Transaction) -> None:
    transaction.put(key(5), {**transaction.get(key(5)), "reason": "another"})


def delete(transaction: Transaction) -> None:
    transaction.delete(key(5))


def swap(transaction: Transaction) -> None:
    one, other = transaction.get(key(5)), transaction.get(key(9))
    transaction.put(key(5), other)
    transaction.put(key(9), one)


def close_up(transaction: Transaction) -> None:
    """Take a line out and move those after it up."""
    for number in range(5, LINES):
        transaction.put(key(number), transaction.get(key(number + 1)))
    transaction.delete(key(LINES))
    end = transaction.get("counter/r-1/history")
    transaction.put("counter/r-1/history", {**end, "number": LINES - 1})


def append(transaction: Transaction) -> None:
    transaction.put(key(LINES + 1), Event(99.0, "note").to_json())


def append_counted(transaction: Transaction) -> None:
    append(transaction)
    end = transaction.get("counter/r-1/history")
    transaction.put("counter/r-1/history", {**end, "number": LINES + 1})


def cut_off(transaction: Transaction) -> None:
    """Take the last line away, and count one less."""
    transaction.delete(key(LINES))
    end = transaction.get("counter/r-1/history")
    transaction.put("counter/r-1/history", {**end, "number": LINES - 1})


def forget_all(transaction: Transaction) -> None:
    """Take the end away, as if there had been no line."""
    transaction.delete("counter/r-1/history")


def spoil(transaction: Transaction) -> None:
    transaction.put(key(5), ["no", "line"])


TAMPERED: list[tuple[Callable[[Any], None], str]] = [
    (edit, "line 5 is changed"),
    (delete, "line 5 is missing"),
    (swap, "line 5 is out of order: what belongs there is line 9"),
    (close_up, "line 5 is changed"),
    (append, "line 13 was added after the end, line 12"),
    (append_counted, "line 13 is changed"),
    (cut_off, "the end, line 11, is another"),
    (forget_all, "line 1 was added after the end, line 0"),
    (spoil, "line 5 is damaged"),
]


def test_lines_come_back_in_the_order_in_which_they_were_added(store: Store) -> None:
    found = [event.at for _, event in Reader(store).history("r-1")]
    assert found == [float(number) for number in range(1, LINES + 1)]


def test_counters_of_two_runs_do_not_meet(store: Store) -> None:
    numbers = store.transact(lambda tx: [count(tx, r, "n") for r in ("a", "b", "a")])
    assert numbers == [1, 1, 2]


def test_history_as_it_was_written_is_whole(store: Store) -> None:
    assert broken(store, "r-1") == ""
    assert broken(store, "r-2") == ""


@pytest.mark.parametrize(("tamper", "said"), TAMPERED)
def test_tampering_with_the_users_own_key_is_named(
    store: Store, tamper: Callable[[Transaction], None], said: str
) -> None:
    store.transact(tamper)
    assert broken(store, "r-1") == said


def test_line_that_was_not_sealed_with_the_key_is_damaged(store: Store) -> None:
    def poison(transaction: Transaction) -> None:
        transaction._cache.set(key(3), b"\0" * 40)

    store.transact(poison)
    assert broken(store, "r-1") == "line 3 is damaged"


def test_end_that_is_no_record_is_damaged(store: Store) -> None:
    store.transact(lambda tx: tx.put("counter/r-1/history", 12))
    assert broken(store, "r-1") == "the end of the history is damaged"


def test_archived_run_takes_no_line_and_no_mark(store: Store) -> None:
    store.transact(lambda tx: lines.close(tx, "r-1"))
    end = head(store, "r-1")

    def change(transaction: Transaction) -> None:
        transaction.put("step/r-1/a", {"changed": True})
        add_line(transaction, "r-1", Event(1.0, "note"))

    with pytest.raises(StopForHuman, match=r"r-1 is finished and archived.*--fresh"):
        store.transact(change)
    with pytest.raises(StopForHuman, match="archived"):
        set_mark(store, "r-1", "a", lambda _: Mark(rerun="me"))
    with pytest.raises(StopForHuman, match="archived"):
        store.transact(lambda tx: lines.close(tx, "r-1"))
    assert store.get("step/r-1/a") is None
    assert head(store, "r-1") == end
    assert broken(store, "r-1") == ""
