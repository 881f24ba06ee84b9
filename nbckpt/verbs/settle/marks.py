"""What a person says of a step, or of where it runs: again, or it does not matter."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from nbckpt.errors import NotFound
from nbckpt.plan import read_plan, wrong_lines
from nbckpt.records import Event, Mark
from nbckpt.runs import worktree
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import set_mark
from nbckpt.runs.lines import add_line
from nbckpt.runs.persons import said_by
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.finding.opening import require_step, step_names
from nbckpt.verbs.prepare.planning import notebook_of
from nbckpt.verbs.standing.waiting import resume_command

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.records import RunRecord
    from nbckpt.store import Store, Transaction


def rerun(store: Store, run: RunRecord, step: str, *, and_after: bool = False) -> str:
    """Have a step's body run again at the next run of its notebook.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    step : str
        The step.
    and_after : bool, optional
        Whether the bodies of all steps after it run again too, in the plan's order.

    Returns
    -------
    str
        What was done, and how to go on.

    Raises
    ------
    NotFound
        If the run has no such step.
    """
    reader = Reader(store)
    require_step(reader, run.run_id, step)
    names = step_names(reader, run.run_id)
    steps = names[names.index(step) :] if and_after else [step]
    _ask_again(store, run.run_id, steps)
    if len(steps) == 1:
        said = f"step {step} of run {run.run_id} runs again next time"
    else:
        said = f"steps {', '.join(steps)} of run {run.run_id} run again next time"
    return f"{said}. Then: {resume_command(run)}"


def _ask_again(store: Store, run_id: str, steps: list[str]) -> None:
    """Mark steps, all of them or none."""
    who = said_by()

    def change(transaction: Transaction) -> None:
        for step in steps:
            key = f"mark/{run_id}/{step}"
            before = Mark.from_json(transaction.get(key) or {})
            transaction.put(key, replace(before, rerun=who).to_json())
        event = Event(time.time(), "rerun", steps[0], who, detail={"steps": steps})
        add_line(transaction, run_id, event)

    store.transact(change)


def accept(
    store: Store, run: RunRecord, step: str, notebook: Path | None = None
) -> str:
    """Record that a step's code, as it is now, gives what is recorded.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    step : str
        The step.
    notebook : Path, optional
        The file that holds its code; without it, the run's own.

    Returns
    -------
    str
        What was done.

    Raises
    ------
    NotFound
        If the run or the notebook has no such step, or the step no record.
    """
    reader = Reader(store)
    require_step(reader, run.run_id, step)
    record = reader.step(run.run_id, step)
    if record is None:
        raise NotFound(
            f"step {step} of run {run.run_id} has no record yet",
            "Run the notebook first",
        )
    code = _code_now(reader, run, step, notebook)
    if code in {record.fingerprint.code, *reader.mark(run.run_id, step).accepted}:
        return (
            f"step {step}: its code is as recorded or accepted already; nothing to do"
        )
    set_mark(
        store, run.run_id, step, lambda m: replace(m, accepted=(*m.accepted, code))
    )
    return f"step {step} of run {run.run_id}: its code as it is now counts as unchanged"


def accept_worktree(store: Store, run: RunRecord, folder: Path) -> str:
    """Record that a run goes on in the Git worktree of a folder, as it is now.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    folder : Path
        The notebook's folder.

    Returns
    -------
    str
        What was done.
    """
    found = worktree.read(folder)
    reason = f"accepted by {said_by()}"
    store.transact(lambda tx: worktree.put(tx, run.run_id, found, reason))
    if found is None:
        return f"run {run.run_id} goes on in {folder}, which is in no Git worktree"
    return f"run {run.run_id} goes on in {found.path}, {worktree.checked_out(found)}"


def _code_now(reader: Reader, run: RunRecord, step: str, notebook: Path | None) -> str:
    """Return the fingerprint of a step's code in the notebook file."""
    path = notebook or notebook_of(reader, run)
    if path is None:
        raise NotFound(
            f"the notebook of run {run.run_id} is not known here",
            "Name it: nbckpt accept STEP --notebook NOTEBOOK.ipynb",
        )
    sources = read_sources(path)
    plan = read_plan(sources, parse_body)
    found = [planned.code for planned in plan.steps if planned.name == step]
    if not found:
        names = ", ".join(planned.name for planned in plan.steps) or "none"
        wrong = [f". Wrong: {error.what}" for error in wrong_lines(sources)]
        raise NotFound(
            f"{path} has no step {step!r}", f"Its steps: {names}{''.join(wrong)}"
        )
    return found[0]
