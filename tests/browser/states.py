"""What the command line says about a run, from another process than the kernel's."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-c", "from nbckpt.cli import main; main()"]


def states(folder: Path, name: str = "job.ipynb") -> dict[str, str]:
    """Return the state of each step of the notebook of a test."""
    asked = subprocess.run(
        [*COMMAND, "status", str(folder / name), "--json"],
        capture_output=True,
        check=False,
    )
    steps = json.loads(asked.stdout)["steps"] if asked.returncode == 0 else []
    return {step["name"]: step["state"] for step in steps}
