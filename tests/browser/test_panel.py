"""The panel in real browsers: alive in a step, whole after a kill, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import panels
from tests.browser.panels import LOOP, MAKE, SETUP
from tests.browser.states import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.page import NotebookPage
    from tests.browser.server import Server

NAME = '<img src="x" onerror="alert(1)">'
EVIL = f"%%step evil\nnbckpt.evidence('seen', {NAME!r})"
CELLS = ("%load_ext nbckpt", SETUP, MAKE, LOOP, EVIL)


@pytest.mark.parametrize(
    ("app", "kernel"), [("lab", "ipykernel6"), ("notebook", "python3")]
)
def test_panel_is_alive_in_a_step_and_whole_after_a_kill(
    app: str,
    kernel: str,
    open_page: Callable[..., NotebookPage],
    folder: Path,
    server: Server,
) -> None:
    page = open_page(app, CELLS, kernel)
    panels.kill_in_the_loop(page)
    assert states(folder)["loop"] == "interrupted"

    page.run_all_and_wait()
    assert "verified, skipped" in page.text(0)
    assert "5 of 5 items" in page.text(0)
    assert NAME in page.text(0)
    page.picture("resumed")
    page.save()
    shown = page.text(0)
    page.reload()
    page.restart()
    assert page.text(0) == shown
    assert page.cell(0).locator("img").count() == 0
    check_foreign_copy(page, open_page, folder, server)


def check_foreign_copy(
    page: NotebookPage,
    open_page: Callable[..., NotebookPage],
    folder: Path,
    server: Server,
) -> None:
    """Open a copy that nobody vouches for: words stay; then run it, in the dark."""
    shown, copy = panels.words(page), panels.foreign_copy(folder)
    server.use_theme("dark")
    page = open_page(page.app, copy)
    assert page.cell(0).locator("style").count() == 0
    assert panels.words(page) == shown
    assert panels.open_evidence(page).get_attribute("open") is not None
    page.picture("untrusted")
    page.run_all_and_wait()
    assert panels.findings(page) == []
    assert page.text(0).count("verified, skipped") == 3
    page.picture("dark")
