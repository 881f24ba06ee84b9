"""A notebook's folder with kernels and command line: the stage of a scenario."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from tests.cases.driver import DATA, STATIC, free_port
from tests.cases.session import Reply, Session, kernel_env, step_name
from tests.crash import tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from nbckpt.cli import main; main()"]


class Stage:
    """One notebook in a folder of its own, and one user.

    Parameters
    ----------
    case : str
        Name of the case whose notebook and files are used.
    root : Path
        An empty folder to work in.
    """

    def __init__(self, case: str, root: Path) -> None:
        self.root = root
        self.work = root / "w"
        shutil.copytree(DATA / case, self.work, ignore=STATIC)
        self.notebook = self.work / "case.ipynb"
        shutil.copy(DATA / case / "case.ipynb", self.notebook)
        self.port = free_port()
        self._sessions: list[Session] = []

    @property
    def store(self) -> Path:
        """Folder of the store."""
        return self.work / ".nbckpt"

    @property
    def pwned(self) -> Path:
        """The file that hostile bytes would make."""
        return self.work / "pwned.txt"

    def cells(self) -> list[str]:
        """Return the text of the code cells."""
        found = nbformat.read(self.notebook, 4).cells
        return [cell.source for cell in found if cell.cell_type == "code"]

    def rewrite(self, *sources: str) -> None:
        """Put other code cells in place of all cells."""
        notebook = nbformat.read(self.notebook, 4)
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        for number, cell in enumerate(cells):
            cell["id"] = f"c{number}"
        notebook.cells = cells
        nbformat.write(notebook, self.notebook)

    def edit(self, old: str, new: str) -> None:
        """Replace text in all cells of the notebook."""
        notebook = nbformat.read(self.notebook, 4)
        assert any(old in cell.source for cell in notebook.cells)
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)
        nbformat.write(notebook, self.notebook)

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of this user's processes."""
        here = {"CASE_PORT": str(self.port), "PYTHONPATH": str(ROOT)}
        return kernel_env(self.root, {**here, **(extra or {})})

    def kernel(self, **extra: str) -> Session:
        """Start a kernel in the notebook's folder, as Jupyter's server does."""
        named = {"JPY_SESSION_NAME": str(self.notebook), **extra}
        session = Session(self.work, self.env(named))
        self._sessions.append(session)
        return session

    def run_all(self, session: Session) -> list[Reply]:
        """Run the code cells in order until one fails; return the replies."""
        replies = []
        for source in self.cells():
            replies.append(session.run(source))
            if replies[-1].status != "ok":
                break
        return replies

    def run_fresh(self, **extra: str) -> list[Reply]:
        """Run All in a new kernel, and end it."""
        session = self.kernel(**extra)
        replies = self.run_all(session)
        session.close()
        return replies

    def cli(self, *words: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run the command line in the notebook's folder."""
        return subprocess.run(
            [*COMMAND, *words],
            cwd=self.work,
            env=self.env(extra),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def told(self, *words: str) -> Any:
        """Return what a reading verb says as JSON."""
        done = self.cli(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def records(self) -> tidy.Contents:
        """Return what lies in the store."""
        return tidy.read(self.store)

    def close(self) -> None:
        """End all kernels."""
        for session in self._sessions:
            session.close()


def tokens(replies: list[Reply]) -> dict[str, str]:
    """Return step → token after the last cell of a pass."""
    found: dict[str, str] = {}
    for reply in replies:
        found |= {name[4:]: token for name, token in reply.tokens.items()}
    return found


def ran(before: list[Reply], after: list[Reply]) -> set[str]:
    """Return the steps that have another token in a later pass."""
    old, new = tokens(before), tokens(after)
    return {step for step, token in new.items() if old.get(step) != token}


def is_whole(replies: list[Reply]) -> bool:
    """Tell whether no cell of a pass failed."""
    return all(reply.status == "ok" for reply in replies)


def wait_until(fact: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is so; fail when it takes too long."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not fact():
        assert time.monotonic() < end, "waited too long"
        pause.wait(0.02)


def steps_of(cells: list[str]) -> list[str]:
    """Return the names of the steps among cells."""
    return [name for cell in cells if (name := step_name(cell))]
