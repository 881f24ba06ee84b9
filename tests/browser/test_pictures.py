"""Pictures of a run in a page: in the host's colours, and as words where they are lost."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.browser import panels
from tests.browser.panels import MAKE, SETUP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.browser.page import NotebookPage
    from tests.browser.server import Server

FILE = "<b onclick=alert(1)>.txt"
READ = (
    f"%%step read --writes '{FILE}'\n"
    f"read = Path('made.txt').read_text()\nPath({FILE!r}).write_text(read)"
)
PICTURES = ("timeline", "graph", "runs", "size")
CELLS = ("%load_ext nbckpt", SETUP, MAKE, READ, *(f"%nbckpt {p}" for p in PICTURES))
SHOWN = range(4, 8)
TIMELINE, GRAPH, RUNS = 4, 5, 6
OUTPUTS = ".jp-Notebook .jp-OutputArea-output"
GROUND = """() => [...document.querySelectorAll('.nbckpt-picture .ground')]
  .map(ground => getComputedStyle(ground).fill)"""
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(33, 33, 33)"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_pictures_are_shown_themed_read_and_exported(
    app: str,
    open_page: Callable[..., NotebookPage],
    folder: Path,
    server: Server,
    browser: Browser,
) -> None:
    page = open_page(app, CELLS)
    page.run_all_and_wait()
    words = panels.words(page)
    check_pictures(page, LIGHT)
    page.save()

    server.use_theme("dark")
    copy = open_page(app, panels.foreign_copy(folder))
    assert copy.page.locator(f"{OUTPUTS} svg.nbckpt-picture").count() == 0
    assert FILE in copy.text(GRAPH)
    assert all("read" in copy.text(number) for number in SHOWN if number != RUNS)
    assert "job-1" in copy.text(RUNS)
    assert "2 completed\nmake\n" in copy.text(TIMELINE)
    check_looks(copy, "untrusted")
    copy.run_all_and_wait()
    check_pictures(copy, DARK)
    if app == "lab":
        check_export(folder, browser, words, page.shots)


def check_pictures(page: NotebookPage, ground: str) -> None:
    """Find one picture and one table below each cell, in the theme's colours."""
    for number in SHOWN:
        output = page.cell(number).locator(".jp-OutputArea-output")
        assert output.locator("svg.nbckpt-picture[role=img]").count() == 1
        assert output.locator("table").count() == 1
    assert FILE in page.text(GRAPH)
    assert page.page.locator("[onclick]").count() == 0
    assert page.page.evaluate(GROUND) == [ground] * 4
    assert page.page.evaluate(panels.BROKEN) == []
    assert panels.findings(page, OUTPUTS) == []
    check_looks(page, "light" if ground == LIGHT else "dark")


def check_looks(page: NotebookPage, name: str) -> None:
    """Keep a picture of each cell that shows one."""
    for number, what in zip(SHOWN, PICTURES, strict=True):
        page.cell(number).scroll_into_view_if_needed()
        page.picture(f"{name}-{what}")


def check_export(folder: Path, browser: Browser, words: list[str], shots: Path) -> None:
    """Open the notebook as nbconvert exports it, without a kernel or a server."""
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "job.ipynb"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    exported: Page = browser.new_page()
    said: list[str] = []
    exported.on("console", lambda message: said.append(message.text))
    exported.goto((folder / "job.html").as_uri(), wait_until="domcontentloaded")
    parts = exported.locator("section.nbckpt").all_text_contents()
    assert [" ".join(part.split()) for part in parts] == words
    assert exported.locator("svg.nbckpt-picture").count() == len(SHOWN)
    exported.screenshot(path=shots / "export.png", full_page=True)
    exported.close()
    assert not any("nbckpt" in text for text in said)
