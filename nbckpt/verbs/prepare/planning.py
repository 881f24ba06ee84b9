"""``nbckpt plan``: the steps, and what would happen to each; nothing runs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from nbckpt.inputs.proofs import Paths
from nbckpt.plan import wrong_lines
from nbckpt.runs.leases import describe, is_held
from nbckpt.runs.steplists import changes
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.finding.starting import find_start
from nbckpt.verbs.forms.pages import Page, Part, Table, Tree, listed
from nbckpt.verbs.prepare.knowledge import known_of
from nbckpt.verbs.prepare.linting import notices
from nbckpt.verbs.prepare.outline import Outlined, outline
from nbckpt.verbs.prepare.prediction import Prediction, predict
from nbckpt.verbs.standing.waiting import (
    answering,
    open_effects,
    open_questions,
    settling,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbckpt.errors import BadStep
    from nbckpt.records import PlannedStep, PlanRecord, RunRecord
    from nbckpt.runs.history import Reader
    from nbckpt.runs.identity import Wish


class PlanLine(TypedDict):
    """One step of a plan."""

    number: int
    name: str
    prediction: str
    """``run``, ``skip``, ``unknown``, or ``stop`` for a human."""
    reason: str
    checks: list[str]
    reads: list[str]
    writes: list[str]
    effects: list[str]
    notices: list[str]
    """What ``nbckpt lint`` finds in it."""


class Plan(TypedDict):
    """What ``nbckpt plan --json`` prints."""

    run: str
    """Empty: the next run begins a new one."""
    notebook: str
    notes: list[str]
    """What concerns the run as a whole: it is held, of another version, not yours, its
    list of steps changed; and cells at which it stops."""
    steps: list[PlanLine]


@dataclass(frozen=True, slots=True)
class _Target:
    """The notebook, and the run that it would go on with."""

    notebook: Path
    steps: Sequence[Outlined]
    wrong: Sequence[BadStep]
    """Step lines that can't be read."""
    start: Wish
    run_id: str
    notices: dict[str, list[str]]


def plan_notebook(reader: Reader, notebook: Path, run_id: str = "") -> Plan:
    """Return what a run of a notebook would do.

    Parameters
    ----------
    reader : Reader
        The store, which may not exist yet.
    notebook : Path
        An ``.ipynb`` file.
    run_id : str, optional
        The run; without it, the one that the notebook names or is in.

    Returns
    -------
    Plan
        With a prediction for each step.

    Raises
    ------
    BadNotebook
        If the file is missing, empty or broken.
    BadStep
        If the start line is wrong. A wrong step line becomes a note.
    NotFound
        If there is no such run.
    """
    target = _target(reader, notebook, run_id)
    found = predictions(reader, notebook, target.run_id, target.steps)
    return Plan(
        run=target.run_id,
        notebook=str(notebook),
        notes=_notes(reader, target),
        steps=[
            _line(s.planned, found[s.step.name], target.notices.get(s.step.name, []))
            for s in target.steps
        ],
    )


def plan_run(reader: Reader, run: RunRecord) -> Plan:
    """Return the plan of a run: with predictions if its notebook is where it was.

    Parameters
    ----------
    reader : Reader
        The store.
    run : RunRecord
        The run.

    Returns
    -------
    Plan
        As recorded if the notebook is not known.
    """
    notebook = notebook_of(reader, run)
    if notebook is not None:
        return plan_notebook(reader, notebook, run.run_id)
    nothing = Prediction("unknown", "its notebook is not known here")
    steps = [_line(planned, nothing, []) for planned in reader.plan(run.run_id).steps]
    return Plan(run=run.run_id, notebook=run.notebook, notes=[], steps=steps)


def notebook_of(reader: Reader, run: RunRecord) -> Path | None:
    """Return the notebook file of a run, if it is where it was or beside the store.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run : RunRecord
        The run.

    Returns
    -------
    Path or None
        The folder may have been moved as a whole.
    """
    if not run.notebook:
        return None
    recorded = Path(run.notebook)
    beside = reader.store.folder.absolute().parent / recorded.name
    return next((path for path in (recorded, beside) if path.is_file()), None)


def predictions(
    reader: Reader, notebook: Path, run_id: str, steps: Sequence[Outlined]
) -> dict[str, Prediction]:
    """Return a prediction for each step of a notebook.

    Parameters
    ----------
    reader : Reader
        The store.
    notebook : Path
        The file.
    run_id : str
        The run; empty if the notebook would begin a new one.
    steps : sequence of Outlined
        From `outline`.

    Returns
    -------
    dict
        Step → prediction.
    """
    if not reader.store.trusted:
        reason = "the store is another user's; nothing of it is used"
        return {s.step.name: Prediction("unknown", reason) for s in steps}
    names = [step.step.name for step in steps]
    known = known_of(reader, run_id, names)
    return predict(steps, known, Paths(notebook.absolute().parent))


def _target(reader: Reader, notebook: Path, run_id: str) -> _Target:
    """Find the run that a notebook would go on with."""
    sources = read_sources(notebook)
    start = find_start(sources)
    if run_id:
        reader.run(run_id)
    elif start.fresh or start.overlap == "concurrent":
        run_id = ""
    elif start.run_id:
        known = {run.run_id for run in reader.runs()}
        run_id = start.run_id if start.run_id in known else ""
    else:
        run_id = reader.current(notebook.stem) or ""
    steps, wrong = outline(sources, parse_body), wrong_lines(sources)
    if start.stop_on_redo:
        steps = [
            replace(line, step=replace(line.step, stop_on_redo=True)) for line in steps
        ]
    return _Target(notebook, steps, wrong, start, run_id, notices(sources))


def _notes(reader: Reader, target: _Target) -> list[str]:
    """Return what concerns the run as a whole."""
    notes = [_foreign(reader), *(f"it stops at {wrong}" for wrong in target.wrong)]
    if target.run_id:
        run = reader.run(target.run_id)
        notes += [_other_version(run, target.start.version), _held(reader, run)]
        notes.append(_other_steps(reader.plan(run.run_id), target.steps))
        asked = open_questions(reader, run, time.time())
        notes += [f"answer first: {line}" for line in answering(asked)]
        effects = open_effects(reader, run)
        notes += [f"settle first: {line}" for line in settling(effects)]
    else:
        notes.append("a new run begins")
    return [note for note in notes if note]


def _foreign(reader: Reader) -> str:
    """Return whose the store is, if it is not the user's own."""
    if reader.store.trusted:
        return ""
    trust = f"nbckpt trust {reader.store.folder}"
    return f"the store is another user's; to make it yours: {trust}"


def _other_version(run: RunRecord, wanted: str) -> str:
    """Return that a run stops because its notebook is of another version."""
    if wanted in {"", run.version}:
        return ""
    return (
        f"the run was begun with version {run.version or 'none'}, the notebook is "
        f"version {wanted}: it stops for a human"
    )


def _other_steps(before: PlanRecord, steps: Sequence[Outlined]) -> str:
    """Return how the list of steps differs from the one that is recorded."""
    if before.source != "notebook":
        return ""
    found = changes(before.steps, [line.planned for line in steps])
    return f"the list of steps changed: {'; '.join(found)}" if found else ""


def _held(reader: Reader, run: RunRecord) -> str:
    """Return which other process holds a run."""
    lease = reader.lease(run.run_id)
    if lease is None or lease.holder.pid == os.getpid():
        return ""
    return f"the run is held by {describe(lease)}" if is_held(lease) else ""


def _line(planned: PlannedStep, prediction: Prediction, told: list[str]) -> PlanLine:
    """Return a step's line."""
    return PlanLine(
        number=planned.number,
        name=planned.name,
        prediction=prediction.word,
        reason=prediction.reason,
        checks=list(planned.checks),
        reads=list(planned.reads),
        writes=list(planned.writes),
        effects=list(planned.effects),
        notices=told,
    )


def plan_page(data: Plan) -> Page:
    """Return a plan for people.

    Parameters
    ----------
    data : Plan
        From `plan_notebook` or `plan_run`.

    Returns
    -------
    Page
        The steps in one table.
    """
    rows = [
        (
            str(step["number"]),
            step["name"],
            step["prediction"],
            step["reason"],
            _declared(step),
        )
        for step in data["steps"]
    ]
    head = ("#", "step", "would", "because", "declares")
    page: list[Part] = [
        f"notebook {data['notebook'] or 'unknown'}, run {data['run'] or '(a new one)'}"
    ]
    page += [f"note: {note}" for note in data["notes"]]
    page += ["", Table(head, rows) if rows else "it has no steps"]
    told = [Tree(s["name"], s["notices"]) for s in data["steps"] if s["notices"]]
    if told:
        lint = f"what to do: nbckpt lint {Path(data['notebook']).name}"
        page += ["", Tree("what would go wrong at a resume", told), lint]
    return page


def _declared(step: PlanLine) -> str:
    """Return what the options of a step say, a few names of each."""
    parts = {
        "checks": step["checks"],
        "reads": step["reads"],
        "writes": step["writes"],
        "effects": step["effects"],
    }
    told = [f"{option} {listed(names, 3)}" for option, names in parts.items() if names]
    return "; ".join(told) or "-"
