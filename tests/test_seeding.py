"""Random streams count as inputs exactly when what came before can matter."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from nbckpt.records import SEEDED_BY_STEP, UNSEEDED
from nbckpt.state import ambient
from nbckpt.state.seeding import Seeding

if TYPE_CHECKING:
    from collections.abc import Callable


def begun() -> Seeding:
    seeding = Seeding()
    seeding.begin(ambient.capture())
    return seeding


def seed(seeding: Seeding, number: int) -> None:
    seeding.about_to_seed()
    random.seed(number)
    seeding.has_seeded([number])


def test_stream_that_is_seeded_first_is_the_steps_own() -> None:
    seeding = begun()
    seed(seeding, 3)
    assert seeding.own == {"random"}


def test_stream_that_is_drawn_from_first_is_not_the_steps_own() -> None:
    seeding = begun()
    random.gauss(0, 1)
    seed(seeding, 3)
    assert seeding.own == set()


def test_function_that_only_draws_does_not_pass_for_one_that_seeds() -> None:
    seeding = begun()
    seeding.about_to_seed()
    random.gauss(0, 1)
    seeding.has_seeded([3])
    assert seeding.own == set()


def test_stream_seeded_twice_stays_the_steps_own() -> None:
    seeding = begun()
    seed(seeding, 3)
    random.gauss(0, 1)
    seed(seeding, 4)
    assert seeding.own == {"random"}


def test_next_step_begins_without_streams_of_its_own() -> None:
    seeding = begun()
    seed(seeding, 3)
    seeding.begin(ambient.capture())
    assert seeding.own == set()


@pytest.mark.parametrize(
    ("prepare", "recorded", "expected"),
    [
        (lambda _: None, "d", UNSEEDED),
        (lambda seeding: seeding.mark(["random"]), UNSEEDED, "digest"),
        (lambda seeding: seeding.mark(["random"]), SEEDED_BY_STEP, SEEDED_BY_STEP),
        (lambda _: None, SEEDED_BY_STEP, SEEDED_BY_STEP),
    ],
    ids=["chance", "seeded meanwhile", "own, seeded before", "own"],
)
def test_stream_compares_with_what_was_recorded(
    prepare: Callable[[Seeding], None], recorded: str, expected: str
) -> None:
    seeding, state = Seeding(), ambient.capture()
    prepare(seeding)
    digest = ambient.stream_digests(state)["random"]
    found = seeding.compared({"random": recorded}, state)
    assert found == {"random": digest if expected == "digest" else expected}


def test_plain_cell_that_seeds_makes_the_stream_an_input() -> None:
    seeding = Seeding()
    seeding.note_source("random.seed(1)")
    random.seed(random.getrandbits(64))
    seeding.notice()
    state = ambient.capture()
    assert seeding.digests(["random"], state) == {
        "random": ambient.stream_digests(state)["random"]
    }
