"""What is stored: frozen records, and their text form.

Only shapes live here. Who writes them and in what order is `nbckpt.journal`'s, where
they lie is `nbckpt.store`'s.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal, Self

SCHEMA_VERSION = 1
UNSEEDED = "unseeded"
"""A random stream that nobody had seeded before the step: its state was chance."""
SEEDED_BY_STEP = "seeded by the step"
"""A random stream that the step seeds before it draws: its state before is no matter."""

Overlap = Literal["skip", "replace", "concurrent"]


class StepState(enum.StrEnum):
    """Where a step of a run stands.

    ::

        PENDING → RUNNING → COMPLETED | FAILED | INTERRUPTED
        COMPLETED → VERIFIED (skipped) or STALE (runs again)
    """

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    VERIFIED = "verified"
    STALE = "stale"


class RunState(enum.StrEnum):
    """Where a run stands."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Record:
    """Base of all records: to and from JSON text."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values.

        Returns
        -------
        dict
            Keys are the field names.
        """
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Build the record from what `to_json` gave.

        Parameters
        ----------
        data : dict
            Keys are the field names; unknown ones are an error.

        Returns
        -------
        Record
            An equal record.

        Raises
        ------
        TypeError
            If a key is unknown or a needed one is missing.
        """
        kind: Any = cls
        hints = _hints(kind)
        return cls(
            **{key: _revive(hints.get(key), value) for key, value in data.items()}
        )


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of a record's fields, found out once."""
    return typing.get_type_hints(cls)


def _revive(hint: Any, value: Any) -> Any:
    """Turn JSON lists and dicts into the tuples, enums and records of a field."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _revive(args[0], value)
    if origin is tuple:
        return tuple(_revive(args[0], item) for item in value)
    if origin is dict:
        return {key: _revive(args[1], item) for key, item in value.items()}
    return _revive_one(hint, value) if isinstance(hint, type) else value


def _revive_one(kind: type, value: Any) -> Any:
    """Turn one JSON value into a record or an enum; leave another as it is."""
    if issubclass(kind, Record):
        return kind.from_json(value)
    return kind(value) if issubclass(kind, enum.Enum) else value


def dumps(data: Any) -> bytes:
    """Return JSON values as bytes that are equal for equal values.

    Parameters
    ----------
    data : object
        JSON values.

    Returns
    -------
    bytes
        UTF-8, keys sorted.
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def loads(data: bytes) -> Any:
    """Return the JSON values in bytes.

    Parameters
    ----------
    data : bytes
        What `dumps` gave.

    Returns
    -------
    object
        JSON values.
    """
    return json.loads(data.decode("utf-8", "surrogatepass"))


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


@dataclass(frozen=True, slots=True)
class Fingerprint(Record):
    """All that a step's result depends on; each part by value."""

    code: str = ""
    options: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Name → digest of its value; functions and classes by definition."""
    modules: dict[str, str] = field(default_factory=dict)
    """Local module → digest of its source."""
    files: dict[str, str] = field(default_factory=dict)
    """Path → digest of its content, before the step."""
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Folder that the step listed → names in it."""
    globs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Pattern that the step looked for → paths that matched."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variable → keyed digest of its value."""
    versions: dict[str, str] = field(default_factory=dict)
    """Package → version, and Python's."""
    random: dict[str, str] = field(default_factory=dict)
    """Random stream that the step moved → digest of its state before, or why it is no input."""
    unknown: str = ""
    """Why a part could not be computed; such a fingerprint never matches."""


@dataclass(frozen=True, slots=True)
class Evidence(Record):
    """What can be checked against the world at resume."""

    files: dict[str, str] = field(default_factory=dict)
    """Path → digest of its content; empty digest: must not exist."""
    checks: tuple[str, ...] = ()
    note: str = ""
    made: tuple[str, ...] = ()
    """Folders that the step made, moved or removed, and files that an earlier attempt of
    it left: not verified, but their names are its doing."""


@dataclass(frozen=True, slots=True)
class Stretch(Record):
    """A run of bytes in a pack."""

    pack: str
    offset: int
    length: int
    digest: str
    """BLAKE3 of the bytes."""


@dataclass(frozen=True, slots=True)
class Value(Record):
    """Digest of a value, and what it rests on."""

    digest: str
    unknown: str = ""
    """Type of a part that can't be compared."""
    reached: tuple[str, ...] = ()
    """Global names that functions inside it use."""
    modules: tuple[str, ...] = ()
    """Modules that its types and functions come from."""


@dataclass(frozen=True, slots=True)
class Contents(Record):
    """What a checkpoint holds, by name."""

    manifest: Stretch | None = None
    """Where the table of all chunks lies."""
    packs: tuple[str, ...] = ()
    """Every pack that is needed to read it."""
    bound: tuple[str, ...] = ()
    """Names that the step made or changed."""
    deleted: tuple[str, ...] = ()
    values: dict[str, Value] = field(default_factory=dict)
    """Name → digest of its value as an input of later steps."""
    size: int = 0
    """Bytes of all values, shared chunks included."""


@dataclass(frozen=True, slots=True)
class StepRecord(Record):
    """A completed step: the checkpoint."""

    run_id: str
    step: str
    attempt: int
    token: int
    order: int
    """Grows with every completion of the run; the last writer owns a file."""
    fingerprint: Fingerprint
    evidence: Evidence
    contents: Contents
    started_at: float
    completed_at: float
    seconds: float
    """Time that the body took; saved whenever the step is skipped."""
    runs_again: str = ""
    """Why the step can't be skipped: variable path and reason."""
    schema_version: int = SCHEMA_VERSION

    @property
    def seeded(self) -> set[str]:
        """Random streams whose state the notebook had set before this step."""
        return {n for n, d in self.fingerprint.random.items() if d != UNSEEDED}

    @property
    def drawn(self) -> set[str]:
        """Random streams whose state before this step is an input of it."""
        chance = {UNSEEDED, SEEDED_BY_STEP}
        return {n for n, d in self.fingerprint.random.items() if d not in chance}


@dataclass(frozen=True, slots=True)
class Attempt(Record):
    """One try of a step; written before its body runs."""

    run_id: str
    step: str
    attempt: int
    token: int
    order: int
    state: StepState
    started_at: float
    pid: int = 0
    ended_at: float = 0.0
    error: str = ""
    writes: tuple[str, ...] = ()
    """Files that the attempt said it writes, or took over from an earlier step."""


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
