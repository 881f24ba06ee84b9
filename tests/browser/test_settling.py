"""What a person settles by buttons: clicked, raced by a command, and in a second tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import panels
from tests.browser.page import NotebookPage
from tests.browser.panels import ASK, SETUP
from tests.browser.states import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.browser.server import Server

ONCE = """\
def fly(name):
    is_first = not Path(name).exists()
    Path(name).touch()
    print(name, "in flight", flush=True)
    if is_first:
        Event().wait()"""
KEEP = "%%step keep --stop-on-redo --ignore fly\nfly('keep')\nkept = 1"
PAY = (
    "%%step {0}\npaid_{0} = nbckpt.effect('charge-{0}', perform=lambda key: fly('{0}'))"
)
CELLS = ("%load_ext nbckpt", SETUP, ONCE, KEEP, PAY.format("pay"), PAY.format("send"))
KEEPS, PAYS, SENDS = 3, 4, 5
BUTTONS = ".jp-OutputArea-output .widget-vbox"


@pytest.mark.parametrize(
    ("app", "kernel", "buttons"),
    [
        ("lab", "python3", ("Run again from here on", "It did not happen")),
        ("notebook", "ipykernel6", ("Run it again", "It happened")),
    ],
)
def test_stops_are_settled_by_click_or_command_whichever_is_first(
    app: str,
    kernel: str,
    buttons: tuple[str, str],
    open_page: Callable[..., NotebookPage],
    folder: Path,
    server: Server,
) -> None:
    again, word = buttons
    page = open_page(app, CELLS, kernel)
    kill_in_flight(page, KEEPS, "keep")
    page.run_all_and_wait()
    assert panels.findings(page, BUTTONS) == []
    page.picture("stopped")
    press(page, KEEPS, again, "again next time")

    kill_in_flight(page, PAYS, "pay")
    page.run_all_and_wait()
    page.picture("unknown")
    press(page, PAYS, word, "said by")
    page.run_all()
    page.await_text(SENDS, "send in flight")
    page.kill_kernel()
    page.run_all_and_wait()
    panels.tell(folder, server, "resolve", "job-1", "charge-send", "--done")
    press(page, SENDS, "It did not happen", "was settled meanwhile")
    page.picture("command-was-faster")
    page.run_all_and_wait()
    assert ("pay in flight" in page.text(PAYS)) == (word == "It did not happen")
    assert page.text(SENDS) == ""
    assert set(states(folder).values()) == {"completed"}
    page.save()
    page.restart()
    page.reload()
    assert panels.lost(page) == []


def kill_in_flight(page: NotebookPage, cell: int, name: str) -> None:
    """Run all, and kill the kernel in a step."""
    page.run_all()
    page.await_text(cell, f"{name} in flight")
    page.kill_kernel()


def press(page: NotebookPage, cell: int, button: str, told: str) -> None:
    """Press a button, in Lab by the keyboard; a line takes the place of all of them."""
    found = page.cell(cell).get_by_role("button", name=button)
    if page.app == "lab":
        found.focus()
        page.page.keyboard.press("Enter")
    else:
        found.click()
    page.await_text(cell, told)
    assert page.cell(cell).get_by_role("button", name=button).count() == 0


def test_question_is_answered_in_one_of_two_tabs(
    open_page: Callable[..., NotebookPage],
    browser: Browser,
    server: Server,
    folder: Path,
) -> None:
    page = open_page("lab", ["%load_ext nbckpt", SETUP, ASK.format("go")])
    page.run_all_and_wait()
    page.save()
    path = str((folder / "job.ipynb").relative_to(server.root))
    other = NotebookPage(browser, server, "lab", path, page.shots)
    button = other.cell(2).get_by_role("button", name="approve")
    button.wait_for()
    other.picture("second-tab")
    button.click()
    page.await_text(2, "answered approve by")
    page.picture("first-tab-after")
    assert page.cell(2).get_by_role("button", name="approve").count() == 0
    button.wait_for(state="detached")
    other.await_text(2, "answered approve by")
    other.picture("second-tab-after")
    assert other.complaints == []
    other.close()
    page.run_all_and_wait()
    assert "they said approve" in page.text(2)
