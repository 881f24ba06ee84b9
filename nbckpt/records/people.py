"""What is stored of what people said: decisions, open points, notes, questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nbckpt.records.base import Record


@dataclass(frozen=True, slots=True)
class DecisionRecord(Record):
    """A decision that stands for the whole run."""

    run_id: str
    name: str
    value: Any = None
    """JSON values; None if `encoded`."""
    encoded: bool = False
    """Whether the value lies beside, as bytes: it is no exact JSON."""
    reason: str = ""
    step: str = ""
    """The step that it was made in; empty: a plain cell, or from outside."""
    by: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Unknown(Record):
    """An open point, listed until it is settled."""

    number: int
    text: str
    step: str = ""
    by: str = ""
    at: float = 0.0
    settled: bool = False
    why: str = ""
    """What settled it."""
    settled_by: str = ""
    settled_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Note(Record):
    """A written note: evidence of the weaker kind."""

    text: str
    step: str = ""
    by: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Question(Record):
    """A question to a person, and the answer once it is there."""

    run_id: str
    id: str
    """Its name, or a digest of its text; within one step, with the item."""
    text: str
    step: str = ""
    """Empty: it was asked in a plain cell."""
    item: str = ""
    options: tuple[Any, ...] = ()
    asked_at: float = 0.0
    deadline: float = 0.0
    """Wall clock in seconds since the epoch; 0: none."""
    answered: bool = False
    answer: Any = None
    answered_by: str = ""
    answered_at: float = 0.0
    unfit: str = ""
    """Why an answer does not count: it is no option, or was given to another text."""

    @property
    def key(self) -> str:
        """Where it lies in the store; ``-`` is the name of no step."""
        return f"question/{self.run_id}/{self.step or '-'}/{self.id}"

    @property
    def advance_key(self) -> str:
        """Where an answer lies that is given before it is asked."""
        return f"advance/{self.run_id}/{self.step or '-'}/{self.id}"


@dataclass(frozen=True, slots=True)
class Advance(Record):
    """An answer to a question that nobody has asked yet."""

    word: str
    """As it was written; what it means is told once the options are known."""
    by: str = ""
    at: float = 0.0
