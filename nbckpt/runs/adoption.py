"""Whose run a notebook goes on with that has none of its own under its name."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.errors import StopForHuman, StoreDamaged
from nbckpt.records import EffectRecord, PlanRecord, RunRecord, RunState
from nbckpt.runs.opening import UNNAMED, rename

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nbckpt.store import Store, Transaction

TOLD = "nbckpt: run {} of {}, which is gone, goes on here; for a new one: --fresh\n"


def adopt(store: Store, stem: str, notebook: str, plan: PlanRecord | None) -> None:
    """Make the run of a notebook's former name, or of none, its current one.

    Some clients start a kernel without telling it its notebook; its run is then named
    after none. And a notebook that was renamed while no kernel saw it has a run under
    the name that it had. Once it is run by its name, that work is taken up.

    Parameters
    ----------
    store : Store
        The user's own store.
    stem : str
        What its runs are named after.
    notebook : str
        Its path; empty if it is not known.
    plan : PlanRecord or None
        Its steps in order, which the run's plan must have, too; None or empty: it was
        not saved since it was made.

    Raises
    ------
    StopForHuman
        If the notebook of a run with the same steps is gone, and the run has effects:
        whether it was renamed, or this is another one, only a person knows.
    """
    steps = [step.name for step in plan.steps] if plan else []

    def change(transaction: Transaction) -> str:
        if transaction.get(f"current/{stem}") is not None:
            return ""
        named = notebook if Path(notebook).stem == stem else ""  # a job is no notebook
        run = next(_candidates(transaction, named, steps), None)
        if run is None:
            return ""
        if run.notebook:
            _require_harmless(transaction, run, Path(notebook))
            if _is_whole(transaction, run):
                return ""  # nothing is in the middle, and nothing would happen twice
            rename(transaction, run, notebook)
        transaction.put(f"current/{stem}", {"run_id": run.run_id})
        return TOLD.format(run.run_id, Path(run.notebook).name) if run.notebook else ""

    sys.stderr.write(store.transact(change))


def _candidates(
    transaction: Transaction, notebook: str, steps: Sequence[str]
) -> Iterator[RunRecord]:
    """Yield the runs that are nobody's any more and have these steps."""
    for key in transaction.keys("current/"):
        name = key.removeprefix("current/")
        try:
            run_id = transaction.get(key)["run_id"]
            run = RunRecord.from_json(transaction.get(f"run/{run_id}"))
        except StoreDamaged:
            if not _is_anothers(name, notebook):
                raise
            continue  # that one stops at it
        is_former = bool(notebook) and _is_gone(run, name, Path(notebook))
        if (name == UNNAMED or is_former) and _has_steps(transaction, run, steps):
            yield run


def _is_anothers(name: str, notebook: str) -> bool:
    """Tell whether a name is that of another notebook, which is there."""
    is_beside = (Path(notebook).parent / f"{name}.ipynb").exists()
    return name != UNNAMED and (is_beside or not notebook)


def _is_gone(run: RunRecord, name: str, notebook: Path) -> bool:
    """Tell whether the notebook of a run that is open is neither there nor here."""
    if Path(run.notebook).stem != name or run.is_ended:
        return False
    beside = notebook.parent / Path(run.notebook).name
    return not Path(run.notebook).exists() and not beside.exists()


def _has_steps(transaction: Transaction, run: RunRecord, steps: Sequence[str]) -> bool:
    """Tell whether a run has these steps; of cells that were seen, as far as saved."""
    plan = _plan(transaction, run)
    names = [step.name for step in plan.steps]
    both = min(len(names), len(steps))
    if plan.source == "seen" and run.notebook:
        return names[:both] == list(steps[:both])
    return bool(names) and names == list(steps)


def _is_whole(transaction: Transaction, run: RunRecord) -> bool:
    """Tell whether a run has all its steps; of cells that were seen, more may come."""
    is_seen = _plan(transaction, run).source == "seen"
    return run.state is RunState.COMPLETED and not is_seen


def _plan(transaction: Transaction, run: RunRecord) -> PlanRecord:
    """Return the plan of a run; an empty one if it has none."""
    found = transaction.get(f"plan/{run.run_id}")
    return PlanRecord.from_json(found) if found else PlanRecord()


def _require_harmless(transaction: Transaction, run: RunRecord, notebook: Path) -> None:
    """Stop if a run has effects, which count for the notebook that made them."""
    keys = transaction.keys(f"effect/{run.run_id}/")
    effects = [EffectRecord.from_json(transaction.get(key)) for key in keys]
    name = next((effect.name for effect in effects if effect.stands), "")
    if name:
        former, run_id = Path(run.notebook).name, shlex.quote(run.run_id)
        raise StopForHuman(
            f"run {run.run_id} is of {former}, which is gone: was it renamed to "
            f"{notebook.name}? Its effects ({name}) would happen again in a new run",
            f"Go on with it: %nbckpt start {run_id}, or nbckpt run … --run-id {run_id}; "
            "or begin a run of its own: --fresh",
        )
