"""A run that waits for a person: asked, answered, and gone on with from there."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING

import nbformat
import pytest

from tests.scenarios.stage import COMMAND, Stage, is_whole, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cases.session import Session

LOG = "open('log.txt', 'a').write('{} ')"
APPROVE = f"""%%step approve
_ = {LOG.format("asked")}
word = nbckpt.ask(f"Delete {{rows}} rows?", ["yes", "no"], name="delete")
while os.path.exists("stay"): open("staying", "w").close(); time.sleep(0.01)"""
CELLS = (
    "%load_ext nbckpt\nimport nbckpt, os, time",
    f"%%step load\n_ = {LOG.format('load')}\nrows = 4",
    APPROVE,
    f"%%step delete\n_ = {LOG.format('delete')}\nleft = 0 if word == 'yes' else rows",
)


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    stage = stage_of("70_force_one_step")
    stage.rewrite(*CELLS)
    return stage


def log(stage: Stage) -> list[str]:
    return (stage.work / "log.txt").read_text("utf-8").split()


def kill(kernel: Session) -> None:
    os.kill(kernel.pid, signal.SIGKILL)
    wait_until(lambda: not kernel.alive)


def executed(stage: Stage) -> str:
    return json.dumps(nbformat.read(stage.work / "case.out.ipynb", 4))


def test_run_waits_with_exit_code_3_and_goes_on_after_the_command_it_showed(
    stage: Stage,
) -> None:
    stopped = stage.cli("run", "case.ipynb")
    assert stopped.returncode == 3
    assert "Delete 4 rows? (yes, no)" in stopped.stderr
    assert "waits for a human" in stopped.stdout
    told = stage.told("status")
    assert told["state"] == "waiting"
    assert told["holder"]["standing"] == "free"
    (asked,) = told["questions"]
    page = stage.cli("status").stdout
    assert "waiting for a human" in page
    command = asked["commands"][0]
    assert command in page
    assert stage.cli(*shlex.split(command)[1:]).returncode == 0
    done = stage.cli("run", "case.ipynb")
    assert done.returncode == 0, done.stderr
    assert log(stage) == ["load", "asked", "asked", "delete"]
    assert stage.told("status")["questions"] == []


def test_word_that_is_no_option_is_refused_and_nothing_is_answered(
    stage: Stage,
) -> None:
    assert stage.cli("run", "case.ipynb").returncode == 3
    refused = stage.cli("answer", "case-1", "delete", "maybe")
    assert refused.returncode == 2
    assert "Choose one of: yes, no" in refused.stderr
    assert len(stage.told("status")["questions"]) == 1


def test_of_two_answers_at_once_one_wins_and_the_other_is_told_who_was_first(
    stage: Stage,
) -> None:
    assert stage.cli("run", "case.ipynb").returncode == 3
    for word in ("yes", "no"):
        assert word in stage.told("status")["questions"][0]["options"]
    processes = [
        subprocess.Popen(
            [*COMMAND, "answer", "case-1", "delete", word],
            cwd=stage.work,
            env=stage.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for word in ("yes", "no")
    ]
    said = [process.communicate(timeout=120) for process in processes]
    codes = [process.returncode for process in processes]
    assert sorted(codes) == [0, 1], said
    winner = ("yes", "no")[codes.index(0)]
    assert f"was answered {winner!r} by" in said[codes.index(1)][1]
    kernel = stage.kernel()
    assert is_whole(stage.run_all(kernel))
    assert kernel.value("word") == repr(winner)


def test_killed_before_the_answer_the_question_stands(stage: Stage) -> None:
    first = stage.kernel()
    assert "WaitingForAnswer" in stage.run_all(first)[-1].complaint
    kill(first)
    assert stage.cli("answer", "case-1", "delete", "no").returncode == 0
    second = stage.kernel()
    assert is_whole(stage.run_all(second))
    assert second.value("left") == "4"
    assert log(stage) == ["load", "asked", "asked", "delete"]


def test_killed_after_the_answer_it_is_not_asked_again(stage: Stage) -> None:
    first = stage.kernel()
    stage.run_all(first)
    assert stage.cli("answer", "case-1", "delete", "yes").returncode == 0
    (stage.work / "stay").touch()
    for source in stage.cells():
        first.send(source)
    wait_until((stage.work / "staying").exists)
    kill(first)
    (stage.work / "stay").unlink()
    second = stage.kernel()
    assert is_whole(stage.run_all(second))
    assert second.value("left") == "0"
    kinds = [event["kind"] for event in stage.told("show", "approve")["history"]]
    assert (kinds.count("asked"), kinds.count("answered")) == (1, 1)


def test_click_answers_and_the_buttons_give_way_to_a_line(stage: Stage) -> None:
    kernel = stage.kernel()
    reply = stage.run_all(kernel)[-1]
    kinds = [out["t"] for out in reply.outputs]
    assert kinds == ["error", "display_data"]
    buttons = (
        "{w.description: w for w in list(ipywidgets.Widget.widgets.values()) "
        "if isinstance(w, ipywidgets.Button)}"
    )
    clicked = kernel.run(f"import ipywidgets\n{buttons}['yes'].click()")
    assert clicked.status == "ok", clicked.complaint
    assert stage.told("status")["questions"] == []
    assert is_whole(stage.run_all(kernel))
    assert kernel.value("word") == "'yes'"
    late = stage.cli("answer", "case-1", "delete", "no")
    assert late.returncode == 1


def test_headless_notebook_shows_no_buttons(stage: Stage) -> None:
    assert stage.cli("run", "case.ipynb").returncode == 3
    assert "widget" not in executed(stage)


def test_words_from_the_command_line_are_those_of_the_notebook(stage: Stage) -> None:
    stage.rewrite(
        "%load_ext nbckpt\nimport nbckpt",
        "%%step a\nx = nbckpt.decide('cut', lambda: 1 / 0)",
        '%nbckpt unknown "which zone?"\n%nbckpt note looked by hand',
    )
    assert stage.cli("run", "case.ipynb").returncode == 1
    decided = stage.cli("decide", "case-1", "cut", "[120]", "--reason", "as in May")
    assert decided.returncode == 0, decided.stderr
    kernel = stage.kernel()
    assert is_whole(stage.run_all(kernel))
    assert kernel.value("x") == "[120]"
    again = stage.cli("decide", "case-1", "cut", "90")
    assert again.returncode == 1
    assert "as in May" in again.stderr
    assert "which zone?" in stage.cli("status").stdout
    settled = stage.cli("unknown", "case-1", "--settle", "1", "--why", "UTC")
    assert settled.returncode == 0, settled.stderr
    assert stage.told("status")["unknowns"] == []
    assert stage.cli("unknown", "case-1", "--settle", "1", "--why", "x").returncode == 1
    assert stage.cli("note", "case-1", "and by eye").returncode == 0
    assert stage.cli("unknown", "case-1").returncode == 2
