"""Killed at any durable operation, a loop over items goes on as if nothing had been.

The list, the random draws and the weights of an interrupted run equal those of one that
was not; of the items only the one in flight, and those not yet written, run again.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import nbformat
import pytest

from tests.crash import tidy
from tests.crash.lab import COLLECT, Lab, Outcome, sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POINTS = 24
ITEMS = 6
SETUP = """
%load_ext nbckpt
import hashlib, os, random
import numpy as np
import nbckpt
log = os.open("bodies.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def said(text):
    os.write(log, f"{text}\\n".encode())
"""
KEEP = """%%step train --ignore said
random.seed(4)
rng = np.random.default_rng(9)
results, weights = [], np.zeros(40_000)
for item in nbckpt.items(range(6), keep=("results", "weights"), every=1):
    said(f"k{item}")
    results.append((item, random.random()))
    weights[item * 100 : item * 100 + 5000] += rng.normal(size=5000)
"""
PLAIN = """%%step visit --ignore said
for item in nbckpt.items(range(6), every=1):
    said(f"p{item}")
"""
MAP = """%%step price --ignore said
def price(item):
    said(f"m{item}")
    return (item, item * 1.5)
prices = nbckpt.map(price, range(6))
"""
DIGEST = """
text = repr(results).encode() + weights.tobytes() + repr(prices).encode()
digest = hashlib.sha256(text).hexdigest()
"""


def write_notebook(folder: Path) -> Path:
    """Put the loops in place of the reference notebook."""
    notebook = nbformat.v4.new_notebook()
    cells = [SETUP, KEEP, PLAIN, MAP, DIGEST]
    notebook.cells = [nbformat.v4.new_code_cell(text.strip()) for text in cells]
    nbformat.write(notebook, folder / "nb.ipynb")
    return folder


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab")) as found:
        yield found


@pytest.fixture(scope="module")
def whole(lab: Lab) -> Outcome:
    return lab.run(write_notebook(lab.new_folder()))


def judge(lab: Lab, whole: Outcome, number: int, when: str) -> list[str]:
    """Kill a run at a point, resume it, and return what was wrong."""
    folder, problems = write_notebook(lab.new_folder()), []
    killed = lab.run(folder, number=number, when=when)
    if killed.status not in (0, -signal.SIGKILL):
        problems.append(f"ended by {killed.status}")
    left = tidy.read(folder / ".nbckpt")
    if not left.sound or left.dangling():
        problems.append(f"records without bytes: {left.dangling()}")
    resumed = lab.run(folder, after=COLLECT)
    if resumed.error or resumed.digest != whole.digest:
        problems.append(f"the resume differs: {resumed.error}")
    again = set(killed.bodies) & set(resumed.bodies)
    if len(again) > 1 and not all(body.startswith("m") for body in again):
        problems.append(f"more than the item in flight ran again: {sorted(again)}")
    if set(killed.bodies) | set(resumed.bodies) != set(whole.bodies):
        problems.append("not all items were worked on")
    rest = tidy.read(folder / ".nbckpt")
    if rest.stray() or rest.dangling():
        problems.append(f"stray after gc: {rest.stray()}")
    return [f"{when} {number}: {problem}" for problem in problems]


def test_uninterrupted_run_works_on_each_item_once(whole: Outcome) -> None:
    assert whole.error == ""
    assert len(whole.bodies) == 3 * ITEMS == len(set(whole.bodies))


@pytest.mark.timeout(900)
def test_kill_at_durable_operations_costs_the_item_in_flight_only(
    lab: Lab, whole: Outcome
) -> None:
    points = sample(whole.points, POINTS)
    found = [
        text for number, when in points for text in judge(lab, whole, number, when)
    ]
    print(f"\n{len(points)} points of {2 * len(whole.points)}")  # noqa: T201
    assert found == []
