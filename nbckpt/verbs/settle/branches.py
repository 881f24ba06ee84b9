"""``cancel`` and ``fork``: the end of a run, and another that begins from it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt import keys
from nbckpt.answers import resuming
from nbckpt.errors import AlreadySettled
from nbckpt.runs import forks
from nbckpt.runs.history import Reader
from nbckpt.runs.opening import UNNAMED
from nbckpt.runs.persons import said_by
from nbckpt.verbs.finding.opening import require_step, step_names
from nbckpt.verbs.standing.status import status

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.store import Store


def cancel(store: Store, run: RunRecord) -> str:
    """Cancel a run: its holder writes nothing more, and it is never resumed.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.

    Returns
    -------
    str
        What was done, and how to go on.

    Raises
    ------
    AlreadySettled
        If it is over, or nothing of it is left to do.
    """
    if _is_completed(Reader(store), run):
        raise AlreadySettled(
            f"run {run.run_id} is completed: nothing of it is left to cancel",
            f"To archive it: nbckpt finish {run.run_id}; to do all again: --fresh",
        )
    held = store.transact(forks.cancellation(run.run_id, said_by(), time.time()))
    holder = "; its holder is told at its next write" if held else ""
    return (
        f"run {run.run_id} is cancelled{holder}. To begin a new one: --fresh; or from a "
        f"step of it: nbckpt fork {run.run_id} --from STEP"
    )


def _is_completed(reader: Reader, run: RunRecord) -> bool:
    """Tell whether all steps of a run are done; of a notebook not known, nobody can."""
    is_known = reader.plan(run.run_id).source == "notebook"
    return is_known and status(reader, run)["state"] == "completed"


def fork(
    store: Store, run: RunRecord, step: str, run_id: str = "", version: str = ""
) -> tuple[RunRecord, str]:
    """Begin a new run with the records of the steps before one.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run to begin from, in any state.
    step : str
        The first step that runs.
    run_id : str, optional
        Id of the new run; without it, the next free one.
    version : str, optional
        Its workflow version; without it, that of the old one.

    Returns
    -------
    tuple of RunRecord and str
        The new run; what was done, and how to go on.

    Raises
    ------
    NotFound
        If the run has no such step.
    BadStep
        If the new id is wrong or was used before.
    """
    reader = Reader(store)
    require_step(reader, run.run_id, step)
    names = step_names(reader, run.run_id)
    first, recorded = names.index(step), reader.steps(run.run_id)
    kept = [name for name in names[:first] if name in recorded]
    wanted = forks.Fork(
        source=run,
        kept=tuple(kept),
        again=tuple(names[first:]),
        step=step,
        stem=Path(run.notebook).stem if run.notebook else UNNAMED,
        by=said_by(),
        at=time.time(),
        run_id=keys.check_run_id(run_id) if run_id else "",
        version=version,
    )
    new = store.transact(forks.forking(wanted))
    return new, _said(new, run, step, kept)


def _said(new: RunRecord, run: RunRecord, step: str, kept: list[str]) -> str:
    """Return what a fork is, and how to go on in it."""
    then = resuming(run.notebook, new.run_id)
    return (
        f"run {new.run_id} begins from run {run.run_id}: it has "
        f"{', '.join(kept) or 'no step'} and runs from {step} on. Its idempotency keys "
        f"are new: effects of {step} and later steps happen once more. It is the "
        "notebook's current run now. "
        f"Then: {then if run.notebook else 'run the notebook'}"
    )
