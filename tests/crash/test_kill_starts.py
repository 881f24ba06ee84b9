"""``nbckpt run`` killed before its kernel starts, then delivered again, twice and late.

The command is killed with SIGKILL before and after each durable operation from where it
looks for its run: so also between the record of its placement and the start of a kernel.
Whatever is started then, there is one run, and its effect happens once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import nbformat
import pytest

from tests.cases.session import kernel_env
from tests.crash import tidy
from tests.crash.lab import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
SETUP = """%load_ext nbckpt
import nbckpt
def pay(key):
    print(key, file=open("paid.log", "a"))"""
CELLS = (
    SETUP,
    "%%step load\nrows = 3",
    "%%step pay --effects bank\nnbckpt.effect('pay', pay)",
)
COMMAND = """
import os
from pathlib import Path
from nbckpt.cli import main
from nbckpt.headless import loop
from tests.crash import crashpoints
log = os.open("points.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
points = crashpoints.Points(
    Path.cwd() / ".nbckpt", log, {number}, {when!r}, commits_only=True, is_on=False
)
crashpoints.install(points)
opened = loop._open
def counted(order, store):
    store.transact(lambda _: None)
    points.is_on = True
    return opened(order, store)
loop._open = counted
main()
"""


class Starts:
    """One notebook, started by the command again and again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options = folder, options
        folder.mkdir(parents=True)
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
        nbformat.write(notebook, folder / "nb.ipynb")

    def begin(
        self, *more: str, number: int = 0, when: str = "before"
    ) -> subprocess.Popen[bytes]:
        """Start the command; it dies at a point, if it is told one."""
        source = COMMAND.format(number=number, when=when)
        return subprocess.Popen(
            [sys.executable, "-c", source, "run", "nb.ipynb", *self.options, *more],
            cwd=self.folder,
            env=kernel_env(self.folder, {"PYTHONPATH": str(ROOT)}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def points(self) -> list[str]:
        """Return the points that the start came to which was the last."""
        return (self.folder / "points.log").read_text().splitlines()

    def wrong(self) -> list[str]:
        """Return what is wrong in the end."""
        paid = (self.folder / "paid.log").read_text().splitlines()
        records = tidy.read(self.folder / ".nbckpt").records
        runs = [key for key in records if key.startswith("run/")]
        placements = [key for key in records if key.startswith("placement/")]
        counts = (len(paid), len(runs), len(placements))
        return [] if counts == (1, 1, 1) else [f"paid, runs, placements: {counts}"]


def try_start(starts: Starts, number: int, when: str) -> list[str]:
    """Kill a start at a point; two more come at once, and one late."""
    killed = starts.begin(number=number, when=when).wait(timeout=120)
    twice = [starts.begin(), starts.begin()]
    codes = sorted(start.wait(timeout=120) for start in twice)
    late = starts.begin().wait(timeout=120)
    found = starts.wrong()
    if killed != -signal.SIGKILL or codes not in ([0, 0], [0, 4]) or late:
        found.append(f"ended by {killed}, then {codes}, late {late}")
    shutil.rmtree(starts.folder)
    return [f"{when} {number}: {text}" for text in found]


@pytest.mark.parametrize("options", [(), ("--run-id", "night-1")])
@pytest.mark.timeout(900)
def test_start_killed_before_its_kernel_is_delivered_again_and_pays_once(
    tmp_path: Path,
    options: tuple[str, ...],
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    whole = Starts(tmp_path / "whole", *options)
    assert whole.begin().wait(timeout=120) == 0
    assert whole.wrong() == []
    labels = whole.points()
    every = [(n, w) for n in range(1, len(labels) + 1) for w in ("before", "after")]
    # The last one comes after the placement, before the kernel.
    chosen = every if ALL else every[-1:]
    wrong: list[str] = []
    for number, when in chosen:
        starts = Starts(tmp_path / f"{when}-{number}", *options)
        wrong += try_start(starts, number, when)
    record_testsuite_property(f"kill points, starts {options}", len(chosen))
    text = f"starts {options}: {len(chosen)} points, {len(wrong)} violations"
    print(f"\n{text}")  # noqa: T201
    assert not wrong, "\n".join(wrong)


def test_start_that_begins_anew_each_time_pays_twice(tmp_path: Path) -> None:
    """Negative control: the test above can fail."""
    starts = Starts(tmp_path / "anew", "--fresh")
    codes = [starts.begin().wait(timeout=120) for _ in "ab"]
    assert codes == [0, 0]
    assert starts.wrong() == ["paid, runs, placements: (2, 2, 2)"]
