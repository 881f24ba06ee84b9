"""From the records of a run to what a panel shows of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nbckpt.errors import NbckptError
from nbckpt.panel.view import LoopView, RunView, State, StepView
from nbckpt.plan import read_plan
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.standing.status import status
from nbckpt.verbs.standing.waiting import resume_command

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.records import RunRecord, StepRecord
    from nbckpt.runs.history import Reader
    from nbckpt.verbs.standing.looping import LoopStatus
    from nbckpt.verbs.standing.status import StepStatus

STATES = {
    "pending": State.PENDING,
    "running": State.RUNNING,
    "completed": State.DONE,
    "failed": State.FAILED,
    "interrupted": State.INTERRUPTED,
    "cancelled": State.INTERRUPTED,
    "waiting": State.WAITING,
    "answered": State.ANSWERED,
    "stale": State.STALE,
}
MOST_RUNS = 3
"""Earlier runs in which the time of a step is looked for."""
MOST_EVIDENCE = 12
DIGITS = 12
"""Letters of a digest that are shown."""
NOT_YET = "not verified in this kernel yet"


def look(reader: Reader, run: RunRecord) -> RunView:
    """Return what the records tell of a run.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    RunView
        No step counts as verified: that is known only to the kernel that did it.
    """
    found, records = status(reader, run), reader.steps(run.run_id)
    reasons, seconds = _reasons(reader, run), _seconds(reader, run)
    steps = tuple(
        _step(step, records.get(step["name"]), reasons, seconds, found["loops"])
        for step in found["steps"]
    )
    resume = resume_command(run) if run.notebook else ""
    return RunView(run.run_id, steps, at=time.time(), resume=resume)


def look_at_file(notebook: Path | None) -> RunView:
    """Return the steps of a notebook of which nothing ran yet.

    Parameters
    ----------
    notebook : Path or None
        Its file; None: nobody knows it.

    Returns
    -------
    RunView
        Without steps if the file tells none.
    """
    if notebook is None or notebook.suffix != ".ipynb":
        return RunView()
    try:
        plan = read_plan(read_sources(notebook), parse_body)
    except NbckptError:
        return RunView()
    return RunView("", tuple(StepView(s.number, s.name) for s in plan.steps))


def evidence(record: StepRecord) -> tuple[str, ...]:
    """Return the evidence of a completed step, a line for each piece.

    Parameters
    ----------
    record : StepRecord
        Its record.

    Returns
    -------
    tuple of str
        The first of them; ``nbckpt show STEP`` tells all.
    """
    found = record.evidence
    pieces = [
        f"file {path} {digest[:DIGITS]}" if digest else f"no file {path}"
        for path, digest in found.files.items()
    ]
    pieces += [f"check {check}" for check in found.checks]
    pieces += [f"said to be true: {name}" for name in found.confirmed]
    pieces += [f"{name} = {value!r}" for name, value in found.learned.items()]
    pieces += [f"note (weaker): {found.note}"] if found.note else []
    if len(pieces) > MOST_EVIDENCE:
        more = len(pieces) - MOST_EVIDENCE
        pieces[MOST_EVIDENCE:] = [f"and {more} more: nbckpt show {record.step}"]
    return tuple(pieces)


def completed(step: StepView, record: StepRecord, state: State, why: str) -> StepView:
    """Return a step as its record tells it.

    Parameters
    ----------
    step : StepView
        As it was shown before.
    record : StepRecord
        Its record.
    state : State
        `State.SKIPPED` if it was verified just now.
    why : str
        Why it ran; empty if it did not.

    Returns
    -------
    StepView
        A step that can't be kept is told as running again, with the reason.
    """
    is_skipped = state is State.SKIPPED
    again = record.runs_again and not is_skipped
    return StepView(
        number=step.number,
        name=step.name,
        state=State.AGAIN if again else state,
        seconds=record.seconds,
        expected=record.seconds,
        saved=record.seconds if is_skipped else 0.0,
        why=record.runs_again if again else why,
        evidence=evidence(record),
        loops=step.loops,
    )


def _step(
    found: StepStatus,
    record: StepRecord | None,
    reasons: dict[str, str],
    seconds: dict[str, float],
    loops: list[LoopStatus],
) -> StepView:
    """Return one step as its records tell it."""
    name, state = found["name"], STATES[found["state"]]
    step = StepView(
        number=found["number"],
        name=name,
        state=state,
        seconds=found["seconds"],
        started_at=found["started_at"],
        expected=seconds.get(name, 0.0),
        why=found["error"] or found["runs_again"],
        loops=tuple(_loop(loop) for loop in loops if _is_shown(loop, name)),
    )
    if record is None:
        return step
    if state is State.DONE:
        ran = f"ran: {reasons[name]}; " if name in reasons else ""
        return completed(step, record, state, f"{ran}{NOT_YET}")
    is_again = state is State.STALE and step.why == record.runs_again
    return completed(step, record, state, "") if is_again else step


def _is_shown(loop: LoopStatus, step: str) -> bool:
    """Tell whether a loop is one of a step's own, not one inside an item."""
    return loop["step"] == step and ":" not in loop["loop"]


def _loop(loop: LoopStatus) -> LoopView:
    """Return how far a loop is."""
    return LoopView(loop["loop"], loop["done"], loop["total"], loop["failed"])


def _reasons(reader: Reader, run: RunRecord) -> dict[str, str]:
    """Return why the body of each step ran last."""
    lines = reader.history(run.run_id)
    return {event.step: event.reason for _, event in lines if event.kind == "started"}


def _seconds(reader: Reader, run: RunRecord) -> dict[str, float]:
    """Return how long each step took last, in this run or in one before."""
    others = [
        other.run_id
        for other in reversed(reader.runs())
        if other.notebook == run.notebook and other.run_id != run.run_id
    ]
    found: dict[str, float] = {}
    for run_id in (run.run_id, *others[:MOST_RUNS]):
        for _, row in reader.store.scan(f"step/{run_id}/"):
            found.setdefault(row["step"], row["seconds"])
    return found
