"""The panel in real browsers: alive in a step, whole after a kill, light and dark."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.states import COMMAND, states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
NAME = '<img src="x" onerror="alert(1)">'
EVIL = f"%%step evil\nnbckpt.evidence('seen', {NAME!r})"
CELLS = ("%load_ext nbckpt", SETUP, MAKE, LOOP, EVIL)
PANEL = "section.nbckpt"
ASK = """\
%%step {0}
import nbckpt
said_{0} = nbckpt.ask("Go on with {0}?", ["approve", "reject"], name="{0}")
print("they said", said_{0})"""
LOST = "Error displaying widget"


@pytest.fixture
def use_theme(server: Server) -> Iterator[Callable[[str], None]]:
    """Give a function that makes the next pages light or dark; then all are light."""
    yield server.use_theme
    server.use_theme("light")


def findings(page: NotebookPage) -> list[str]:
    """Return what axe finds in the panel."""
    axe: Any = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page.page, context=PANEL).response["violations"]
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


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_panel_is_alive_in_a_step_and_whole_after_a_kill(
    app: str,
    open_page: Callable[..., NotebookPage],
    folder: Path,
    use_theme: Callable[[str], None],
) -> None:
    page = open_page(app, CELLS)
    page.run_all()
    page.await_text(0, "3 of 5 items")
    details = open_evidence(page)
    page.await_text(0, "running for 2 s")
    assert details.get_attribute("open") is not None
    assert findings(page) == []
    page.picture("alive")
    page.kill_kernel()
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
    check_foreign_copy(page, open_page, folder, use_theme)


def check_foreign_copy(
    page: NotebookPage,
    open_page: Callable[..., NotebookPage],
    folder: Path,
    use_theme: Callable[[str], None],
) -> None:
    """Open a copy that nobody vouches for: words stay; then run it, in the dark."""
    shown, notebook = words(page), json.loads((folder / "job.ipynb").read_text())
    notebook["metadata"]["from"] = "elsewhere"
    copy = folder / "copy" / "job.ipynb"
    copy.parent.mkdir()
    copy.write_text(json.dumps(notebook))
    use_theme("dark")
    page = open_page(page.app, copy)
    assert page.cell(0).locator("style").count() == 0
    assert words(page) == shown
    assert open_evidence(page).get_attribute("open") is not None
    page.picture("untrusted")
    page.run_all_and_wait()
    assert findings(page) == []
    assert page.text(0).count("verified, skipped") == 3
    page.picture("dark")


def test_question_is_settled_by_button_and_by_command(
    open_page: Callable[..., NotebookPage], folder: Path, server: Server
) -> None:
    cells = ["%load_ext nbckpt", ASK.format("first"), ASK.format("second")]
    page = open_page("lab", cells)
    page.run_all_and_wait()
    assert "waiting for a human" in page.text(0)
    page.picture("asks")
    page.cell(1).get_by_role("button", name="approve").click()
    page.await_text(1, "answered approve by")

    page.run_all_and_wait()
    assert "they said approve" in page.text(1)
    command = ["answer", "job-1", "second", "reject", "--store", ".nbckpt"]
    env = dict(os.environ, JUPYTER_DATA_DIR=str(server.data))
    subprocess.run([*COMMAND, *command], cwd=folder, env=env, check=True)
    page.cell(2).get_by_role("button", name="approve").click()
    page.await_text(2, "That answer stands")
    page.picture("command-was-faster")
    page.run_all_and_wait()
    assert "they said reject" in page.text(2)
    assert set(states(folder).values()) == {"completed"}

    page.save()
    page.restart()
    page.reload()
    page.page.wait_for_timeout(3000)
    assert not any(LOST in page.text(cell) for cell in range(3))
    page.picture("sealed")
