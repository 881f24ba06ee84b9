"""Resume, fresh and stop, chosen for a whole run; killed kernels, real ones."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.stage import Stage, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

STAY = "while os.path.exists('stay'): open('staying', 'w').close(); time.sleep(0.01)"
LOG = "_ = open('{}.log', 'a').write('.')"
CELLS = (
    "%load_ext nbckpt\nimport os, time",
    f"%%step load\n{LOG.format('load')}\nrows = 4",
    f"%%step pay\n{LOG.format('pay')}\n{STAY}",
)


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    """Return a notebook whose kernel was killed while it paid."""
    stage = stage_of("70_force_one_step")
    stage.rewrite(*CELLS)
    (stage.work / "stay").touch()
    kernel = stage.kernel()
    for source in CELLS[:-1]:
        assert kernel.run(source).status == "ok"
    kernel.send(CELLS[-1])
    wait_until((stage.work / "staying").exists)
    os.kill(kernel.pid, signal.SIGKILL)
    wait_until(lambda: not kernel.alive)
    (stage.work / "stay").unlink()
    assert bodies(stage) == {"load": 1, "pay": 1}
    return stage


def bodies(stage: Stage) -> dict[str, int]:
    """Return step → how often its body began."""
    found = stage.work.glob("*.log")
    return {path.stem: len(path.read_text("utf-8")) for path in found}


def events(stage: Stage, run: str) -> list[tuple[str, str, str]]:
    """Return kind, step and reason of what the audit tells besides the steps' course."""
    done = stage.cli("audit", run, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["events"]
    return [(event["kind"], event["step"], event["reason"]) for event in found]


def test_resume_runs_the_step_in_flight_again(stage: Stage) -> None:
    assert stage.cli("run", "case.ipynb").returncode == 0
    assert bodies(stage) == {"load": 1, "pay": 2}
    assert ("taken", "", "resume") in events(stage, "case-1")


def test_fresh_runs_all_again_under_a_new_id(stage: Stage) -> None:
    assert stage.cli("run", "case.ipynb", "--fresh").returncode == 0
    assert bodies(stage) == {"load": 2, "pay": 2}
    assert events(stage, "case-2")[0] == ("fresh", "", "")
    assert events(stage, "case-1") == []


def test_stop_leaves_the_step_in_flight_to_a_person(stage: Stage) -> None:
    stopped = stage.cli("run", "case.ipynb", "--stop-on-redo")
    assert stopped.returncode == 3, stopped.stderr
    assert "attempted and not completed (running)" in stopped.stderr
    assert bodies(stage) == {"load": 1, "pay": 1}
    told = events(stage, "case-1")
    assert ("taken", "", "stop") in told
    assert [(kind, step) for kind, step, _ in told if kind == "stopped"] == [
        ("stopped", "pay")
    ]
    assert stage.cli("rerun", "pay").returncode == 0
    assert stage.cli("run", "case.ipynb", "--stop-on-redo").returncode == 0
    assert bodies(stage) == {"load": 1, "pay": 2}


def test_other_version_stops_and_a_fork_goes_on_from_the_step_that_changed(
    stage: Stage,
) -> None:
    assert stage.cli("run", "case.ipynb").returncode == 0
    stopped = stage.cli("run", "case.ipynb", "--version", "2")
    assert stopped.returncode == 3
    assert "nbckpt fork case-1 --from STEP --version 2" in stopped.stderr
    why = "begun with version none, this notebook is version 2"
    assert ("stopped", "", why) in events(stage, "case-1")
    forked = stage.cli("fork", "case-1", "--from", "pay", "--version", "2")
    assert forked.returncode == 0, forked.stderr
    assert stage.cli("run", "case.ipynb", "--version", "2").returncode == 0
    assert bodies(stage) == {"load": 1, "pay": 3}
    assert ("forked", "pay") in [(k, s) for k, s, _ in events(stage, "case-2")]


def test_changed_list_of_steps_is_told_by_the_command(stage: Stage) -> None:
    load, pay = CELLS[1:]
    mail = f"%%step mail\n{LOG.format('mail')}"
    stage.rewrite(CELLS[0], mail, load, pay.replace("%%step pay", "%%step bill"))
    done = stage.cli("run", "case.ipynb")
    assert done.returncode == 0, done.stderr
    assert "the list of steps changed: renamed pay to bill; added mail\n" in done.stdout
    lines = json.loads(stage.cli("audit", "case-1", "--format", "json").stdout)
    plans = [line["reason"] for line in lines["history"] if line["kind"] == "plan"]
    assert plans == ["", "renamed pay to bill; added mail"]
