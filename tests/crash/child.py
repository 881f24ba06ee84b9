"""Runs a notebook in this process, cell by cell, in a plain IPython shell."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.crash import crashpoints, receivers, sabotage

if TYPE_CHECKING:
    from collections.abc import Callable

BODIES = 200
"""File descriptor to which the reference notebook's bodies write their names."""


def run(job: dict[str, Any]) -> None:
    """Run the notebook ``nb.ipynb`` of a folder; never returns.

    Parameters
    ----------
    job : dict
        ``folder``; ``number`` and ``when`` of the point to die at; ``stop``, the step
        in whose body to stop; ``env``; ``sabotage``, the name of a fault to plant;
        ``is_switched``: whether the notebook says from where on points count, and a
        transaction is one; ``receiver``: run the step of `receivers` instead.
    """
    folder = Path(job["folder"])
    os.chdir(folder)
    _redirect(folder)
    if "receiver" in job:
        receivers.run(job)
    os.environ.update({"NBCKPT_NOTEBOOK": str(folder / "nb.ipynb"), **job["env"]})
    log = os.open("points.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    store = folder / ".nbckpt"
    is_switched = job["is_switched"]
    points = crashpoints.Points(
        store, log, job["number"], job["when"],
        commits_only=is_switched, is_on=not is_switched,
    )  # fmt: skip
    crashpoints.install(points)
    # Not among the notebook's names: no value of a notebook holds a crash point.
    vars(__import__("builtins")).update(points=points)
    if job["stop"]:
        crashpoints.plant(os, write=_stopping(os.write, job["stop"]))
    if job["sabotage"]:
        sabotage.PLANTS[job["sabotage"]]()
    _leave(folder, run_cells(folder / "nb.ipynb", job["after"]))


def run_cells(notebook: Path, after: list[str]) -> dict[str, Any]:
    """Run the code cells, and then some more, until one fails.

    Parameters
    ----------
    notebook : Path
        The notebook.
    after : list of str
        Cells to run when all have passed.

    Returns
    -------
    dict
        ``error``, and ``digest`` as the last cell set it.
    """
    quiet = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=quiet)
    cells = nbformat.read(notebook, 4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    for source in [*sources, *after]:
        result = shell.run_cell(source, store_history=True)
        sys.stdout.write("\n--- next cell\n")
        if not result.success:
            error = result.error_before_exec or result.error_in_exec
            return {"error": f"{type(error).__name__}: {error}"}
    return {"error": "", "digest": shell.user_ns.get("digest", "")}


def _redirect(folder: Path) -> None:
    """Send both streams to files of the folder."""
    for handle, name in ((1, "stdout.txt"), (2, "stderr.txt")):
        file = os.open(folder / name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        os.dup2(file, handle)
        os.close(file)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _stopping(write: Callable[..., int], step: str) -> Callable[..., int]:
    """Return `os.write`, stopping this process when a step's body says its name."""

    def wrapped(handle: int, data: bytes) -> int:
        done = write(handle, data)
        if handle == BODIES and bytes(data) == f"{step}\n".encode():
            os.kill(os.getpid(), signal.SIGSTOP)
        return done

    return wrapped


def _leave(folder: Path, report: dict[str, Any]) -> None:
    """Write the report and end as an interpreter does."""
    sys.stdout.flush()
    (folder / "report.json").write_text(json.dumps(report), "utf-8")
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(1 if report["error"] else 0)
