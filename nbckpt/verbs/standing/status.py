"""``nbckpt status`` and ``nbckpt runs``: where each run stands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt.places import folder_bytes
from nbckpt.records import (
    Attempt,
    Lease,
    Mark,
    PlannedStep,
    RunRecord,
    RunState,
    StepRecord,
    StepState,
)
from nbckpt.runs.leases import standing
from nbckpt.verbs.finding.opening import require
from nbckpt.verbs.standing import waiting
from nbckpt.verbs.standing.looping import LoopStatus, loops

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.runs.history import Reader

GONE = {"free", "dead"}
TOLD = {StepState.FAILED, StepState.WAITING}
OVER = {"completed", "running", "finished", "cancelled"}
"""States in which there is nothing to go on with."""


class HolderState(TypedDict):
    """Who holds a run, or held it last."""

    pid: int
    host: str
    standing: str
    """``alive``, ``late``, ``dead``, ``free`` (given back) or ``unknown`` (elsewhere)."""
    since: float
    """Seconds since the epoch."""
    beat_age: float
    """Seconds since the last sign of life."""


class StepStatus(TypedDict):
    """Where a step stands."""

    number: int
    name: str
    state: str
    """``pending running completed failed interrupted waiting answered stale``; stale: it
    runs again, waiting: for a human, answered: one has spoken since."""
    seconds: float
    """Time that the body took, or has taken so far."""
    started_at: float
    attempt: int
    runs_again: str
    """Why it will not be skipped, as far as the records tell."""
    error: str
    environment: dict[str, str]
    """Package → version at its last completion."""


class CurrentStep(TypedDict):
    """The step that is running, or that the run died in."""

    step: str
    since: float
    seconds: float


class StoreState(TypedDict):
    """The store as a whole."""

    folder: str
    bytes: int
    authenticated: bool
    """False: made with another user's key; its text is shown and nothing is loaded."""


class Status(TypedDict):
    """What ``nbckpt status --json`` prints."""

    run: str
    notebook: str
    version: str
    state: str
    """``open running waiting answered interrupted failed completed frozen cancelled
    finished``; waiting: for a human, answered: nothing but to go on."""
    created_at: float
    holder: HolderState | None
    done: int
    total: int
    current: CurrentStep | None
    died_in: CurrentStep | None
    steps: list[StepStatus]
    loops: list[LoopStatus]
    questions: list[waiting.OpenQuestion]
    effects: list[waiting.OpenEffect]
    """Those of which it is not known whether they happened."""
    stops: list[waiting.Stopped]
    unknowns: list[waiting.OpenPoint]
    store: StoreState
    placement: dict[str, Any] | None
    """Where ``nbckpt run`` started it last: a `Placement`."""
    resume: str
    """The command that goes on with the run; empty if it is completed or running."""


class RunLine(TypedDict):
    """One run, as ``nbckpt runs --json`` lists it."""

    run: str
    notebook: str
    version: str
    state: str
    created_at: float
    done: int
    total: int
    holder: str
    """As `HolderState.standing`."""
    seconds: float
    """Time that the bodies of its steps took, each as it ran last."""
    times: dict[str, float]
    """The same by step, in order; those that were never begun are left out."""
    forked_from: str
    """The run that it was forked from; empty: none."""


@dataclass(frozen=True, slots=True)
class _Look:
    """All records of a run, read once."""

    run: RunRecord
    lease: Lease | None
    standing: str
    plan: tuple[PlannedStep, ...]
    records: dict[str, StepRecord]
    attempts: dict[str, Attempt]
    marks: dict[str, Mark]
    answered: set[str]
    asked: str
    now: float


def status(reader: Reader, run: RunRecord, now: float | None = None) -> Status:
    """Return where a run stands.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.
    now : float, optional
        Wall clock in seconds since the epoch.

    Returns
    -------
    Status
        JSON values.
    """
    look = _look(reader, run, time.time() if now is None else now)
    steps = [_step(look, planned) for planned in look.plan]
    running = _current(look, steps, "running")
    died = _current(look, steps, "interrupted")
    state = _run_state(look, [step["state"] for step in steps])
    placement = reader.placement(run.run_id)
    questions = waiting.open_questions(reader, run, look.now)
    effects = waiting.open_effects(reader, run)
    return Status(
        run=run.run_id,
        notebook=run.notebook,
        version=run.version,
        state=state,
        created_at=run.created_at,
        holder=_holder(look),
        done=_done(steps),
        total=len(steps),
        current=running,
        died_in=died if state == "interrupted" else None,
        steps=steps,
        loops=loops(reader, run.run_id),
        questions=questions,
        effects=effects,
        stops=waiting.open_stops(reader, run, questions, effects),
        unknowns=waiting.open_points(reader, run),
        store=_store(reader),
        placement=placement.to_json() if placement else None,
        resume="" if state in OVER else waiting.resume_command(run),
    )


def runs(reader: Reader, now: float | None = None) -> list[RunLine]:
    """Return all runs of a store, oldest first.

    Parameters
    ----------
    reader : Reader
        The store.
    now : float, optional
        Wall clock in seconds since the epoch.

    Returns
    -------
    list of RunLine
        JSON values.
    """
    require(reader.store)
    at = time.time() if now is None else now
    return [line(reader, run, at) for run in reader.runs()]


def _look(reader: Reader, run: RunRecord, now: float) -> _Look:
    """Read all records of a run."""
    lease, records = reader.lease(run.run_id), reader.steps(run.run_id)
    attempts = reader.attempts(run.run_id)
    plan = reader.plan(run.run_id).steps or _seen(records, attempts)
    marks = {step.name: reader.mark(run.run_id, step.name) for step in plan}
    word = standing(lease)
    answered = waiting.answered(reader, run, attempts)
    asked = waiting.asked_outside(reader, run, lease)
    return _Look(run, lease, word, plan, records, attempts, marks, answered, asked, now)


def _seen(
    records: dict[str, StepRecord], attempts: dict[str, Attempt]
) -> tuple[PlannedStep, ...]:
    """Return a plan made of what was attempted."""
    order = sorted(attempts.values(), key=lambda attempt: attempt.order)
    names = dict.fromkeys([*(attempt.step for attempt in order), *records])
    return tuple(PlannedStep(n, name, "") for n, name in enumerate(names, 1))


def _step(look: _Look, planned: PlannedStep) -> StepStatus:
    """Return where a step stands."""
    record = look.records.get(planned.name)
    attempt = look.attempts.get(planned.name)
    again = _runs_again(planned, record, look.marks[planned.name])
    state = _step_state(look, record, attempt)
    if state is StepState.COMPLETED and again:
        state = StepState.STALE
    return StepStatus(
        number=planned.number,
        name=planned.name,
        state=str(state),
        seconds=_seconds(look, state, record, attempt),
        started_at=attempt.started_at if attempt else 0.0,
        attempt=attempt.attempt if attempt else 0,
        runs_again=again,
        error=attempt.error if attempt and state in TOLD else "",
        environment=record.fingerprint.versions if record else {},
    )


def _step_state(
    look: _Look, record: StepRecord | None, attempt: Attempt | None
) -> StepState:
    """Return a step's state; what a dead holder left running was interrupted."""
    if attempt is None:
        return StepState.COMPLETED if record else StepState.PENDING
    if attempt.state is StepState.RUNNING and not _lives(look, attempt):
        return StepState.INTERRUPTED
    return StepState.ANSWERED if attempt.step in look.answered else attempt.state


def _lives(look: _Look, attempt: Attempt) -> bool:
    """Tell whether the process that began an attempt still holds the run."""
    token = look.lease.token if look.lease else None
    return attempt.token == token and look.standing not in GONE


def _runs_again(planned: PlannedStep, record: StepRecord | None, mark: Mark) -> str:
    """Return why a completed step will run again, as far as records tell."""
    if record is None:
        return ""
    if mark.rerun:
        return f"asked for: {mark.rerun}"
    if record.runs_again:
        return record.runs_again
    known = {"", record.fingerprint.code, *mark.accepted}
    return "" if planned.code in known else "its code changed"


def _seconds(
    look: _Look, state: StepState, record: StepRecord | None, attempt: Attempt | None
) -> float:
    """Return the time that a body took, or has taken so far."""
    if state in {StepState.COMPLETED, StepState.STALE}:
        return record.seconds if record else 0.0
    if attempt is None:
        return 0.0
    if state is StepState.RUNNING:
        return max(look.now - attempt.started_at, 0.0)
    # A process that died told no end; its last sign of life is the best that is known.
    last = attempt.ended_at or (look.lease.beat_at if look.lease else 0.0)
    return max(last - attempt.started_at, 0.0)


def _current(
    look: _Look, steps: Iterable[StepStatus], state: str
) -> CurrentStep | None:
    """Return the step that is running, or was interrupted last."""
    found = [step for step in steps if step["state"] == state]
    if not found:
        return None
    step = max(found, key=lambda step: look.attempts[step["name"]].order)
    return CurrentStep(
        step=step["name"], since=step["started_at"], seconds=step["seconds"]
    )


def _run_state(look: _Look, steps: list[str]) -> str:
    """Return where a run stands in one word."""
    if look.run.state in {RunState.FROZEN, RunState.FINISHED, RunState.CANCELLED}:
        return str(look.run.state)
    for word in ("running", "waiting", "failed", "answered", "interrupted"):
        if word in steps:
            return word
    if steps and all(step == "completed" for step in steps):
        return "completed"
    return "interrupted" if look.standing == "dead" else look.asked or "open"


def _done(steps: Iterable[StepStatus]) -> int:
    """Return how many steps are completed."""
    return sum(step["state"] == "completed" for step in steps)


def _holder(look: _Look) -> HolderState | None:
    """Return who holds a run."""
    lease = look.lease
    if lease is None:
        return None
    return HolderState(
        pid=lease.holder.pid,
        host=lease.holder.host,
        standing=look.standing,
        since=lease.taken_at,
        beat_age=max(look.now - lease.beat_at, 0.0),
    )


def _store(reader: Reader) -> StoreState:
    """Return what is to be known of a store."""
    folder = reader.store.folder
    return StoreState(
        folder=str(folder),
        bytes=folder_bytes(folder),
        authenticated=reader.store.trusted,
    )


def line(reader: Reader, run: RunRecord, now: float) -> RunLine:
    """Return a run's line.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.
    now : float
        Wall clock in seconds since the epoch.

    Returns
    -------
    RunLine
        JSON values.
    """
    look = _look(reader, run, now)
    steps = [_step(look, planned) for planned in look.plan]
    return RunLine(
        run=look.run.run_id,
        notebook=look.run.notebook,
        version=look.run.version,
        state=_run_state(look, [step["state"] for step in steps]),
        created_at=look.run.created_at,
        done=_done(steps),
        total=len(steps),
        holder=look.standing,
        seconds=sum(step["seconds"] for step in steps),
        times={s["name"]: s["seconds"] for s in steps if s["attempt"]},
        forked_from=look.run.forked_from,
    )
