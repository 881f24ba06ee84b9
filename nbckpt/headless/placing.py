"""The placement of a run: who started what from where, as a record of its own."""

from __future__ import annotations

import shlex
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.records import Placement
from nbckpt.runs.persons import person

if TYPE_CHECKING:
    from nbckpt.runs.history import Reader


def place(reader: Reader, run_id: str, notebook: Path) -> Placement:
    """Record where a run is started, on disk before any kernel is.

    Parameters
    ----------
    reader : Reader
        Of the user's own store.
    run_id : str
        The run.
    notebook : Path
        What is run.

    Returns
    -------
    Placement
        Replaces the one before; the work never rests on it.
    """
    done = reader.steps(run_id)
    steps = [step.name for step in reader.plan(run_id).steps]
    placement = Placement(
        host=socket.gethostname(),
        folder=str(Path.cwd()),
        notebook=str(notebook),
        from_step=next((name for name in steps if name not in done), ""),
        command=shlex.join(["nbckpt", "run", str(notebook), "--run-id", run_id]),
        by=person(),
        at=time.time(),
    )
    reader.store.transact(lambda tx: tx.put(f"placement/{run_id}", placement.to_json()))
    return placement
