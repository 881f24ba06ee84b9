"""A run that died is handed over, gone on with by the page's own command, and archived."""

from __future__ import annotations

import json
import os
import shlex
import signal
from typing import TYPE_CHECKING, Any

from tests.scenarios.stage import Stage, is_whole, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

GATE = (
    "import time\nopen('started', 'w').close()\n"
    "while not os.path.exists('go'): time.sleep(0.01)"
)


def dead_run(stage: Stage) -> None:
    """Let a run die in its second step by SIGKILL."""
    stage.edit("z = 0\n", f"{GATE}\nz = 0\n")
    kernel = stage.kernel()
    for source in stage.cells():
        kernel.send(source)
    wait_until((stage.work / "started").exists)
    os.kill(stage.told("status")["holder"]["pid"], signal.SIGKILL)
    wait_until(lambda: stage.told("status")["holder"]["standing"] == "dead")


def test_run_that_died_goes_on_by_the_command_of_its_handover(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("54_dead_run_is_not_running")
    dead_run(stage)
    data: Any = stage.told("handover")
    assert [flight["state"] for flight in data["in_flight"]] == ["interrupted"]
    assert data["next_step"] == data["in_flight"][0]["step"]
    assert "(dead)" in data["holder"]
    refused = stage.cli("finish", data["run"])
    assert refused.returncode == 3
    assert data["next_step"] in refused.stderr
    page = stage.cli("handover", data["run"]).stdout
    assert data["command"] in page.replace("\\", "")
    (stage.work / "go").touch()
    program, *words = shlex.split(data["command"])
    assert program == "nbckpt"
    done = stage.cli(*words)
    assert done.returncode == 0, done.stderr
    assert stage.told("handover")["next_step"] == ""


def test_archived_run_is_left_alone_and_the_next_run_is_new(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("54_dead_run_is_not_running")
    assert is_whole(stage.run_fresh())
    run_id = stage.told("status")["run"]
    done = stage.cli("finish", run_id)
    assert done.returncode == 0, done.stderr
    before = json.dumps(stage.told("audit", run_id)["history"])
    for words in (["rerun", "burn"], ["note", "late"]):
        assert stage.cli(*words, "--run", run_id).returncode != 0
    named = stage.cli("run", stage.notebook.name, "--run-id", run_id)
    assert named.returncode == 3
    assert "archived" in named.stderr
    assert is_whole(stage.run_fresh())
    assert stage.told("status")["run"] != run_id
    assert json.dumps(stage.told("audit", run_id)["history"]) == before
    audited = stage.cli("audit", run_id, "--verify")
    assert audited.returncode == 0
    assert "whole" in audited.stdout
