"""Runs the reference notebook over and over, and judges each run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.crash import tidy

if TYPE_CHECKING:
    from types import TracebackType

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
JOB: dict[str, Any] = {
    "number": 0, "when": "before", "stop": "", "sabotage": "", "delay": 0.0,
    "continue": 0, "env": {}, "after": [], "by": int(signal.SIGKILL),
    "taking": False, "is_switched": False,
}  # fmt: skip
COLLECT = ["%nbckpt gc"]


@dataclass
class Outcome:
    """How one run of the notebook ended, and what it left."""

    pid: int
    status: int
    """Exit code; minus the signal that ended or stopped the process."""
    bodies: list[str]
    """Steps whose bodies ran, in order."""
    points: list[str]
    """Durable operations that it came to, in order."""
    shown: str
    error: str = ""
    digest: str = ""


@dataclass
class Verdict:
    """What was wrong after a kill and a resume."""

    at: str
    problems: list[str] = field(default_factory=list)

    def expect(self, holds: object, problem: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems.append(f"{self.at}: {problem}")


class Lab:
    """A server that forks runs; used as a context manager.

    Parameters
    ----------
    folder : Path
        An empty folder to work in.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs = 0
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JUPYTER_DATA_DIR": str(folder / "jupyter")},
        )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()

    def _answer(self) -> str:
        """Return the server's next line."""
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the server ended"
        return line

    def ask(self, **job: Any) -> dict[str, Any]:
        """Send a job and return the answer."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps({**JOB, **job}) + "\n")
        self._server.stdin.flush()
        answer: dict[str, Any] = json.loads(self._answer())
        return answer

    def new_folder(self) -> Path:
        """Return a new folder that holds the notebook."""
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        folder.mkdir()
        shutil.copy(HERE / "reference.ipynb", folder / "nb.ipynb")
        return folder

    def run(self, folder: Path, **job: Any) -> Outcome:
        """Run the notebook of a folder in a new process."""
        for name in ("bodies.log", "points.log", "report.json"):
            (folder / name).unlink(missing_ok=True)
        answer = self.ask(folder=str(folder), **job)
        return outcome(folder, answer)


def outcome(folder: Path, answer: dict[str, Any]) -> Outcome:
    """Return what a run left in its folder."""
    report = folder / "report.json"
    told = json.loads(report.read_text("utf-8")) if report.exists() else {}
    return Outcome(
        answer["pid"],
        answer["status"],
        _lines(folder / "bodies.log"),
        _lines(folder / "points.log"),
        (folder / "stdout.txt").read_text("utf-8"),
        **told,
    )


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; none if it is missing."""
    return path.read_text("utf-8").splitlines() if path.exists() else []


def try_kill(lab: Lab, whole: Outcome, at: str, **job: Any) -> Verdict:
    """Kill one run, resume it, and judge both.

    Parameters
    ----------
    lab : Lab
        Runs the notebook.
    whole : Outcome
        An uninterrupted run.
    at : str
        Where the run is killed, for the report.
    **job
        How it is killed.

    Returns
    -------
    Verdict
        Without problems if the promise held.
    """
    verdict, folder = Verdict(at), lab.new_folder()
    store = folder / ".nbckpt"
    killed = lab.run(folder, **job)
    verdict.expect(killed.status in (0, -signal.SIGKILL), f"ended by {killed.status}")
    left = tidy.read(store)
    verdict.expect(left.sound, "the database is damaged")
    verdict.expect(not left.dangling(), f"records without bytes: {left.dangling()}")
    # A process of its own resumes, so the fault is not planted in it.
    resumed = lab.run(folder, env=job.get("env", {}), after=COLLECT)
    judge_resume(verdict, whole, killed, resumed)
    rest = tidy.read(store)
    verdict.expect(not rest.stray(), f"stray parts after gc: {rest.stray()}")
    verdict.expect(not rest.dangling(), "records without bytes after the resume")
    verdict.expect(len(rest.steps) == len(set(whole.bodies)), "not all steps recorded")
    shutil.rmtree(folder)
    return verdict


def judge_resume(
    verdict: Verdict, whole: Outcome, killed: Outcome, resumed: Outcome
) -> None:
    """See that a resumed run did no more than it had to, and ended as it should."""
    verdict.expect(not resumed.error, f"the resume failed: {resumed.error}")
    verdict.expect(resumed.digest == whole.digest, "values differ")
    verdict.expect(resumed.shown.startswith(whole.shown), "outputs differ")
    runs = Counter(killed.bodies + resumed.bodies)
    again = [step for step, count in runs.items() if count > 1]
    verdict.expect(set(runs) == set(whole.bodies), f"bodies missing: {runs}")
    verdict.expect(max(runs.values(), default=1) <= 2, f"more than twice: {runs}")
    verdict.expect(again in ([], killed.bodies[-1:]), f"ran again: {again}")


def sample(points: list[str], wanted: int) -> list[tuple[int, str]]:
    """Choose points, by stride but so that each kind of operation is among them.

    Parameters
    ----------
    points : list of str
        Labels of all points, in order.
    wanted : int
        How many to choose, both sides counted; at least each kind once.

    Returns
    -------
    list of tuple
        Number of the point, from 1, and the side to die on.
    """
    first = {label: number for number, label in reversed(list(enumerate(points, 1)))}
    last = {label: number for number, label in enumerate(points, 1)}
    chosen = {(number, "after") for number in first.values()}
    chosen |= {(number, "before") for number in last.values()}
    every = [
        (n, when) for n in range(1, len(points) + 1) for when in ("before", "after")
    ]
    lacking = max(0, wanted - len(chosen))
    step = max(1, len(every) // lacking) if lacking else len(every)
    return sorted(chosen | set(every[step // 2 :: step]))
