"""A job that is slower than its interval, and starts that come twice or late."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.receiver import Receiver
from tests.scenarios.stage import COMMAND, ROOT, Stage, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.timeout(600)  # several runs of three processes each
ONCE = {"POST /w1": 1, "POST /w2": 1, "POST /pay": 1}


@pytest.fixture
def service() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


class Job:
    """A notebook that is started again and again; its step w2 waits for a file."""

    def __init__(self, stage: Stage, service: Receiver) -> None:
        self.stage = stage
        self.service = service
        self.started: list[subprocess.Popen[str]] = []
        stage.rewrite(
            "%load_ext nbckpt\nimport nbckpt, os, time, urllib.request\n"
            f"def post(path, text=''):\n"
            f"    url = {service.base!r} + path\n"
            "    urllib.request.urlopen(url, text.encode()).close()",
            "%%step w1\npost('/w1')",
            "%%step w2 --effects shop\npost('/w2')\n"
            "while not os.path.exists('go'): time.sleep(0.01)\n"
            "nbckpt.effect('pay', lambda key: post('/pay', key))",
        )

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start it as cron does, and don't wait."""
        process = subprocess.Popen(
            [*COMMAND, "run", "case.ipynb", *options],
            cwd=self.stage.work,
            env=self.stage.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def reach_w2(self, times: int) -> None:
        """Wait until so many kernels are in the middle of w2."""
        wait_until(lambda: self.count()["POST /w2"] == times, seconds=240)

    def go(self) -> list[int]:
        """Let all go on; return how each start ended."""
        (self.stage.work / "go").touch()
        for process in self.started:
            process.communicate(timeout=300)
        return [process.returncode for process in self.started]

    def count(self) -> Counter[str]:
        return Counter(self.service.asked)

    def history(self, kind: str) -> list[str]:
        """Return the reasons of the lines of a kind, in all runs."""
        records = self.stage.records().records
        lines = [v for key, v in sorted(records.items()) if key.startswith("history/")]
        return [line["reason"] for line in lines if line["kind"] == kind]

    def runs(self) -> list[str]:
        return [key for key in self.stage.records().records if key.startswith("run/")]


@pytest.fixture
def job(stage_of: Callable[[str], Stage], service: Receiver) -> Iterator[Job]:
    found = Job(stage_of("38_two_kernels_one_run"), service)
    yield found
    found.go()


def test_slow_job_under_skip_runs_once_and_each_start_beside_it_is_logged(
    job: Job,
) -> None:
    job.start()
    job.reach_w2(1)
    assert [job.stage.cli("run", "case.ipynb").returncode for _ in "ab"] == [4, 4]
    assert job.go() == [0]
    skipped = job.history("skipped start")
    assert len(skipped) == 2
    assert all("is held by process" in reason for reason in skipped)
    # A late start finds it done.
    assert job.stage.cli("run", "case.ipynb").returncode == 0
    assert job.count() == ONCE
    assert len(job.runs()) == 1


def test_slow_job_under_replace_is_taken_over_and_pays_once(job: Job) -> None:
    for times in (1, 2, 3):
        job.start("--overlap", "replace")
        job.reach_w2(times)
    assert job.go() == [4, 4, 0]
    assert job.count() == {**ONCE, "POST /w2": 3}
    assert len(job.runs()) == 1
    assert job.stage.cli("run", "case.ipynb").returncode == 0
    assert job.count()["POST /pay"] == 1


def test_slow_job_under_concurrent_is_a_run_of_its_own_each_time(job: Job) -> None:
    for times in (1, 2):
        job.start("--overlap", "concurrent")
        job.reach_w2(times)
    assert job.go() == [0, 0]
    assert job.count() == dict.fromkeys(ONCE, 2)
    assert len(job.runs()) == 2
    paid = [
        body
        for path, body in zip(job.service.asked, job.service.bodies, strict=True)
        if path == "POST /pay"
    ]
    assert len(set(paid)) == 2


@pytest.mark.parametrize("options", [(), ("--run-id", "night-2026-11-28")])
def test_start_that_is_delivered_twice_at_once_does_everything_once(
    job: Job, options: tuple[str, ...]
) -> None:
    """Not even the store is there yet."""
    job.start(*options)
    job.start(*options)
    assert sorted(job.go()) in ([0, 0], [0, 4])
    assert job.count() == ONCE
    assert len(job.runs()) == 1


def test_start_that_comes_after_the_archive_changes_nothing(job: Job) -> None:
    named = ("--run-id", "night-1")
    job.start(*named)
    assert job.go() == [0]
    assert job.stage.cli("finish", "night-1").returncode == 0
    late = job.stage.cli("run", "case.ipynb", *named)
    assert late.returncode == 3
    assert "archived" in late.stderr
    assert job.count() == ONCE


def test_nightly_notebook_tells_its_url_and_stops_at_another_version(
    job: Job,
) -> None:
    """The workflow of the run is not changed unasked, and the one on call is told."""
    stage, service = job.stage, job.service
    shutil.copy(ROOT / "notebooks/nightly.ipynb", stage.notebook)
    told = {"NBCKPT_PING": f"{service.base}/night"}
    assert stage.cli("run", "case.ipynb", **told).returncode == 0
    stage.edit("--version 3", "--version 4")
    stopped = stage.cli("run", "case.ipynb", **told)
    assert stopped.returncode == 3
    assert service.asked == [
        "POST /night/start",
        "POST /night",
        "POST /night/start",
        "POST /night/fail",
    ]
    assert "StopForHuman" in service.bodies[3]
