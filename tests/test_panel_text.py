"""The panel as plain text says what its HTML says."""

from __future__ import annotations

from nbckpt.panel.text import head_text, steps_text
from nbckpt.panel.view import LoopView, RunView, State, StepView

LOOP = LoopView("1", 640, 1200, 3)
STEPS = (
    StepView(1, "load", State.SKIPPED, saved=512.0),
    StepView(2, "geocode", State.RUNNING, 0.0, 60.0, 75.0),
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


def test_steps_stand_in_a_table_with_the_command_below() -> None:
    head, *rows, last = steps_text(RUN).splitlines()
    assert head.split() == ["#", "step", "state", "time", "why"]
    assert [row.split()[1:3] for row in rows] == [
        ["1", "load"], ["2", "geocode"], ["3", "report"], ["4", "send"],
    ]  # fmt: skip
    assert rows[0].endswith("verified, skipped  saved 8 min 32 s")
    assert rows[2].endswith("KeyError: 'x'")
    assert rows[3].endswith("pending            last time 2.0 s")
    assert last.endswith("nbckpt run a.ipynb")


def test_text_holds_nothing_that_steers_a_terminal() -> None:
    step = StepView(1, "a\x1b[31m\nb", why="c\x9bd")
    shown = head_text(RunView("\x1b")) + steps_text(RunView("r", (step,)))
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert len(steps_text(RunView("r", (step,))).splitlines()) == 2


def test_fold_is_one_line() -> None:
    steps = tuple(StepView(n, f"s{n}", State.SKIPPED, saved=2.0) for n in range(1, 31))
    [_, line] = steps_text(RunView("r", steps)).splitlines()
    assert line.split() == [
        State.SKIPPED.icon, "1-30", "30", "steps", "verified,", "skipped",
        "saved", "1", "min", "0", "s",
    ]  # fmt: skip
