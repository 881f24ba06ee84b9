"""Answers, interrupts and refusals, as a person meets them in the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.states import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.page import NotebookPage

ASK = """\
%%step ask
name = input("Who are you? ")
print("hello", name)"""
WAIT = """\
%%step wait --ignore Event
print("waiting", flush=True)
Event().wait()"""
CELLS = ("%load_ext nbckpt", "from threading import Event", ASK, WAIT, "'after'")
ASKS, WAITS, AFTER = 2, 3, 4

WRONG = {
    "%%step load --chekc x\nprint('body')": "BadStep: %%step: unrecognized arguments",
    "x = 1\n%%step load\nprint('body')": "BadStep: %%step load: it must be the first",
    "%nbckpt explian": "BadStep: %nbckpt has no verb 'explian'",
    "%%step count --check False\nx = 1": "CheckFailed: step count: check 'False'",
}


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_answer_is_kept_and_interrupted_step_runs_again(
    app: str, open_page: Callable[..., NotebookPage], folder: Path
) -> None:
    page = open_page(app, CELLS)
    page.run_all()
    page.answer("Ada")
    page.await_text(WAITS, "waiting")
    page.interrupt()
    page.wait_idle()
    page.picture("interrupted")
    assert "hello Ada" in page.text(ASKS)
    assert "KeyboardInterrupt" in page.text(WAITS)
    assert page.prompt(AFTER) == "[ ]:"
    assert states(folder) == {"ask": "completed", "wait": "interrupted"}

    page.restart()
    page.run_all()
    page.await_text(WAITS, "waiting")
    assert "hello Ada" in page.text(ASKS)
    page.interrupt()
    page.wait_idle()


def test_refusal_is_one_line_and_stops_run_all(
    open_page: Callable[..., NotebookPage],
) -> None:
    page = open_page("lab", ["%load_ext nbckpt", *WRONG])
    page.run_all_and_wait()
    assert [page.prompt(cell) for cell in (1, 2)] == ["[2]:", "[ ]:"]
    for cell, said in enumerate(WRONG.values(), 1):
        page.run_cell(cell)
        [refused] = page.outputs()[cell]
        assert refused.text.startswith(said)
        assert len(refused.text.strip().splitlines()) == 1
    page.picture("refusals")
