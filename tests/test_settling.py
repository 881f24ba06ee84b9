"""What people say: one transaction for each word, and the first one stands."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nbckpt import answers
from nbckpt.errors import AlreadySettled, NotFound
from nbckpt.people import settling
from nbckpt.records import (
    Advance,
    DecisionRecord,
    Note,
    Question,
    RunRecord,
    RunState,
    Unknown,
)
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKED = Question("r-1", "go", "Go on?", "a", "", ("yes", "no"), 1.0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / "s", load_secret())
    found.transact(lambda tx: tx.put("run/r-1", RunRecord("r-1").to_json()))
    yield found
    found.close()


def kinds(store: Store) -> list[str]:
    return [event.kind for _, event in Reader(store).history("r-1")]


def test_of_two_answers_the_first_stands_and_the_second_is_told_who(
    store: Store,
) -> None:
    store.transact(settling.question(ASKED))
    store.transact(settling.answer(ASKED, "yes", "ada", 2.0))
    with pytest.raises(AlreadySettled, match=r"'yes' by ada"):
        store.transact(settling.answer(ASKED, "no", "bob", 3.0))
    (found,) = Reader(store).questions("r-1")
    assert (found.answer, found.answered_by, found.answered_at) == ("yes", "ada", 2.0)
    assert kinds(store) == ["asked", "answered"]


GIVEN = Advance("yes", "ada", 0.5)
UNASKED = Question("r-1", "go", "", "a")


def test_answer_in_advance_counts_when_the_question_comes(store: Store) -> None:
    store.transact(settling.advance(UNASKED, GIVEN))
    assert Reader(store).questions("r-1") == []
    found = store.transact(settling.question(ASKED))
    assert (found.answer, found.answered_by, found.answered_at) == ("yes", "ada", 0.5)
    assert store.get(UNASKED.advance_key) is None
    assert kinds(store) == ["given", "asked", "answered"]
    assert store.transact(settling.question(ASKED)) == found
    assert len(kinds(store)) == 3


def test_answer_in_advance_that_is_no_option_answers_nothing_and_is_told(
    store: Store,
) -> None:
    store.transact(settling.advance(UNASKED, replace(GIVEN, word="maybe")))
    found = store.transact(settling.question(ASKED))
    assert not found.answered
    told = answers.as_asked(found, 0.0)
    assert "given in advance: 'maybe' by ada, which is no option" in told
    assert kinds(store) == ["given", "asked", "unfit"]
    done = store.transact(settling.answer(ASKED, "no", "bob", 3.0))
    assert (done.answer, done.unfit) == ("no", "")


def test_answer_to_another_text_does_not_count_and_is_told(store: Store) -> None:
    store.transact(settling.question(ASKED))
    store.transact(settling.answer(ASKED, "yes", "ada", 3.0))
    other = replace(ASKED, text="Delete 10000 rows?")
    found = store.transact(settling.question(other))
    assert not found.answered
    told = answers.as_asked(found, 0.0)
    assert f"the answer was 'yes' by ada when it was: {ASKED.text}" in told
    assert store.transact(settling.question(other)) == found


def test_answer_to_a_question_that_changed_meanwhile_is_refused(store: Store) -> None:
    store.transact(settling.question(ASKED))
    store.transact(settling.question(replace(ASKED, text="Delete 10000 rows?")))
    with pytest.raises(AlreadySettled, match="was asked anew: Delete 10000"):
        store.transact(settling.answer(ASKED, "yes", "ada", 3.0))


def test_answer_in_advance_is_of_its_step_and_run_only(store: Store) -> None:
    store.transact(settling.advance(UNASKED, GIVEN))
    for other in (replace(ASKED, step="b"), replace(ASKED, id="stop")):
        assert not store.transact(settling.question(other)).answered


def test_of_two_answers_in_advance_the_first_stands(store: Store) -> None:
    store.transact(settling.advance(UNASKED, GIVEN))
    store.transact(settling.advance(UNASKED, replace(GIVEN, by="bob", at=0.7)))
    with pytest.raises(AlreadySettled, match=r"'yes' by ada"):
        store.transact(settling.advance(UNASKED, replace(GIVEN, word="no")))
    assert kinds(store) == ["given"]


def test_of_many_answers_in_advance_at_once_exactly_one_wins(store: Store) -> None:
    def say(number: int) -> bool:
        given = Advance(f"word {number}", f"p{number}", 1.0)
        try:
            store.transact(settling.advance(UNASKED, given))
        except AlreadySettled:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(say, range(16))) == 1


def test_answer_comes_too_late_to_be_in_advance(store: Store) -> None:
    asked = store.transact(settling.question(ASKED))
    assert store.transact(settling.advance(UNASKED, GIVEN)) == asked
    assert kinds(store) == ["asked"]


def test_run_that_is_ended_takes_no_answer_in_advance(store: Store) -> None:
    ended = RunRecord("r-1", state=RunState.CANCELLED)
    store.transact(lambda tx: tx.put("run/r-1", ended.to_json()))
    with pytest.raises(AlreadySettled, match="nothing more is recorded"):
        store.transact(settling.advance(UNASKED, GIVEN))


def test_of_many_answers_at_once_exactly_one_wins(store: Store) -> None:
    store.transact(settling.question(ASKED))

    def say(number: int) -> bool:
        try:
            store.transact(settling.answer(ASKED, "yes", f"p{number}", 2.0))
        except AlreadySettled:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(say, range(24))) == 1
    assert kinds(store).count("answered") == 1


def test_question_asked_again_keeps_its_first_deadline_and_its_answer(
    store: Store,
) -> None:
    first = replace(ASKED, deadline=10.0)
    store.transact(settling.question(first))
    again = store.transact(settling.question(replace(ASKED, deadline=99.0)))
    assert again.deadline == 10.0
    store.transact(settling.answer(ASKED, "no", "ada", 11.0))
    assert store.transact(settling.question(ASKED)).answer == "no"
    _, line = Reader(store).history("r-1")[-1]
    assert line.detail["late"]


def test_answer_that_is_no_option_any_more_is_asked_for_again(store: Store) -> None:
    store.transact(settling.question(ASKED))
    store.transact(settling.answer(ASKED, "no", "ada", 2.0))
    changed = replace(ASKED, options=("yes", "later"))
    assert not store.transact(settling.question(changed)).answered
    assert kinds(store) == ["asked", "answered", "asked"]


def test_open_question_takes_its_new_wording(store: Store) -> None:
    store.transact(settling.question(ASKED))
    worded = replace(ASKED, text="Go on now?")
    assert store.transact(settling.question(worded)).text == "Go on now?"


def test_decision_that_stands_is_returned_and_not_replaced(store: Store) -> None:
    first = DecisionRecord("r-1", "cut", 1, by="ada")
    assert store.transact(settling.decision(first, None)) == first
    second = replace(first, value=2, by="bob")
    assert store.transact(settling.decision(second, b"x")) == first
    assert store.get_bytes("decided/r-1/cut") is None
    assert kinds(store) == ["decided"]


def test_point_is_settled_once(store: Store) -> None:
    store.transact(settling.unknown("r-1", Unknown(0, "which zone?")))
    store.transact(settling.settlement("r-1", 1, "UTC", "ada", 2.0))
    with pytest.raises(AlreadySettled, match="by ada"):
        store.transact(settling.settlement("r-1", 1, "CET", "bob", 3.0))
    with pytest.raises(NotFound, match="no open point 2"):
        store.transact(settling.settlement("r-1", 2, "x", "bob", 3.0))
    again = store.transact(settling.unknown("r-1", Unknown(0, "which zone?")))
    assert (again.number, again.settled, again.why) == (1, True, "UTC")


def test_note_is_kept_once_for_each_step(store: Store) -> None:
    for step in ("a", "b", "a"):
        store.transact(settling.note("r-1", Note("seen", step)))
    assert sorted(n.step for n in Reader(store).notes("r-1")) == ["a", "b"]


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.CANCELLED])
def test_nothing_more_is_said_of_a_run_that_is_over(
    store: Store, state: RunState
) -> None:
    store.transact(settling.question(ASKED))
    ended = RunRecord("r-1", state=state)
    store.transact(lambda tx: tx.put("run/r-1", ended.to_json()))
    before = kinds(store)
    for change in (
        settling.answer(ASKED, "yes", "ada", 2.0),
        settling.decision(DecisionRecord("r-1", "cut", 1), None),
        settling.unknown("r-1", Unknown(0, "x")),
        settling.note("r-1", Note("x")),
    ):
        with pytest.raises(AlreadySettled, match="nbckpt fork r-1"):
            store.transact(change)
    assert kinds(store) == before
