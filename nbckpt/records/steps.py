"""What is stored of a step: attempts, checkpoint once completed, and its Git worktree."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from nbckpt.records.base import SCHEMA_VERSION, Record

UNSEEDED = "unseeded"
"""A random stream that nobody had seeded before the step: its state was chance."""
SEEDED_BY_STEP = "seeded by the step"
"""A random stream that the step seeds before it draws: its state before is no matter."""


class StepState(enum.StrEnum):
    """Where a step of a run stands.

    ::

        PENDING → RUNNING → COMPLETED | FAILED | INTERRUPTED | WAITING | CANCELLED
        COMPLETED → VERIFIED (skipped) or STALE (runs again)
    """

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    """For a person: a question without an answer, an effect of unknown outcome."""
    ANSWERED = "answered"
    """A person has said since what it waited for; never recorded."""
    CANCELLED = "cancelled"
    VERIFIED = "verified"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Worktree(Record):
    """A Git worktree as a step found it."""

    path: str = ""
    """Its top folder; empty: of another machine, and not compared."""
    branch: str = ""
    """Empty: a commit was checked out without a branch."""
    commit: str = ""
    """Empty: none yet, or it could not be told."""
    changed: tuple[str, ...] | None = None
    """Tracked files that differ from the commit, the first of them; None: not known."""


@dataclass(frozen=True, slots=True)
class Fingerprint(Record):
    """All that a step's result depends on; each part by value."""

    code: str = ""
    options: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    """Name → digest of its value; functions and classes by definition."""
    sharing: dict[str, str] = field(default_factory=dict)
    """Variables, joined by commas, that share objects of which the step changes some."""
    modules: dict[str, str] = field(default_factory=dict)
    """Local module → digest of its source."""
    files: dict[str, str] = field(default_factory=dict)
    """Path → digest of its content, before the step."""
    folders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Folder that the step listed → names in it."""
    globs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Pattern that the step looked for → paths that matched."""
    working_folder: tuple[str, ...] = ()
    """Ways to the folder that relative paths were told from: from where the kernel began,
    and from the notebook. Empty: there were none."""
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
    learned: dict[str, Any] = field(default_factory=dict)
    """What the body told by `evidence`: name → JSON values, such as an identifier."""
    confirmed: tuple[str, ...] = ()
    """What the body told by `check` to be true."""
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
    worktree: Worktree | None = None
    """The Git worktree that it found."""
