"""What is stored of a run: who holds it, its plan, its history."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Literal

from nbckpt.records.base import SCHEMA_VERSION, Record

Overlap = Literal["skip", "replace", "concurrent"]


class RunState(enum.StrEnum):
    """Where a run stands."""

    OPEN = "open"
    COMPLETED = "completed"
    FROZEN = "frozen"
    CANCELLED = "cancelled"
    FINISHED = "finished"
    """Archived; immutable."""


@dataclass(frozen=True, slots=True)
class Holder(Record):
    """The process that holds a run."""

    host: str
    boot: str
    """Identifier of this boot of the machine."""
    namespace: str
    """Process-id namespace, so that equal pids of two containers differ."""
    pid: int
    started: float
    """Start time of the process in seconds since the epoch, as the OS tells it."""
    nonce: str
    """Random; tells two holders in one process apart."""
    ticks: int = 0
    """Start time in clock ticks since the boot: exact; 0 if nothing told it."""


@dataclass(frozen=True, slots=True)
class Displaced(Record):
    """A holder that was replaced and may still run."""

    holder: Holder
    duration: float
    """Of its lease, in seconds."""


@dataclass(frozen=True, slots=True)
class Placement(Record):
    """Where a run was started last: the scheduler's word, apart from the work."""

    host: str
    folder: str
    notebook: str
    from_step: str
    """The first step that was not completed then; empty if all were."""
    command: str
    by: str
    at: float
    """Seconds since the epoch."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Name → text of the value; a start without any goes by them."""
    withheld: tuple[str, ...] = ()
    """Those whose value holds a credential, and so is not stored."""


@dataclass(frozen=True, slots=True)
class Lease(Record):
    """Who may write to a run, and under which fencing token."""

    token: int
    """Fencing token; it only grows."""
    holder: Holder
    beat: int = 0
    beat_at: float = 0.0
    """Wall clock of the last beat in seconds, for people; no decision rests on it."""
    duration: float = 30.0
    """Seconds without a beat after which a holder on another host counts as gone."""
    released: bool = False
    why: str = ""
    taken_at: float = 0.0
    before_at: float = 0.0
    """Last beat of the holder before."""


@dataclass(frozen=True, slots=True)
class PlannedStep(Record):
    """One line of the plan, fixed before the first body runs."""

    number: int
    name: str
    code: str
    """Fingerprint of the body."""
    checks: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    before: str = ""
    """Fingerprint of the plain cells above it."""


@dataclass(frozen=True, slots=True)
class PlanRecord(Record):
    """The steps of a notebook in order."""

    steps: tuple[PlannedStep, ...] = ()
    source: Literal["notebook", "seen"] = "seen"
    """From the notebook file, or grown as the cells were seen."""
    written_at: float = 0.0


@dataclass(frozen=True, slots=True)
class RunRecord(Record):
    """One run of a notebook."""

    run_id: str
    notebook: str = ""
    """Path of the notebook relative to the store's folder; empty if unknown."""
    version: str = ""
    state: RunState = RunState.OPEN
    created_at: float = 0.0
    schema_version: int = SCHEMA_VERSION
    why: str = ""
    made_with: dict[str, str] = field(default_factory=dict)
    """Versions of nbckpt and Python that began it."""
    given: dict[str, str] = field(default_factory=dict)
    """Parameters that papermill gave it last: name → text of the value."""
    forked_from: str = ""
    """The run that it has its first records from; empty: none."""

    @property
    def is_ended(self) -> bool:
        """Whether nothing more is recorded of it: archived, cancelled or frozen."""
        return self.state in {RunState.FINISHED, RunState.CANCELLED, RunState.FROZEN}


@dataclass(frozen=True, slots=True)
class Mark(Record):
    """What a person said of a step."""

    accepted: tuple[str, ...] = ()
    """Code fingerprints that count as unchanged."""
    rerun: str = ""
    """Who asked when for another run of the body; empty: nobody."""


@dataclass(frozen=True, slots=True)
class Event(Record):
    """One line of a run's history."""

    at: float
    kind: str
    step: str = ""
    reason: str = ""
    seconds: float = 0.0
    token: int = 0
    detail: dict[str, Any] = field(default_factory=dict)
    chain: str = ""
    """Digest of the chain before and of the line: see `nbckpt.keys.link`."""


@dataclass(frozen=True, slots=True)
class Head(Record):
    """The end of a run's history; written with each line."""

    number: int = 0
    """Number of the last line."""
    chain: str = ""
    """Its digest, which rests on all lines before."""
    closed: bool = False
    """The run is archived: nothing is added any more."""
