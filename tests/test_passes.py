"""Where a pass of a notebook begins, and what the one before left."""

from __future__ import annotations

import pytest

from nbckpt.inputs.passes import Passes


class Kernel:
    """What stands in a kernel, and passes over it."""

    def __init__(self) -> None:
        self.stands: dict[str, str] = {}
        self.passes = Passes()
        self.passes.look_at(lambda: dict(self.stands))

    def cell(self, step: str = "", **sets: str) -> None:
        self.passes.executing()
        if step:
            self.passes.enter(step)
        self.stands |= sets


def test_first_pass_finds_nothing_left() -> None:
    kernel = Kernel()
    kernel.passes.begin()
    for step in ("a", "", "b"):
        kernel.cell(step, x="1")
    assert kernel.passes.ended == {}


def test_notebook_that_begins_anew_finds_all_that_stood() -> None:
    kernel = Kernel()
    kernel.cell("a", x="1")
    kernel.cell(y="2")
    kernel.passes.begin()
    kernel.cell(x="3")
    kernel.passes.begin()
    kernel.cell("a")
    assert kernel.passes.ended == {"x": "1", "y": "2"}


def test_step_entered_twice_finds_what_stood_before_the_plain_cells_above_it() -> None:
    kernel = Kernel()
    kernel.cell("a", x="1")
    kernel.cell("b", y="2")
    kernel.cell(x="edited")
    kernel.cell("b")
    assert kernel.passes.ended == {"x": "1", "y": "2"}
    kernel.cell("a")
    assert kernel.passes.ended == {"x": "1", "y": "2"}
    kernel.cell("a")
    assert kernel.passes.ended == {"x": "edited", "y": "2"}


@pytest.mark.parametrize(
    ("recorded", "now", "left", "expected"),
    [
        ({"m.a": "1"}, {"m.a": "2"}, {"m.a": {"2"}}, {"m.a": "1"}),
        ({}, {"m.a": "2"}, {"m.a": {"2"}}, {}),
        ({"m.a": "1"}, {"m.a": "3"}, {"m.a": {"2"}}, {"m.a": "3"}),
        ({"m.b": "1"}, {"m.b": "5"}, {}, {"m.b": "1"}),
        ({}, {"m.b": "5"}, {"m.b": {"2"}}, {}),
        ({"m.b": "1"}, {"m.b": "6"}, {}, {"m.b": "6"}),
        ({"x": "1"}, {"x": "2"}, {}, {"x": "2"}),
    ],
    ids=[
        "left below",
        "new, left below",
        "left by no step",
        "left by the pass before",
        "new, left by the pass before",
        "set in this pass",
        "no module",
    ],
)
def test_state_that_cells_below_left_is_explained(
    recorded: dict[str, str],
    now: dict[str, str],
    left: dict[str, set[str]],
    expected: dict[str, str],
) -> None:
    passes = Passes()
    passes.ended = {"m.b": "5"}
    assert passes.explained(recorded, now, left) == expected


def test_step_that_is_tried_again_had_not_what_it_had_set_itself() -> None:
    kernel = Kernel()
    kernel.cell("a", x="before")
    kernel.passes.begun["a"] = {"x": "before", "v": "1"}
    kernel.stands |= {"x": "own", "y": "own"}
    kernel.cell("a")
    now = {"x": "own", "y": "own", "v": "2"}
    assert kernel.passes.tried_again("a", now) == {"x": "before", "v": "2"}
    assert kernel.passes.tried_again("new", now) == now
