"""Which run a notebook is in, and how a new one begins."""

from __future__ import annotations

import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt import __version__, keys
from nbckpt.errors import StopForHuman
from nbckpt.records import SCHEMA_VERSION, Event, RunRecord, RunState
from nbckpt.runs.lines import add_line, archived

if TYPE_CHECKING:
    from nbckpt.store import Store, Transaction

UNNAMED = "notebook"
"""Name of the runs of kernels that don't know their notebook."""


def open_run(
    store: Store, stem: str, wanted: RunRecord, *, fresh: bool = False
) -> RunRecord:
    """Return the run that a notebook is in, or begin one.

    Parameters
    ----------
    store : Store
        The user's own store.
    stem : str
        The notebook's name.
    wanted : RunRecord
        Its run id, or an empty one for the notebook's current run; notebook and version.
    fresh : bool, optional
        Whether to begin a new run in any case.

    Returns
    -------
    RunRecord
        As it is recorded now. A run of an older schema is frozen, and a new one begun;
        so it is after an archived one.

    Raises
    ------
    StopForHuman
        If the run that `wanted` names is archived.
    """

    def change(transaction: Transaction) -> RunRecord:
        current = _current(transaction, stem)
        run_id = wanted.run_id or ("" if fresh else current)
        run, why = _usable(transaction, run_id, wanted.run_id)
        if run is None:
            free = (not why and run_id) or keys.next_run_id(stem, taken(transaction))
            run = begin(transaction, replace(wanted, run_id=free, why=why))
            _note_fresh(transaction, run, run_id or current)
        run = _moved(transaction, run, wanted)
        if current != run.run_id:
            transaction.put(f"current/{stem}", {"run_id": run.run_id})
        return run

    return store.transact(change)


def _current(transaction: Transaction, stem: str) -> str:
    """Return the run that a notebook is in; empty if it never ran."""
    found = transaction.get(f"current/{stem}")
    return str(found["run_id"]) if found else ""


def begin(transaction: Transaction, wanted: RunRecord) -> RunRecord:
    """Record a new run, with when it began and what began it."""
    made_with = {"nbckpt": __version__, "python": platform.python_version()}
    run = replace(wanted, created_at=time.time(), made_with=made_with)
    transaction.put(f"run/{run.run_id}", run.to_json())
    return run


def _note_fresh(transaction: Transaction, run: RunRecord, before: str) -> None:
    """Say in a new run's history that it is begun anew, and what was before."""
    if before not in {"", run.run_id}:
        detail = {"instead of": before}
        event = Event(run.created_at, "fresh", "", run.why, detail=detail)
        add_line(transaction, run.run_id, event)


def _usable(
    transaction: Transaction, run_id: str, named: str
) -> tuple[RunRecord | None, str]:
    """Return a run that can be gone on with; one of an older schema is frozen."""
    known = transaction.get(f"run/{run_id}") if run_id else None
    if known is None:
        return None, ""
    if known["state"] == RunState.FINISHED:
        if named:
            raise archived(run_id)
        return None, "the run before is finished and archived"
    if known["schema_version"] < SCHEMA_VERSION:
        transaction.put(f"run/{run_id}", {**known, "state": str(RunState.FROZEN)})
        return None, f"run {run_id} has an older schema and is frozen"
    refuse_cancelled(transaction, run_id)
    return RunRecord.from_json(known), ""


def check_version(store: Store, run: RunRecord, version: str) -> None:
    """Stop if a run was begun with another workflow version; its history has the stop.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    version : str
        That of the notebook; empty: it tells none.

    Raises
    ------
    StopForHuman
        With the three ways out.
    """
    if version in {"", run.version}:
        return
    why = f"begun with version {run.version or 'none'}, this notebook is version {version}"
    stopped = Event(time.time(), "stopped", "", why)
    store.transact(lambda tx: add_line(tx, run.run_id, stopped))
    begun = f"--version {run.version}" if run.version else "without --version"
    raise StopForHuman(
        f"run {run.run_id} was {why}",
        f"Go on with the old one: {begun}; or from the step that changed: "
        f"nbckpt fork {run.run_id} --from STEP --version {version}; or anew: --fresh",
    )


def refuse_cancelled(transaction: Transaction, run_id: str) -> None:
    """Stop if a person cancelled a run; called again where its lease is taken.

    Parameters
    ----------
    transaction : Transaction
        The transaction in which the run is opened or taken.
    run_id : str
        The run.

    Raises
    ------
    StopForHuman
        With the ways to go on.
    """
    known = transaction.get(f"run/{run_id}")
    if known is not None and known["state"] == RunState.CANCELLED:
        raise StopForHuman(
            f"run {run_id} was {known['why'] or 'cancelled'}; it is not resumed",
            f"Begin a new run: --fresh; or from a step of it: nbckpt fork {run_id} "
            "--from STEP",
        )


def _moved(transaction: Transaction, run: RunRecord, wanted: RunRecord) -> RunRecord:
    """Return a run that is named in another notebook than its own, which is gone."""
    is_told = bool(wanted.run_id and wanted.notebook and run.notebook)
    if is_told and run.notebook != wanted.notebook and not Path(run.notebook).exists():
        return rename(transaction, run, wanted.notebook)
    return run


def rename(transaction: Transaction, run: RunRecord, notebook: str) -> RunRecord:
    """Give a run the name that its notebook has now; the former one is free."""
    former = f"current/{Path(run.notebook).stem}"
    if _current(transaction, Path(run.notebook).stem) == run.run_id:
        transaction.delete(former)
    renamed = replace(run, notebook=notebook)
    transaction.put(f"run/{run.run_id}", renamed.to_json())
    return renamed


def taken(transaction: Transaction) -> set[str]:
    """Return all run ids that were ever used."""
    return {key.removeprefix("run/") for key in transaction.keys("run/")}
