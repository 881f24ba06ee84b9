"""The panel in a page, as a person and a screen reader meet it."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.states import COMMAND

if TYPE_CHECKING:
    from pathlib import Path

    from tests.browser.page import NotebookPage
    from tests.browser.server import Server

SETUP = "from pathlib import Path\nfrom threading import Event\nimport nbckpt"
MAKE = "%%step make --writes made.txt\nPath('made.txt').write_text('made')\nmade = 1"
LOOP = """\
%%step loop --ignore Event
for item in nbckpt.items(range(5)):
    if item == 3 and not Path("tried").exists():
        Path("tried").touch()
        Event().wait()"""
ASK = """\
%%step {0}
said_{0} = nbckpt.ask("Go on with {0}?", ["approve", "reject"], name="{0}")
print("they said", said_{0})"""
PANEL = "section.nbckpt"
LOST = "Error displaying widget"
BROKEN = """() =>
  [...document.querySelectorAll('th, td')].filter(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    const lines = new Set([...range.getClientRects()].map(box => box.top));
    return lines.size > 1 && !/\\s|\\S{33}/.test(cell.textContent);
  }).map(cell => cell.textContent)"""
"""Cells of one word, not longer than a digest, that stand in several lines."""


def findings(page: NotebookPage, place: str = PANEL) -> list[str]:
    """Return what axe finds in the panel, or in another part of the page."""
    axe: Any = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page.page, context=place).response["violations"]
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


def words(page: NotebookPage) -> list[str]:
    """Return all words of the panel, however they are laid out."""
    parts = page.cell(0).locator(PANEL).all_text_contents()
    return [" ".join(part.split()) for part in parts]


def open_evidence(page: NotebookPage) -> Any:
    """Open the first evidence by the keyboard; return its element."""
    details = page.cell(0).locator("details").first
    details.locator("summary").focus()
    page.page.keyboard.press("Enter")
    return details


def kill_in_the_loop(page: NotebookPage) -> None:
    """Run all: the panel is alive while items are done, until the kernel is killed."""
    page.run_all()
    page.await_text(0, "3 of 5 items")
    details = open_evidence(page)
    page.await_text(0, "running for 2 s")
    assert details.get_attribute("open") is not None
    assert findings(page) == []
    page.picture("alive")
    page.kill_kernel()


def tell(folder: Path, server: Server, *command: str) -> None:
    """Give a command in a shell, as the user whose kernels the server runs."""
    env = dict(os.environ, JUPYTER_DATA_DIR=str(server.data))
    words = [*COMMAND, *command, "--store", ".nbckpt"]
    subprocess.run(words, cwd=folder, env=env, check=True)


def foreign_copy(folder: Path) -> Path:
    """Return a copy of a test's notebook that nobody vouches for."""
    notebook = json.loads((folder / "job.ipynb").read_text())
    notebook["metadata"]["from"] = "elsewhere"
    copy = folder / "copy" / "job.ipynb"
    copy.parent.mkdir()
    copy.write_text(json.dumps(notebook))
    return copy


def lost(page: NotebookPage) -> list[str]:
    """Return what a person sees of widgets without a model; both apps say so late."""
    page.page.wait_for_timeout(3000)
    page.outputs()
    found = page.page.locator(".jp-OutputArea-output", has_text=LOST)
    return found.filter(visible=True).all_text_contents()
