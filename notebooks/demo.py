"""Execute the quickstart notebook, and kill its kernel in the middle of a step.

The runner resumes by itself. A second call finds everything done: it skips all steps
and kills nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("quickstart.ipynb")
OUTPUT = Path(__file__).parents[1] / "build" / NOTEBOOK.name
NBCKPT = str(Path(sys.executable).with_name("nbckpt"))
VICTIM = "forest"
"""The longest step of the notebook."""
SECONDS_INTO_IT = 2.0


def main() -> int:
    """Run the notebook to its end.

    Returns
    -------
    int
        The exit code of ``nbckpt run``.
    """
    OUTPUT.parent.mkdir(exist_ok=True)
    is_first = not read_status().get("done")
    run = subprocess.Popen([NBCKPT, "run", str(NOTEBOOK), "--output", str(OUTPUT)])
    if is_first:
        kill_in_step(run)
    return run.wait()


def kill_in_step(run: subprocess.Popen[bytes]) -> None:
    """Kill the kernel once, some time into the victim's body.

    Parameters
    ----------
    run : subprocess.Popen
        The runner; if it ends before, nothing is killed.
    """
    while not has_ended(run):
        state = read_status()
        current = state.get("current") or {}
        if current.get("step") == VICTIM and current["seconds"] > SECONDS_INTO_IT:
            kernel = state["holder"]["pid"]
            print(f"demo: kill -9 {kernel}, in the middle of step {VICTIM}", flush=True)
            os.kill(kernel, signal.SIGKILL)
            return


def has_ended(run: subprocess.Popen[bytes]) -> bool:
    """Wait a moment, and tell whether the runner is through.

    Parameters
    ----------
    run : subprocess.Popen
        The runner.

    Returns
    -------
    bool
        True once it has ended.
    """
    try:
        run.wait(timeout=0.5)
    except subprocess.TimeoutExpired:
        return False
    return True


def read_status() -> dict[str, Any]:
    """Ask where the run stands.

    Returns
    -------
    dict
        What ``nbckpt status --json`` says; empty if there is no run yet.
    """
    asked = [NBCKPT, "status", str(NOTEBOOK), "--json"]
    answer = subprocess.run(asked, capture_output=True, check=False)
    state: dict[str, Any] = json.loads(answer.stdout) if answer.returncode == 0 else {}
    return state


if __name__ == "__main__":
    sys.exit(main())
