"""Claims: recorded before the change, once, and by folder when there are many."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nbckpt.inputs import claims
from nbckpt.inputs.claims import Claims
from nbckpt.records import Attempt, StepState


class Memory:
    """Stands for the journal: keeps what is claimed."""

    def __init__(self) -> None:
        self.claimed: list[tuple[str, bool]] = []

    def claim(self, attempt: Attempt, path: str, *, durable: bool = True) -> Attempt:
        self.claimed.append((path, durable))
        return replace(attempt, writes=(*attempt.writes, path))


class Others:
    """Stands for who wrote and read what."""

    def others(self, step: str) -> set[str]:
        return {"out.csv", f"of {step}"}

    def awaited(self, step: str) -> set[str]:
        return {"in.csv", "data/", f"before {step}"}


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def running(memory: Memory) -> Claims:
    found = Claims(memory)  # type: ignore[arg-type]
    attempt = Attempt("r", "s", 1, 1, 1, StepState.RUNNING, 1.0)
    found.start(attempt, Others())  # type: ignore[arg-type]
    return found


def test_nothing_is_claimed_before_a_step_begins(memory: Memory) -> None:
    Claims(memory).take("out.csv")  # type: ignore[arg-type]
    assert memory.claimed == []


@pytest.mark.parametrize("name", ["out.csv", "in.csv", "of s", "before s"])
def test_file_of_another_step_is_claimed_once_and_for_sure(
    memory: Memory, running: Claims, name: str
) -> None:
    running.take(name)
    running.take(name)
    assert memory.claimed == [(name, True)]


def test_file_that_nobody_knows_is_not_claimed(memory: Memory, running: Claims) -> None:
    running.take("new.csv")
    running.take("database/new.csv")
    assert memory.claimed == []


def test_new_name_in_a_listed_folder_is_claimed(
    memory: Memory, running: Claims
) -> None:
    running.take("data/new.csv")
    running.take("data/sub")
    assert memory.claimed == [("data/new.csv", False), ("data/sub", False)]


def test_claims_add_up(running: Claims) -> None:
    running.take("out.csv")
    running.take("data/new.csv")
    assert running._attempt is not None
    assert running._attempt.writes == ("out.csv", "data/new.csv")


def test_step_that_makes_many_files_takes_the_folder(
    memory: Memory, running: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MOST", 3)
    for number in range(10):
        running.take(f"data/{number}")
    names = [name for name, _ in memory.claimed]
    assert names == ["data/0", "data/1", "data/2", "data/"]
