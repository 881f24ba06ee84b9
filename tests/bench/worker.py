"""One measurement in a process of its own: ``worker.py MEASURE SUBJECT FOLDER SCALE``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.bench.measures import MEASURES, Seconds

ROOT = Path(__file__).parents[2]
LEFT_OUT = re.compile("(?i)^NBCKPT_|key|token|secret|passw|credential|auth|pwd|private")
LOGIN = {"SSH_AUTH_SOCK": "/tmp/ssh-XXXXXXbenchmk/agent.4711"}  # noqa: S108 - never opened


def measure(kind: str, subject: str, folder: Path, scale: float) -> Seconds:
    """Make one measurement in a new process."""
    words = [kind, subject, str(folder), str(scale)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.worker", *words],
        cwd=ROOT,
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: Seconds = json.loads(done.stdout.splitlines()[-1])
    return found


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment that is the same everywhere.

    Texts are searched for the credentials in it, so it holds the one that every desktop
    session has.
    """
    kept = {name: v for name, v in os.environ.items() if not LEFT_OUT.search(name)}
    own = {"IPYTHONDIR": str(folder), "NBCKPT_STORE": str(folder / "store")}
    return {**kept, **LOGIN, **own}


def main() -> None:
    """Make the measurement that the command line names, and tell it as JSON."""
    kind, subject, folder, scale = sys.argv[1:]
    found = MEASURES[kind](subject, Path(folder), float(scale))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
