"""The panel as plain text says what its HTML says."""

from __future__ import annotations

from nbckpt.panel.text import head_text, steps_text
from nbckpt.panel.view import LoopView, RunView, State, StepView

LOOP = LoopView("1", 640, 1200, 3)
STEPS = (
    StepView(1, "load", State.SKIPPED, saved=512.0),
    StepView(2, "geocode", State.RUNNING, 0.0, 60.0, 75.0, loops=(LoopView("1", 7),)),
    StepView(3, "report", State.FAILED, 0.5, why="KeyError:\n'x'"),
    StepView(4, "send", expected=2.0),
)
RUN = RunView("r-1", STEPS, 50.0, 100.0, "nbckpt run a.ipynb", (LOOP,))


def test_head_is_one_line_for_the_run_and_one_for_the_step_that_runs() -> None:
    run, step = head_text(RUN).splitlines()
    assert run.startswith("run r-1: 1 of 4 steps done, elapsed 50 s, saved 8 min 32 s")
    assert step[1:] == (
        " geocode: running for 40 s, last time 1 min 15 s, 640 of 1200 items, 3 failed"
    )


def test_head_of_an_idle_run_is_one_line() -> None:
    assert head_text(RunView()) == "no step has run yet"


def test_steps_have_a_line_each_with_the_command_below() -> None:
    *rows, last = steps_text(RUN).splitlines()
    assert rows == [
        "1 load: verified, skipped, saved 8 min 32 s",
        "2 geocode: running, last time 1 min 15 s, 7 items",
        "3 report: failed, 0.50 s, KeyError: 'x'",
        "4 send: pending, last time 2.0 s",
    ]
    assert last.endswith("nbckpt run a.ipynb")


def test_text_holds_nothing_that_steers_a_terminal() -> None:
    step = StepView(1, "a\x1b[31m\nb", why="c\x9bd")
    shown = head_text(RunView("\x1b")) + steps_text(RunView("r", (step,)))
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert len(steps_text(RunView("r", (step,))).splitlines()) == 1


def test_fold_is_one_line() -> None:
    steps = tuple(StepView(n, f"s{n}", State.SKIPPED, saved=2.0) for n in range(1, 31))
    line = "1 to 30: 30 steps, verified, skipped, saved 1 min 0 s"
    assert steps_text(RunView("r", steps)) == line
