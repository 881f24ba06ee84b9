"""What a person sees of a run, from its first cell to its end, in both front ends.

The only browser tests of ``make test``: each app, kernel and theme once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import panels
from tests.browser.panels import ASK, LOOP, MAKE, SETUP
from tests.browser.states import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator

    from tests.browser.page import NotebookPage
    from tests.browser.server import Server

VERSION = "import ipykernel\nipykernel.__version__"
FIRST, SECOND, VERSIONS = 3, 5, 6
CELLS = (
    "%load_ext nbckpt", SETUP, MAKE, ASK.format("first"), LOOP, ASK.format("second")
)  # fmt: skip


@pytest.mark.parametrize(
    ("app", "kernel", "theme"),
    [("lab", "python3", "light"), ("notebook", "ipykernel6", "dark")],
)
def test_run_is_approved_killed_reloaded_resumed_and_decided(
    app: str,
    kernel: str,
    theme: str,
    open_page: Callable[..., NotebookPage],
    folder: Path,
    server: Server,
) -> None:
    server.use_theme(theme)
    new = "Untitled.ipynb" if app == "lab" else "job.ipynb"
    page = open_page(app, [*CELLS, VERSION], kernel, new)
    if app == "lab":
        page.rename("job.ipynb")
    approve_by_button(page)
    kill_in_the_loop(page, folder)
    find_all_as_it_was(page)
    see_what_was_skipped(page)
    lose_the_buttons(page)
    if app == "lab":
        read_untrusted(open_page(app, panels.foreign_copy(folder)), page)
    reject_by_command(page, folder, server)
    assert page.text(VERSIONS).startswith("'6." if kernel == "ipykernel6" else "'7.")
    assert set(states(folder).values()) == {"completed"}


def approve_by_button(page: NotebookPage) -> None:
    """Run all: it stops at the first question, which a click answers."""
    page.run_all_and_wait()
    assert "waiting for a human" in page.text(0)
    page.picture("asks")
    page.cell(FIRST).get_by_role("button", name="approve").click()
    page.await_text(FIRST, "answered approve by")


def kill_in_the_loop(page: NotebookPage, folder: Path) -> None:
    """Kill the kernel in the loop: the records tell where it was."""
    panels.kill_in_the_loop(page)
    assert states(folder) == {
        "make": "completed",
        "first": "completed",
        "loop": "interrupted",
        "second": "pending",
    }


def find_all_as_it_was(page: NotebookPage) -> None:
    """Load the page anew: the panel stands there, and no widget without a model."""
    shown = page.text(0)
    assert "3 of 5 items" in shown
    page.save()
    page.reload()
    assert panels.lost(page) == []
    assert page.text(0) == shown
    page.picture("reloaded")


def see_what_was_skipped(page: NotebookPage) -> None:
    """Run all: what was done is skipped, the loop goes on, the second question stops."""
    page.run_all_and_wait()
    page.picture("resumed")
    assert page.text(0).count("verified, skipped") == 2
    assert "5 of 5 items" in page.text(0)
    assert "they said approve" in page.text(FIRST)
    assert "Go on with second?" in page.text(SECOND)


def lose_the_buttons(page: NotebookPage) -> None:
    """End the kernel with buttons unclicked: they go, and the words about them stay."""
    button = page.cell(SECOND).get_by_role("button", name="approve")
    button.wait_for()
    page.restart() if page.app == "lab" else page.kill_kernel()
    button.wait_for(state="hidden")
    page.save()
    page.reload()
    assert panels.lost(page) == []
    page.picture("buttons-gone")
    assert command_of(page).is_visible()
    # The page did lose the widget: without the style it would say so.
    assert panels.LOST in page.text(SECOND)


def command_of(page: NotebookPage) -> Locator:
    """Return the command that stands beside the buttons of the second question."""
    command = "nbckpt answer job-1 second approve"
    return page.cell(SECOND).locator("code", has_text=command)


def reject_by_command(page: NotebookPage, folder: Path, server: Server) -> None:
    """Answer in a shell: a later click changes nothing, and says so."""
    page.run_all_and_wait()
    panels.tell(folder, server, "answer", "job-1", "second", "reject")
    page.cell(SECOND).get_by_role("button", name="approve").click()
    page.await_text(SECOND, "That answer stands")
    page.run_all_and_wait()
    assert "they said reject" in page.text(SECOND)


def read_untrusted(copy: NotebookPage, page: NotebookPage) -> None:
    """Open a copy that nobody vouches for: the style goes, and the words stay."""
    command_of(copy).wait_for()
    assert copy.page.locator(".jp-Notebook style").count() == 0
    assert panels.words(copy) == panels.words(page)
    assert panels.open_evidence(copy).get_attribute("open") is not None
    copy.picture("untrusted")
