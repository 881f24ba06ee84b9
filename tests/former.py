"""A process that a kernel replaced while it was in the middle of a step."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil

from nbckpt.records import Displaced, Holder
from nbckpt.runs.processes import this_process, ticks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.notebook import Notebook

WAIT = "import time; print('up', flush=True); time.sleep(600)"


def holder_of(pid: int) -> Holder:
    """Return the holder that a process of this system is."""
    started = psutil.Process(pid).create_time()
    return replace(this_process(), pid=pid, started=started, ticks=ticks(pid))


@contextmanager
def a_process(code: str = WAIT, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a process that prints a line when it is up; end it."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def displace(notebook: Notebook, process: subprocess.Popen[str]) -> None:
    """Let a process be the holder from which a kernel took its run over."""
    notebook.run("%nbckpt start")
    key = f"displaced/{notebook.session.run_id}/{1:010d}"
    left = Displaced(holder_of(process.pid), 30.0).to_json()
    notebook.session.store.transact(lambda tx: tx.put(key, left))
