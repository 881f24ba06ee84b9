"""What a person says of a step: run it again, or its code change does not matter."""

from __future__ import annotations

import getpass
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nbckpt.cells import parse_body, read_sources
from nbckpt.errors import NotFound
from nbckpt.history import Reader
from nbckpt.journal import set_mark
from nbckpt.plan import read_plan
from nbckpt.verbs.opening import require_step
from nbckpt.verbs.planning import notebook_of

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.records import RunRecord
    from nbckpt.store import Store


def rerun(store: Store, run: RunRecord, step: str) -> str:
    """Have a step's body run again at the next run of its notebook.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    step : str
        The step.

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
    when = f"{datetime.now(UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    mark = reader.mark(run.run_id, step)
    set_mark(store, run.run_id, step, replace(mark, rerun=f"{_person()} at {when}"))
    then = f"nbckpt run {run.notebook}" if run.notebook else "run the notebook"
    return f"step {step} of run {run.run_id} runs again next time. Then: {then}"


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
    mark = reader.mark(run.run_id, step)
    if code == record.fingerprint.code or code in mark.accepted:
        return (
            f"step {step}: its code is as recorded or accepted already; nothing to do"
        )
    accepted = replace(mark, accepted=(*mark.accepted, code))
    set_mark(store, run.run_id, step, accepted)
    return f"step {step} of run {run.run_id}: its code as it is now counts as unchanged"


def _code_now(reader: Reader, run: RunRecord, step: str, notebook: Path | None) -> str:
    """Return the fingerprint of a step's code in the notebook file."""
    path = notebook or notebook_of(reader, run)
    if path is None:
        raise NotFound(
            f"the notebook of run {run.run_id} is not known here",
            "Name it: nbckpt accept STEP --notebook NOTEBOOK.ipynb",
        )
    plan = read_plan(read_sources(path), parse_body)
    found = [planned.code for planned in plan.steps if planned.name == step]
    if not found:
        names = ", ".join(planned.name for planned in plan.steps) or "none"
        raise NotFound(f"{path} has no step {step!r}", f"Its steps: {names}")
    return found[0]


def _person() -> str:
    """Return who is at the keyboard."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
