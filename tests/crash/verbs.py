"""Does a verb over and over in copies of a folder, and dies at each durable operation."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.runs import transfers
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle import finishing
from tests.crash import crashpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
STEP = 1 if os.environ.get("NBCKPT_KILL_ALL") else 3
"""Every which point is one to die at."""


def finish(folder: Path) -> None:
    """Finish the run of a folder's store."""
    store = Store(folder / ".nbckpt", load_secret())
    finishing.finish(store, Reader(store).runs()[-1])
    store.close()


def import_run(folder: Path) -> None:
    """Import the archive beside a folder's store."""
    transfers.import_run(folder / "run.nbckpt", folder / ".nbckpt", load_secret())


VERBS: dict[str, Callable[[Path], None]] = {"finish": finish, "import": import_run}


@dataclass(frozen=True)
class Death:
    """A folder in which a verb was killed."""

    folder: Path
    number: int
    when: str
    label: str


def deaths(verb: str, template: Path, scratch: Path) -> Iterator[Death]:
    """Yield a copy of a folder for each point at which a verb was killed.

    Parameters
    ----------
    verb : str
        One of `VERBS`.
    template : Path
        The folder as it is before the verb.
    scratch : Path
        An empty folder to work in.

    Yields
    ------
    Death
        The process has ended by SIGKILL; its folder goes when the next one comes.
    """
    words = [sys.executable, "-m", "tests.crash.verbs", verb]
    with subprocess.Popen(
        [*words, str(template), str(scratch)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for line in server.stdout:
            death = Death(Path(scratch / "copy"), *json.loads(line))
            yield death
            server.stdin.write("\n")
            server.stdin.flush()
    assert server.returncode == 0


def _die(verb: str, folder: Path, number: int, when: crashpoints.When) -> list[str]:
    """Do the verb in a child that dies at a point; return the points it came to."""
    log = folder.with_name("points")
    child = os.fork()
    if not child:
        handle = os.open(log, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        store = folder / ".nbckpt"
        crashpoints.install(crashpoints.Points(store, handle, number, when))
        code = 1
        try:
            VERBS[verb](folder)
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # One run in many comes to a statement less than the one that was counted.
    assert status in ((0, -signal.SIGKILL) if number else (0,)), status
    return log.read_text().splitlines()


def serve(verb: str, template: Path, scratch: Path) -> None:
    """Kill the verb at one point after the other, each in a new copy."""
    copy = scratch / "copy"
    shutil.copytree(template, copy)
    points = _die(verb, copy, 0, "before")
    sides: tuple[crashpoints.When, ...] = ("before", "after")
    for number in range(1, len(points) + 1, STEP):
        for when in sides:
            shutil.rmtree(copy)
            shutil.copytree(template, copy)
            _die(verb, copy, number, when)
            line = json.dumps([number, when, points[number - 1]])
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            sys.stdin.readline()


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
