"""A run on a terminal: lines that stay, and below them what is at hand."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from nbckpt.cli.terminal import Row, Terminal, at_hand, picture, rows
from nbckpt.headless.progress import StepLine, Tally
from nbckpt.panel.view import LoopView, RunView, State, StepView
from nbckpt.records import PlannedStep, PlanRecord, RunRecord
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
NAMES = ("load", "clean", "fit", "report", "send", "archive")


class Screen(io.StringIO):
    """A terminal's file, which tells when a text was drawn."""

    def await_text(self, text: str) -> None:
        """Wait until a text was written."""
        end, pause = time.monotonic() + 60, threading.Event()
        while text not in self.getvalue():
            assert time.monotonic() < end, f"never drawn: {text!r}"
            pause.wait(0.02)


def a_terminal(width: int = 80) -> tuple[Screen, Terminal]:
    screen = Screen()
    console = Console(
        file=screen, force_terminal=True, width=width, highlight=False, _environ={}
    )
    return screen, Terminal(console)


def a_run(**states: State) -> RunView:
    """Return a run that began at 100, as of 130."""
    steps = tuple(
        StepView(number, name, states.get(name, State.PENDING), started_at=120.0)
        for number, name in enumerate(NAMES, 1)
    )
    return RunView("etl-1", steps, began=100.0, at=130.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a store whose run died in its first step."""
    store = Store(tmp_path / ".nbckpt", load_secret())
    run = open_run(store, "etl", RunRecord("", str(tmp_path / "etl.ipynb")))
    journal = Journal(store, run.run_id, 1, lambda _: None)
    steps = (PlannedStep(n, name, "code") for n, name in enumerate(NAMES, 1))
    journal.write_plan(PlanRecord(tuple(steps), "notebook"))
    journal.start("load", "it has no record yet", writes=(), durable=False)
    store.close()
    return store.folder


def test_rows_are_the_run_its_running_step_the_items_and_what_comes_next() -> None:
    run = a_run(load=State.SKIPPED, clean=State.RUNNING)
    loops = (LoopView("orders", 12, 40, 1), LoopView("more", 3))
    run = run.put(StepView(2, "clean", State.RUNNING, 0, 120.0, 60.0, loops=loops))
    assert rows(run) == [
        Row(" ", "1 of 6 steps done, elapsed 30 s", "bold", (1, 6)),
        Row("▸", "clean  running for 10 s, last time 1 min 0 s", "cyan"),
        Row(" ", "  12 of 40 items, 1 failed", "", (12, 40)),
        Row(" ", "  3 items", "", (3, 0)),
        Row("○", "fit  pending", "dim"),
        Row("○", "report  pending", "dim"),
        Row("○", "send  pending", "dim"),
        Row(" ", "and 1 more", "dim"),
    ]


def test_rows_of_a_run_that_is_through_are_one() -> None:
    run = a_run(**dict.fromkeys(NAMES, State.DONE))
    assert [row.bar for row in rows(run)] == [(6, 6)]


@pytest.mark.parametrize(
    ("state", "began", "known"),
    [
        (State.FAILED, 125.0, State.PENDING),
        (State.INTERRUPTED, 125.0, State.PENDING),
        (State.WAITING, 125.0, State.PENDING),
        (State.STALE, 125.0, State.PENDING),
        (State.FAILED, 115.0, State.FAILED),
        (State.DONE, 125.0, State.DONE),
        (State.RUNNING, 125.0, State.RUNNING),
    ],
)
def test_step_that_failed_before_this_call_is_still_to_come(
    state: State, began: float, known: State
) -> None:
    assert at_hand(a_run(load=state), began, Tally()).steps[0].state is known


def test_step_that_this_call_verified_is_skipped_and_saved_its_time() -> None:
    run = a_run().put(StepView(1, "load", State.DONE, seconds=7.0))
    found = at_hand(run, 125.0, Tally(skipped=["load", "clean"]))
    assert (found.steps[0].state, found.saved) == (State.SKIPPED, 7.0)
    assert found.steps[1].state is State.PENDING


@pytest.mark.parametrize(
    ("kind", "icon"),
    [
        ("completed", "✓"),
        ("skipped", "↷"),
        ("failed", "✕"),
        ("interrupted", "!"),
        ("waiting", "?"),
    ],
)
def test_line_of_a_step_bears_the_sign_of_its_end(kind: str, icon: str) -> None:
    screen, terminal = a_terminal()
    terminal.say(StepLine("[1/2] load ended", kind))
    said = screen.getvalue()
    assert icon in said
    assert said.endswith("[1/2] load ended\n")


def test_line_is_shown_whole_and_steers_no_terminal() -> None:
    screen, terminal = a_terminal(width=20)
    terminal.say("[bold]no markup[/bold] " + "x" * 60 + " \x1b[31m")
    assert screen.getvalue() == "[bold]no markup[/bold] " + "x" * 60 + " �[31m\n"


def test_row_is_one_line_however_long_and_hostile_it_is() -> None:
    screen, _ = a_terminal(width=50)
    console = Console(file=screen, width=50)
    row = Row("○", "[red]a\nb\x1b" + "x" * 90, "dim", (1, 2))
    console.print(picture([row], 50))
    (line,) = screen.getvalue().splitlines()
    assert line.startswith("○ [red]a b�xx")
    assert len(line) <= 50
    assert "…" in line
    assert line.rstrip().endswith("… ━━━━")


def test_what_is_at_hand_is_drawn_below_the_lines_and_taken_away(folder: Path) -> None:
    screen, terminal = a_terminal()
    with terminal.watch(folder, "etl-1", Tally()):
        screen.await_text("load  pending")
        screen.await_text("and 3 more")
        # A process that is killed here leaves a terminal with a cursor.
        assert screen.getvalue().rfind(SHOW_CURSOR) > screen.getvalue().rfind(
            HIDE_CURSOR
        )
        terminal.say("a line that stays")
    assert "a line that stays\n" in screen.getvalue()
    after = len(screen.getvalue())
    terminal.say("the end")
    assert screen.getvalue()[after:] == "the end\n"


def test_steps_of_the_notebook_stand_for_a_plan_that_nobody_wrote_yet(
    tmp_path: Path,
) -> None:
    notebook = tmp_path / "etl.ipynb"
    notebook.write_text(
        '{"cells": [{"cell_type": "code", "source": "%%step first\\nx = 1", "outputs": [],'
        ' "metadata": {}, "execution_count": null}], "metadata": {}, "nbformat": 4,'
        ' "nbformat_minor": 4}'
    )
    store = Store(tmp_path / ".nbckpt", load_secret())
    open_run(store, "etl", RunRecord("", str(notebook)))
    store.close()
    screen, terminal = a_terminal()
    with terminal.watch(store.folder, "etl-1", Tally()):
        screen.await_text("first  pending")


def test_store_that_can_not_be_read_disturbs_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.chmod(0o777)
    screen, terminal = a_terminal()
    with (
        caplog.at_level(logging.DEBUG, "nbckpt"),
        terminal.watch(folder, "etl-1", Tally()),
    ):
        terminal.say("a line")
    assert "a line\n" in screen.getvalue()
    assert "could not be kept up to date" in caplog.text


def test_error_of_the_run_ends_what_is_drawn(folder: Path) -> None:
    _, terminal = a_terminal()
    threads = threading.active_count()
    with (
        pytest.raises(KeyboardInterrupt),
        terminal.watch(folder, "etl-1", Tally()),
    ):
        raise KeyboardInterrupt
    assert threading.active_count() == threads


def test_standard_error_that_is_a_file_stays_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, terminal = a_terminal()
    with terminal.watch(folder, "etl-1", Tally()):
        sys.stderr.write("to the file\n")
    assert capsys.readouterr().err == "to the file\n"
    assert "to the file" not in screen.getvalue()
