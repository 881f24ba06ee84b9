"""Where the code that calls us stands, and what it may do there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import current
from nbckpt.errors import BadStep
from nbckpt.records import Question

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Begin and end without a session."""
    current.enter(None)
    yield
    current.enter(None)


def a_place(name: str) -> current.Place:
    found: Any = SimpleNamespace(name=name)
    return current.Place(found, found, found, found)


def test_nothing_runs_where_nbckpt_is_not_loaded() -> None:
    assert current.running() is None
    with pytest.raises(BadStep, match="%load_ext nbckpt"):
        current.session()
    with pytest.raises(BadStep, match="not loaded"):
        current.place("evidence")


def test_call_outside_of_a_step_is_refused_by_its_name() -> None:
    session: Any = SimpleNamespace()
    current.enter(session)
    assert current.session() is session
    with pytest.raises(BadStep, match=r"nbckpt\.check was called outside of a step"):
        current.place("check")


def test_step_runs_from_its_begin_to_its_end() -> None:
    session: Any = SimpleNamespace()
    current.enter(session)
    one, two = a_place("a"), a_place("b")
    current.begin(one)
    assert current.place("check") is one
    current.begin(two)
    assert current.running() is two
    current.end()
    assert current.running() is None


def test_two_bodies_gather_for_themselves() -> None:
    one, two = a_place("a"), a_place("b")
    one.gathered.notes.append("seen")
    one.gathered.refused["x"] = BadStep("x")
    assert two.gathered == current.Gathered()


def test_unloading_forgets_the_body_that_ran() -> None:
    session: Any = SimpleNamespace()
    current.enter(session)
    current.begin(a_place("a"))
    current.enter(None)
    assert current.running() is None


def test_item_is_empty_outside_of_items() -> None:
    assert current.item.get() == ""
    token = current.item.set("o-1")
    assert current.item.get() == "o-1"
    current.item.reset(token)


def test_question_is_shown_once() -> None:
    current.asked[:] = [Question("r", "i", "t")]
    assert [current.asked.pop().id] == ["i"]
    assert current.asked == []
