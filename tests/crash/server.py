"""Forks a process for each run of a notebook, so that imports are paid for once.

Reads one JSON job per line, answers each with how the process ended. A job may have
``delay``, seconds after which the process is killed; ``continue``, the id of a process
that stopped itself, to go on.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
from typing import Any

import nbckpt
from tests.crash import child

HEAVY = (
    "IPython.core.application", "IPython.core.completer", "IPython.core.interactiveshell",
    "nbckpt.magics", "nbckpt.loops.maps", "nbckpt.runner",
    "nbckpt.effects.transactions", "numpy",
)  # fmt: skip


def main() -> None:
    """Serve jobs until the input ends."""
    for name in HEAVY:
        __import__(name)
    gc.freeze()  # no run has to look through what they all share
    sys.stdout.write(f"{nbckpt.__name__}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(serve(json.loads(line))) + "\n")
        sys.stdout.flush()


def serve(job: dict[str, Any]) -> dict[str, int]:
    """Start or continue a process, and wait until it ends or stops."""
    if job["continue"]:
        pid = int(job["continue"])
        os.kill(pid, signal.SIGCONT)
    else:
        pid = os.fork()
        if pid == 0:
            child.run(job)
    if job["delay"]:
        _kill_after(pid, job["delay"])
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"pid": pid, "status": -signal.SIGSTOP}
    return {"pid": pid, "status": os.waitstatus_to_exitcode(status)}


def _kill_after(pid: int, delay: float) -> None:
    """Kill a process after some seconds, unless it ends before."""
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    if not poll.poll(delay * 1000):
        os.kill(pid, signal.SIGKILL)
    os.close(handle)


if __name__ == "__main__":
    main()
