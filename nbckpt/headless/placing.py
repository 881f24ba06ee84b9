"""The placement of a run: who started what from where, as a record of its own."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.answers import resuming
from nbckpt.credentials import masked
from nbckpt.records import Placement
from nbckpt.runs.parameters import settled
from nbckpt.runs.persons import person

if TYPE_CHECKING:
    from nbckpt.runs.history import Reader


def place(
    reader: Reader, run_id: str, notebook: Path, given: dict[str, str], *, named: bool
) -> dict[str, str]:
    """Record where a run is started, on disk before any kernel is.

    Parameters
    ----------
    reader : Reader
        Of the user's own store.
    run_id : str
        The run.
    notebook : Path
        What is run.
    given : dict
        Parameters: name → text of the value.
    named : bool
        Whether the user says that it is this run.

    Returns
    -------
    dict
        The parameters that it goes by; see `settled`, which may refuse.
    """
    parameters = settled(reader, run_id, given, named=named)
    done = reader.steps(run_id)
    steps = [step.name for step in reader.plan(run_id).steps]
    placement = Placement(
        host=socket.gethostname(),
        folder=str(Path.cwd()),
        notebook=str(notebook),
        from_step=next((name for name in steps if name not in done), ""),
        command=resuming(notebook, run_id),
        by=person(),
        at=time.time(),
        parameters={name: masked(text) for name, text in parameters.items()},
        withheld=tuple(n for n, text in parameters.items() if masked(text) != text),
    )
    reader.store.transact(lambda tx: tx.put(f"placement/{run_id}", placement.to_json()))
    return parameters
