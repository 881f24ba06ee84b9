"""The kill matrix in real kernels, with a real figure, at a few points."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nbformat
import pytest

from tests.cases.driver import plain
from tests.cases.session import Session, kernel_env
from tests.crash import tidy
from tests.crash.lab import HERE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POINTS = 4
INSTALL = """
import os
from pathlib import Path
from tests.crash import crashpoints
log = os.open("points.log", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
points = crashpoints.Points(Path.cwd() / ".nbckpt", log, {number}, {when!r})
crashpoints.install(points)
del log, points
"""
FIGURE = """
import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(2, 1))
axes.plot(noise)
plt.show()
"""


@dataclass
class Run:
    """One Run All in a kernel."""

    digest: str
    shown: list[list[tuple[str, ...]]]
    """Outputs of each cell."""
    bodies: list[str]
    points: int


def sources() -> list[str]:
    """Return the cells of the reference notebook, with a figure of matplotlib."""
    cells = nbformat.read(HERE / "reference.ipynb", 4).cells
    found = [cell.source for cell in cells if cell.cell_type == "code"]
    drawn = [text.replace("coin =", f"{FIGURE}coin =") for text in found]
    assert drawn != found
    return ["%matplotlib inline", *drawn]


def run(folder: Path, number: int = 0, when: str = "before") -> Run:
    """Run all cells in a new kernel that dies at a point."""
    (folder / "bodies.log").unlink(missing_ok=True)
    # What a panel tells of a run is another thing after a kill.
    extra = {"PYTHONPATH": str(ROOT), "NBCKPT_PROGRESS": "off"}
    env = kernel_env(folder.parent, extra)
    session = Session(folder, env)
    session.run(INSTALL.format(number=number, when=when))
    shown = []
    for source in sources():
        reply = session.run(source)
        shown.append(plain(reply.outputs))
        if reply.status != "ok":
            break
    digest = session.value("digest") if session.alive else ""
    session.close()
    lines = (folder / "points.log").read_text("utf-8").count("\n")
    bodies = folder / "bodies.log"
    names = bodies.read_text("utf-8").split() if bodies.exists() else []
    return Run(digest, shown, names, lines)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "w"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("whole") / "w"
    folder.mkdir()
    return run(folder)


@pytest.mark.parametrize("part", range(1, POINTS + 1))
def test_killed_kernel_costs_the_step_in_flight_only(
    part: int, whole: Run, folder: Path
) -> None:
    number = whole.points * part // (POINTS + 1)
    killed = run(folder, number, "after" if part % 2 else "before")
    assert killed.digest == ""
    assert tidy.read(folder / ".nbckpt").dangling() == []
    resumed = run(folder)
    assert resumed.digest == whole.digest
    assert resumed.shown == whole.shown
    counts = Counter(killed.bodies + resumed.bodies)
    assert set(counts) == set(whole.bodies)
    assert [step for step, n in counts.items() if n > 1] in ([], killed.bodies[-1:])
