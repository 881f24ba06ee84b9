"""What is stored of a loop over items: how far it is, and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass

from nbckpt.records.base import SCHEMA_VERSION, Record
from nbckpt.records.steps import Contents


@dataclass(frozen=True, slots=True)
class ItemError(Record):
    """An item that failed."""

    item: str
    error: str
    attempt: int


@dataclass(frozen=True, slots=True)
class NextInput(Record):
    """The item that is worked on, or comes next."""

    item: str
    text: str
    """Its short form for people."""


@dataclass(frozen=True, slots=True)
class LoopRecord(Record):
    """A loop over items, as of the items that are recorded as done."""

    run_id: str
    step: str
    loop: str
    """Its name in the step, or its number among the step's loops."""
    lineage: str
    """Attempts that go on with each other have the same; another begins the items anew."""
    code: str
    """Fingerprint of the step's body when an item was recorded last."""
    attempt: int
    total: int | None = None
    """Number of items if it is known."""
    done: int = 0
    failed: int = 0
    errors: tuple[ItemError, ...] = ()
    """The last of them; `failed` counts all."""
    next_input: NextInput | None = None
    ended: bool = False
    """Whether the loop came to its end."""
    rows: int = 0
    """Number of rows that list the items that are done."""
    kept: tuple[str, ...] = ()
    contents: Contents | None = None
    """What the kept names held after the last item that is recorded as done."""
    started_at: float = 0.0
    updated_at: float = 0.0
    schema_version: int = SCHEMA_VERSION
