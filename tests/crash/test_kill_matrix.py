"""Killed at any durable operation or moment, a run loses at most the step in flight.

The reference notebook is killed with SIGKILL before and after its durable operations, and
at moments of time; after each kill it is run again from the files alone. By default a
sample is tried, in which every kind of operation occurs; with ``NBCKPT_KILL_ALL=1`` all
points and 60 moments are.
"""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash.lab import COLLECT, Lab, Outcome, Verdict, sample, try_kill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 40
# Workers of pytest-xdist are side by side already.
LABS = 1 if "PYTEST_XDIST_WORKER" in os.environ else 2
MOMENTS = 60 if ALL else 6


@dataclass
class Bench:
    """Laboratories that work side by side, and an uninterrupted run."""

    labs: list[Lab]
    whole: Outcome
    seconds: float

    def try_all(self, jobs: list[tuple[str, dict[str, Any]]]) -> list[Verdict]:
        """Try each job, the laboratories taking turns."""
        with ThreadPoolExecutor(len(self.labs)) as pool:
            parts = [
                pool.submit(self._try_some, lab, jobs[number :: len(self.labs)])
                for number, lab in enumerate(self.labs)
            ]
            return [verdict for part in parts for verdict in part.result()]

    def _try_some(
        self, lab: Lab, jobs: list[tuple[str, dict[str, Any]]]
    ) -> list[Verdict]:
        """Try jobs one after the other."""
        return [try_kill(lab, self.whole, at, **job) for at, job in jobs]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with ExitStack() as stack:
        labs = [
            stack.enter_context(Lab(tmp_path_factory.mktemp("lab")))
            for _ in range(LABS)
        ]
        folder = labs[0].new_folder()
        began = time.monotonic()
        whole = labs[0].run(folder)
        yield Bench(labs, whole, time.monotonic() - began)


def problems(verdicts: list[Verdict]) -> list[str]:
    return [problem for verdict in verdicts for problem in verdict.problems]


def jobs_at_points(
    points: list[tuple[int, str]], labels: list[str], **more: Any
) -> list[tuple[str, dict[str, Any]]]:
    return [
        (
            f"{when} {number} ({labels[number - 1]})",
            {"number": number, "when": when, **more},
        )
        for number, when in points
    ]


def test_uninterrupted_run_completes_and_its_repetition_runs_nothing(
    bench: Bench,
) -> None:
    assert bench.whole.error == ""
    lab = bench.labs[0]
    folder = lab.new_folder()
    first = lab.run(folder)
    again = lab.run(folder, after=COLLECT)
    assert (first.digest, again.digest) == (bench.whole.digest, bench.whole.digest)
    assert first.shown == bench.whole.shown
    assert again.shown.startswith(first.shown)
    assert len(first.bodies) >= 6
    assert again.bodies == []


@pytest.mark.timeout(7200 if ALL else 600)
def test_kill_at_every_durable_operation_costs_the_step_in_flight_only(
    bench: Bench, record_testsuite_property: Callable[[str, object], None]
) -> None:
    labels = bench.whole.points
    wanted = 2 * len(labels) if ALL else POINTS
    points = sample(labels, wanted)
    verdicts = bench.try_all(jobs_at_points(points, labels))
    record_testsuite_property("kill points tried", len(verdicts))
    print(f"\n{len(verdicts)} points of {2 * len(labels)}, {len(set(labels))} kinds")  # noqa: T201
    assert not (found := problems(verdicts)), "\n".join(found)


@pytest.mark.timeout(1800 if ALL else 600)
def test_kill_at_moments_of_time_costs_the_step_in_flight_only(bench: Bench) -> None:
    chance = random.Random(5)
    delays = [chance.uniform(0.02, bench.seconds) for _ in range(MOMENTS)]
    jobs = [(f"at {delay:.3f} s", {"delay": delay}) for delay in delays]
    verdicts = bench.try_all(jobs)
    print(f"\n{len(verdicts)} moments within {bench.seconds:.2f} s")  # noqa: T201
    assert not (found := problems(verdicts)), "\n".join(found)


def test_record_before_its_bytes_would_be_noticed(bench: Bench) -> None:
    """Negative control: the matrix finds the fault that the order of writes prevents."""
    labels = bench.whole.points
    commits = [n for n, label in enumerate(labels, 1) if label == "sql COMMIT"]
    some = [(number, "after") for number in commits[-12::2]]
    jobs = jobs_at_points(some, labels, sabotage="record_first")
    found = problems(bench.try_all(jobs))
    assert any("records without bytes" in problem for problem in found)
