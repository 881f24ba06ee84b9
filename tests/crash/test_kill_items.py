"""Killed at any durable operation, a loop over items goes on as if nothing had been.

The list, the random draws and the weights of an interrupted run equal those of one that
was not; no item that is recorded as done runs again. Killed are the process of the
notebook, and the workers of a pool. By default a sample in which every kind of operation
occurs; with ``NBCKPT_KILL_ALL=1`` all points.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from tests.crash import tidy
from tests.crash.lab import COLLECT, Lab, Outcome, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 8
ITEMS = 6
SETUP = """
%load_ext nbckpt
import ctypes, hashlib, multiprocessing, os, random, signal, threading
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import nbckpt
log = os.open("bodies.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def said(text):
    os.write(log, f"{text}\\n".encode())
def work():
    threading.Event().wait(0.03)  # longer than a group of items is kept back
def follow():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # a worker ends with its parent
"""
READY = "%%step ready\nis_ready = True"
COUNT = "points.is_on = True"
KEEP = """%%step train --ignore said
random.seed(4)
np.random.seed(5)
rng = np.random.default_rng(9)
results, weights = [], np.zeros(40_000)
same = results
for item in nbckpt.items(range({items}), keep=("results", "weights"), every={every}):
    said(item)
    same.append((item, random.random(), float(np.random.random())))
    weights[item * 100 : item * 100 + 5000] += rng.normal(size=5000)
made = (results, same is results, weights.tobytes())
"""
PLAIN = """%%step visit --ignore said
for item in nbckpt.items(range({items}), every=1):
    said(item)
made = "visited"
"""
MAP = """%%step price --ignore said work
def price(item):
    said(item)
    work()
    return (item, item * 1.5)
made = nbckpt.map(price, range({items}))
"""
PROCESSES = """%%step price --ignore said work follow --env DIE
def price(item):
    die = os.environ.get("DIE", "")
    if die == f"before {{item}}" and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    said(item)
    work()
    if die == f"after {{item}}" and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return (item, item * 1.5)
fork = multiprocessing.get_context("fork")
with ProcessPoolExecutor(2, mp_context=fork, initializer=follow) as pool:
    made = nbckpt.map(price, range({items}), executor=pool)
del fork, pool
"""
DIGEST = "digest = hashlib.sha256(repr(made).encode()).hexdigest()"
SHAPES = {
    "keep": KEEP.replace("{every}", "1"),
    "keep, every third": KEEP.replace("{every}", "3"),
    "plain": PLAIN,
    "map": MAP,
    "processes": PROCESSES,
}
GROUPS = {"keep": 1, "keep, every third": 3, "plain": 1}
"""How many items a kill may cost; those of `map` are written by time."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab")) as found:
        yield found


class Trial:
    """One notebook with one loop."""

    def __init__(self, lab: Lab, shape: str, sabotage: str = "") -> None:
        self.lab, self.shape, self.sabotage = lab, shape, sabotage
        self.folder = lab.new_folder()
        cells = (SETUP, READY, COUNT, SHAPES[shape].format(items=ITEMS), DIGEST)
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(text.strip()) for text in cells]
        nbformat.write(notebook, self.folder / "nb.ipynb")

    def run(self, **job: Any) -> Outcome:
        """Run the notebook in a new process."""
        return self.lab.run(
            self.folder, is_switched=True, sabotage=self.sabotage, **job
        )

    def done(self) -> set[str]:
        """Return the items that are recorded as done."""
        rows = tidy.read(self.folder / ".nbckpt").records.items()
        items = [row["items"] for key, row in rows if key.startswith("done/")]
        return {item[0] for row in items for item in row}


def judge(trial: Trial, whole: Outcome, number: int, when: str) -> list[str]:
    """Kill a run at a point, resume it, and return what was wrong."""
    killed, problems = trial.run(number=number, when=when), []
    if killed.status not in (0, -signal.SIGKILL):
        problems.append(f"ended by {killed.status}")
    left, done = tidy.read(trial.folder / ".nbckpt"), trial.done()
    if not left.sound or left.dangling():
        problems.append(f"records without bytes: {left.dangling()}")
    resumed = trial.run(after=COLLECT)
    if resumed.error or resumed.digest != whole.digest:
        problems.append(f"the resume differs: {resumed.error}")
    again = set(killed.bodies) & set(resumed.bodies)
    if done & again or len(again) > GROUPS.get(trial.shape, ITEMS):
        problems.append(f"ran again: {sorted(again)}, of which done: {sorted(done)}")
    if set(killed.bodies) | set(resumed.bodies) != set(whole.bodies):
        problems.append("not all items were worked on")
    rest = tidy.read(trial.folder / ".nbckpt")
    if rest.stray() or rest.dangling():
        problems.append(f"stray after gc: {rest.stray()}")
    shutil.rmtree(trial.folder)
    return [f"{trial.shape}, {when} {number}: {problem}" for problem in problems]


def uninterrupted(lab: Lab, shape: str, sabotage: str = "") -> Outcome:
    """Return a run that works on each item once."""
    whole = Trial(lab, shape, sabotage).run()
    assert whole.error == ""
    assert sorted(whole.bodies) == [str(item) for item in range(ITEMS)]
    return whole


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.timeout(3600 if ALL else 900)
def test_kill_at_durable_operations_costs_the_item_in_flight_only(
    lab: Lab, shape: str, record_testsuite_property: Callable[[str, object], None]
) -> None:
    whole = uninterrupted(lab, shape)
    labels = whole.points
    chosen = sample(labels, 2 * len(labels) if ALL else POINTS)
    wrong: list[str] = []
    for number, when in chosen:
        wrong += judge(Trial(lab, shape), whole, number, when)
    record_testsuite_property(f"kill points, items, {shape}", len(chosen))
    print(f"\n{shape}: {len(chosen)} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("fault", "shape"),
    [("items_first", "keep"), ("done_early", "processes")],
)
def test_items_recorded_apart_from_what_they_left_are_lost(
    lab: Lab, fault: str, shape: str
) -> None:
    """Negative control: the test above can fail."""
    whole = uninterrupted(lab, shape, fault)
    commits = [n for n, label in enumerate(whole.points, 1) if "COMMIT" in label]
    wrong: list[str] = []
    for number in reversed(commits):
        wrong += judge(Trial(lab, shape, fault), whole, number, "after")
        if wrong:
            break
    print(f"\n{fault}: {len(wrong)} violations")  # noqa: T201
    assert any("the resume differs" in text for text in wrong)


def lose_worker(trial: Trial, whole: Outcome, die: str) -> list[str]:
    """Kill the worker that comes to an item first; return what was wrong."""
    ended = trial.run(env={"DIE": die})
    shutil.rmtree(trial.folder)
    if ended.error or ended.digest != whole.digest:
        return [f"{die}: {ended.error or 'the results differ'}"]
    times = Counter(ended.bodies)
    if times.keys() != set(whole.bodies) or max(times.values()) > 2:
        return [f"{die}: worked on {times}"]
    return []


@pytest.mark.timeout(900)
def test_worker_killed_in_any_item_is_replaced_and_no_item_is_lost(
    lab: Lab, record_testsuite_property: Callable[[str, object], None]
) -> None:
    whole = uninterrupted(lab, "processes")
    deaths = [f"{when} {n}" for n in range(ITEMS) for when in ("before", "after")]
    chosen = deaths if ALL else deaths[::5]
    wrong: list[str] = []
    for die in chosen:
        wrong += lose_worker(Trial(lab, "processes"), whole, die)
    record_testsuite_property("kill points, workers of a pool", len(chosen))
    print(f"\nworkers: {len(chosen)} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


def test_items_of_a_broken_pool_that_are_forgotten_are_missed(lab: Lab) -> None:
    """Negative control: the test above can fail."""
    whole = uninterrupted(lab, "processes")
    trial = Trial(lab, "processes", "forget_suspects")
    assert lose_worker(trial, whole, "before 2") != []
