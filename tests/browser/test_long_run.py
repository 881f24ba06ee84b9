"""A run of 200 steps, hostile words, no mouse and no motion: the panel stays a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import panels
from tests.browser.panels import SETUP

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator

    from tests.browser.page import NotebookPage

COUNT = 200
EVIL = "</td></table><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"
FAIL = f"""\
%%step evil
is_first = not Path("tried").exists()
Path("tried").touch()
if is_first:
    raise ValueError({EVIL!r})"""
MANY = [f"%%step s{number}\nx{number} = {number}" for number in range(1, COUNT)]
MANY[76] = MANY[76].replace("\n", " --check 'x77 == 77'\n", 1)
CELLS = ("%load_ext nbckpt", SETUP, *MANY[:150], FAIL, *MANY[150:])
STILL = """() => [...document.querySelectorAll('section.nbckpt, section.nbckpt *')]
  .flatMap(each => each.getAnimations()).length"""


@pytest.mark.parametrize("kernel", ["python3", "ipykernel6"])
def test_panel_of_200_steps_is_short_harmless_and_opened_by_keys(
    kernel: str, open_page: Callable[..., NotebookPage]
) -> None:
    page = open_page("lab", CELLS, kernel)
    page.page.emulate_media(reduced_motion="reduce")
    page.run_all_and_wait(300)
    to_top(page)
    assert lines(page) == [
        "1 to 150 done", "151 evil failed", "152 to 200 pending"
    ]  # fmt: skip
    check_harmless(page)
    page.picture("failed")

    page.run_all_and_wait(300)
    to_top(page)
    assert lines(page) == ["1 to 150 verified, skipped", "151 to 200 done"]
    open_by_keys(page, 0, "77 s77")
    open_by_keys(page, 1, "check x77 == 77")
    open_by_keys(page, 2, "151 evil")
    open_by_keys(page, 3, "ran: ")
    page.picture("done")
    assert panels.findings(page) == []
    assert page.page.evaluate(STILL) == 0


def to_top(page: NotebookPage) -> None:
    """Scroll to the panel: what is out of sight is not in the page."""
    page.page.locator(".jp-WindowedPanel-outer").first.evaluate("e => e.scrollTop = 0")
    page.cell(0).locator("tbody").wait_for()


def lines(page: NotebookPage) -> list[str]:
    """Return number, name and state of each line of the panel."""
    rows: list[Locator] = page.cell(0).locator("tbody tr").all()
    parts = [
        [row.locator(place).inner_text() for place in ("th", "th+td")] for row in rows
    ]
    return [f"{name} {state.split(maxsplit=1)[1]}" for name, state in parts]


def check_harmless(page: NotebookPage) -> None:
    """Find the hostile words as words, and nothing made of them."""
    assert EVIL.removesuffix("\u202e") in page.cell(0).inner_text()
    assert page.cell(0).locator("img, script").count() == 0
    assert "\u202e" not in page.cell(0).inner_text()


def open_by_keys(page: NotebookPage, number: int, shown: str) -> None:
    """Open a part of the panel from the one before it, without a mouse."""
    summary = page.cell(0).locator("summary").nth(number)
    if number:
        page.page.keyboard.press("Tab")
    else:
        summary.focus()
    page.page.keyboard.press("Enter")
    assert shown in summary.locator("..").inner_text()
