"""A shell in this process, whose cells are timed."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


class Shell:
    """IPython without a kernel, so that nothing but the cell is timed."""

    def __init__(self) -> None:
        self._shell: Any = InteractiveShell.instance()

    @property
    def session(self) -> Any:
        """The hold of nbckpt on its run."""
        return self._shell.user_ns["__nbckpt__"].session

    @property
    def value(self) -> Any:
        """What the cells call ``value``."""
        return self.named("value")

    def named(self, name: str) -> Any:
        """Return what the cells call by a name."""
        return self._shell.user_ns[name]

    def start(self) -> None:
        """Load nbckpt and do what only a kernel's first step does.

        The benchmark itself is no module of the notebook, whose state would be kept.
        """
        for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
            del sys.modules[name]
        self.run("%load_ext nbckpt")
        self.run("%nbckpt start bench")
        self.run("%%step warm\nwarm = 1")

    def lend(self, subject: Any) -> None:
        """Let cells call a function as ``get_ipython().subject()``."""
        self._shell.subject = subject

    def run(self, source: str) -> float:
        """Run a cell as a front end does; return the seconds that it took."""
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            begun = time.perf_counter()
            result = self._shell.run_cell(source, store_history=True)
            seconds = time.perf_counter() - begun
        assert result.success, shown.getvalue()
        return seconds

    def close(self) -> None:
        """Give the run back, so that another process can take it."""
        self.run("%unload_ext nbckpt")


def written_bytes() -> int:
    """Return how many bytes this process has handed to the system so far."""
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["wchar"])
