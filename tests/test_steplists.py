"""A changed list of steps is told in words: renamed, added, removed, moved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbckpt.records import PlannedStep
from nbckpt.runs.steplists import changes, renamed


def steps(*names: str) -> list[PlannedStep]:
    """Return steps: ``name`` or ``name=code``."""
    parts = [name.partition("=") for name in names]
    return [
        PlannedStep(number, name, code or f"code of {name}")
        for number, (name, _, code) in enumerate(parts, 1)
    ]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("a b c", "a b c", []),
        ("a b c", "a b=other c", []),
        ("", "a", ["added a"]),
        ("a b", "a b c d", ["added c, d"]),
        ("a b c", "a c", ["removed b"]),
        ("a b c", "c a b", ["moved c"]),
        ("a b c d", "b c d a", ["moved a"]),
        ("a=1 b", "z=1 b", ["renamed a to z"]),
        ("a=1 b", "b z=1", ["renamed a to z", "moved b"]),
        ("a=1 b c", "d z=1 c", ["renamed a to z", "added d", "removed b"]),
        ("a=1", "z=2", ["added z", "removed a"]),
        ("a=1 b=1 c", "y=1 z=1 c", ["added y, z", "removed a, b"]),
        ("a=1 b", "y=1 z=1 b", ["added y, z", "removed a"]),
    ],
)
def test_change_is_told_in_words(before: str, now: str, told: list[str]) -> None:
    assert changes(steps(*before.split()), steps(*now.split())) == told


def test_step_of_the_same_code_that_stays_is_not_taken_for_a_new_name() -> None:
    assert renamed(steps("a=1", "b=1"), steps("a=1", "c=1")) == {"b": "c"}
    assert renamed(steps("a=1", "b=1"), steps("b=1")) == {}


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(NAMES, NAMES)
def test_nothing_is_told_only_of_equal_lists(before: list[str], now: list[str]) -> None:
    assert (changes(steps(*before), steps(*now)) == []) == (before == now)


@given(NAMES, NAMES)
def test_each_name_is_told_at_most_once(before: list[str], now: list[str]) -> None:
    told = changes(steps(*before), steps(*now))
    names = [name for text in told for name in text.split(" ", 1)[1].split(", ")]
    assert len(names) == len(set(names))
    assert set(before) ^ set(now) <= set(names)
