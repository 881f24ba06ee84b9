"""What is stored of an effect: an external write that must not happen twice."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Literal

from nbckpt.records.base import SCHEMA_VERSION, Record

Word = Literal["done", "not-done", "redo"]


class EffectState(enum.StrEnum):
    """Where an effect stands.

    ::

        INTENT → DONE | FAILED

    INTENT without either, found by a later call, is an outcome that is not known.
    """

    INTENT = "intent"
    """It was about to happen; whether it did is not known."""
    DONE = "done"
    FAILED = "failed"
    """Known not to have happened."""


@dataclass(frozen=True, slots=True)
class Answer(Record):
    """What a person said of an effect whose outcome was not known."""

    word: Word
    who: str
    at: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class EffectRecord(Record):
    """One effect of a run."""

    run_id: str
    step: str
    name: str
    item: str
    """Key of the item that it belongs to; empty outside of items."""
    key: str
    """Idempotency key: the same in every attempt and rerun of this run."""
    state: EffectState
    at: float
    """When it was about to happen last; when it was found, if it was never begun here."""
    first_at: float
    """When it was about to happen first, since it was last known not to have."""
    attempt: int
    token: int
    kind: Literal["call", "transaction"] = "call"
    request: dict[str, str] | None = None
    """Part of the request → digest of its value; None: any request is taken for it."""
    settled_at: float = 0.0
    how: str = ""
    """How it is known to be done: ``performed``, ``found``, ``said`` by a person, ``row``."""
    value: Any = None
    """The outcome, if it is a JSON value."""
    coded: bool = False
    """Whether the outcome is kept as bytes under a key of its own."""
    unkept: str = ""
    """Why the outcome could not be kept."""
    error: str = ""
    """What the call raised last."""
    answer: Answer | None = None
    asked: int = 0
    """The attempt that asked for it last, once it was done."""
    schema_version: int = SCHEMA_VERSION

    @property
    def stands(self) -> bool:
        """Whether it happened or may have, and nobody said to do it again."""
        is_redone = self.answer is not None and self.answer.word == "redo"
        return self.state is not EffectState.FAILED and not is_redone

    @property
    def is_in_doubt(self) -> bool:
        """Whether it stands, and nobody said what is to count."""
        return self.stands and self.answer is None
