"""``nbckpt export``: a run in one file, or where it is, in the plain form for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt.records import SCHEMA_VERSION
from nbckpt.runs.transfers import export_run
from nbckpt.verbs.forms.pages import size
from nbckpt.verbs.standing.dossier import Dossier, open_steps, read

if TYPE_CHECKING:
    from nbckpt.records import LoopRecord, RunRecord
    from nbckpt.runs.history import Reader
    from nbckpt.store import Store


class Checkpoint(TypedDict):
    """What ``nbckpt export --format checkpoint`` prints.

    If the current step is a loop over items, steps are items: what is completed and what
    comes next. Otherwise they are the steps of the plan.
    """

    task_id: str
    schema_version: int
    current_step: int
    """How many are done: the next one's place, from 0."""
    total_steps: int | None
    """None: a loop whose length is not known."""
    next_input: dict[str, Any] | None
    """None: nothing comes next."""
    completed: list[str]
    errors: list[dict[str, Any]]


def archive(store: Store, run: RunRecord, output: str) -> str:
    """Write a run into one file.

    Parameters
    ----------
    store : Store
        Its store.
    run : RunRecord
        The run; no other process may hold it.
    output : str
        The file; empty: one of the run's name, in the working folder.

    Returns
    -------
    str
        What was written, for people.
    """
    path = Path(output or f"{run.run_id}.nbckpt").absolute()
    written = export_run(store, run.run_id, path)
    return f"{path}: run {run.run_id}, {size(written)}"


def checkpoint(reader: Reader, run: RunRecord) -> Checkpoint:
    """Return where a run is.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    Checkpoint
        JSON values.
    """
    dossier = read(reader, run)
    undone = open_steps(dossier)
    loops = reader.loops(run.run_id, undone[0]["name"]) if undone else []
    if open_loops := [loop for loop in loops if not loop.ended]:
        return _of_items(reader, open_loops[-1])
    return _of_steps(dossier)


def _of_items(reader: Reader, loop: LoopRecord) -> Checkpoint:
    """Return where a loop is."""
    following = loop.next_input
    return Checkpoint(
        task_id=loop.run_id,
        schema_version=SCHEMA_VERSION,
        current_step=loop.done,
        total_steps=loop.total,
        next_input=following.to_json() if following else None,
        completed=list(reader.items_done(loop)),
        errors=[error.to_json() for error in loop.errors],
    )


def _of_steps(dossier: Dossier) -> Checkpoint:
    """Return where a run is in its plan."""
    undone, steps = open_steps(dossier), dossier.status["steps"]
    waiting = {step["name"] for step in undone}
    return Checkpoint(
        task_id=dossier.run.run_id,
        schema_version=SCHEMA_VERSION,
        current_step=len(steps) - len(undone),
        total_steps=len(steps),
        next_input={"step": undone[0]["name"]} if undone else None,
        completed=[step["name"] for step in steps if step["name"] not in waiting],
        errors=[
            {"step": step["name"], "error": step["error"], "attempt": step["attempt"]}
            for step in steps
            if step["error"]
        ],
    )
