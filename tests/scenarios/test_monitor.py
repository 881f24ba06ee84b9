"""A monitor in a process of its own, and kernels that are stopped, killed, or ask."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.receiver import Receiver
from tests.scenarios.stage import COMMAND, Stage, is_whole, wait_until
from tests.scenarios.test_two_kernels import CASE, GATE, bodies, reach_w2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRACE = "11s"


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    """The notebook whose step w2 waits for a file."""
    stage = stage_of(CASE)
    stage.edit("b'w2\\n'); time.sleep(0.5)", f"b'w2\\n')\n{GATE}\n_ = 0")
    return stage


@pytest.fixture
def service() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@contextmanager
def watching(stage: Stage, url: str) -> Iterator[None]:
    """Let a monitor post its alerts to a URL."""
    order = ["monitor", "case.ipynb", "--grace", GRACE, "--alert-url", url]
    process = subprocess.Popen(
        [*COMMAND, *order],
        cwd=stage.work,
        env=stage.env(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "is alive" in process.stdout.readline()
    yield
    process.kill()
    process.wait()
    process.stdout.close()


def told(service: Receiver) -> list[tuple[str, str]]:
    reports = [json.loads(body) for body in service.bodies]
    return [(report["news"], report["word"]) for report in reports]


def once(stage: Stage) -> tuple[int, dict[str, Any]]:
    done = stage.cli("monitor", "--once", "--json", "--grace", GRACE)
    return done.returncode, json.loads(done.stdout)


def test_stopped_then_killed_kernel_is_two_absences_with_one_alert_each(
    stage: Stage, service: Receiver
) -> None:
    session, _ = reach_w2(stage)
    with watching(stage, service.base):
        os.kill(session.pid, signal.SIGSTOP)
        wait_until(lambda: service.bodies)
        os.kill(session.pid, signal.SIGCONT)
        wait_until(lambda: len(service.bodies) == 2)
        os.kill(session.pid, signal.SIGKILL)
        wait_until(lambda: len(service.bodies) == 3)
        # A look of another monitor, which has seen nothing of all this.
        code, report = once(stage)
        assert (code, report["word"], report["news"]) == (1, "dead", "alert")
        assert once(stage)[1]["news"] == ""
        (stage.work / "go").touch()
        assert is_whole(stage.run_fresh())
        wait_until(lambda: len(service.bodies) == 4)
    assert told(service)[:3] == [
        ("alert", "late"),
        ("recovered", "alive"),
        ("alert", "dead"),
    ]
    # It may have seen the new kernel alive before that was through.
    assert told(service)[3] in {("recovered", "alive"), ("recovered", "finished")}
    assert "step w2 interrupted" in service.bodies[2]
    code, report = once(stage)
    assert (code, report["word"], report["news"]) == (0, "finished", "recovered")
    assert bodies(stage) == {"w1": 1, "w2": 2}


@pytest.mark.parametrize(
    ("last", "code", "word"),
    [
        ("answer = nbckpt.ask('Go on?', options=('yes', 'no'))", 3, "waiting"),
        ("raise ValueError('no')", 1, "failed"),
    ],
)
def test_run_that_waits_for_a_human_is_told_from_one_that_failed(
    stage: Stage, last: str, code: int, word: str
) -> None:
    stage.rewrite("%load_ext nbckpt\nimport nbckpt", f"%%step last\n{last}")
    assert stage.cli("run", "case.ipynb").returncode == code
    ended, report = once(stage)
    assert (ended, report["word"], report["news"]) == (1, word, "alert")
    assert f"step last {word}" in report["text"]
