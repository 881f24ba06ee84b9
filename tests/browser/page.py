"""A notebook in a real browser, driven through what a person sees and clicks."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

    from tests.browser.server import Server

SECONDS = 60_000
"""Until a page or a kernel is there; Playwright counts in milliseconds."""
READ_OUTPUTS = """() =>
  [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')].map(cell =>
    [...cell.querySelectorAll('.jp-OutputArea-output')].map(output => {
      const image = output.querySelector('img');
      return [output.dataset.mimeType ?? '', image ? image.src : output.textContent];
    }))"""
# A subshell's idle shows as the kernel's while a cell runs, and cells that wait for
# their turn run in an idle kernel: idle is what stays so for a moment, without any [*].
IS_IDLE = """() => {
  const panel = window.jupyterapp?.shell.currentWidget;
  const status = panel?.sessionContext?.session?.kernel?.status;
  const prompts = [...document.querySelectorAll('.jp-InputPrompt')];
  const busy = status !== 'idle' || prompts.some(p => p.textContent.includes('*'));
  window.idleSince = busy ? null : window.idleSince ?? performance.now();
  return !busy && performance.now() - window.idleSince > 400;
}"""

# Both apps build the cells that are out of sight only when they have nothing else to do.
IS_SHOWN = """() => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const shown = cell => cell.outputArea.node.querySelectorAll(
    '.jp-OutputArea-output').length >= cell.model.outputs.length;
  return notebook.widgets.length === notebook.model.cells.length
    && notebook.widgets.every(cell => document.contains(cell.node)
      && (cell.model.type !== 'code' || shown(cell)));
}"""


@dataclass(frozen=True, slots=True)
class Output:
    """One output, as it stands in the page."""

    mime: str
    text: str
    """Its text, also where it is out of sight; of an image, its data."""


class NotebookPage:
    """One notebook, open in one tab.

    Parameters
    ----------
    browser : Browser
        Where the tab opens.
    server : Server
        Who serves the page and runs the kernel.
    app : str
        ``lab`` or ``notebook``.
    notebook : str
        The notebook's path below the server's root.
    shots : Path
        Folder for pictures of the page.
    """

    size: ClassVar[dict[str, Any]] = {"viewport": {"width": 1200, "height": 900}}

    def __init__(
        self, browser: Browser, server: Server, app: str, notebook: str, shots: Path
    ) -> None:
        self.console: list[str] = []
        self._server = server
        self.app = app
        self._notebook = notebook
        self.shots = shots
        self.page: Page = browser.new_page(**self.size)
        self.page.set_default_timeout(SECONDS)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.goto(server.url(app, notebook))
        self._await_notebook()

    @property
    def kernel_pid(self) -> int:
        """The process id of the kernel."""
        return self._server.kernel_pid(self._notebook)

    @property
    def complaints(self) -> list[str]:
        """What the browser's console says about nbckpt.

        Both apps have warnings of their own there, which are none of our business.
        """
        return [text for text in self.console if "nbckpt" in text.lower()]

    def run_all(self) -> None:
        """Choose *Run All Cells*; does not wait."""
        self.menu("Run", "Run All Cells")

    def wait_idle(self, seconds: float = 120) -> None:
        """Wait until the kernel is idle and no cell waits for its turn."""
        self.page.wait_for_function(IS_IDLE, timeout=seconds * 1000)

    def run_all_and_wait(self, seconds: float = 120) -> list[list[Output]]:
        """Run all cells to their end; return the outputs of each code cell."""
        self.run_all()
        self.wait_idle(seconds)
        return self.outputs()

    def run_cell(self, number: int, seconds: float = 120) -> None:
        """Run one code cell to its end, by Ctrl and Enter."""
        self.cell(number).locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Control+Enter")
        self.wait_idle(seconds)

    def outputs(self) -> list[list[Output]]:
        """Return the outputs of each code cell, as they stand in the page."""
        self.page.wait_for_function(IS_SHOWN)
        cells = self.page.evaluate(READ_OUTPUTS)
        return [[Output(*output) for output in cell] for cell in cells]

    def text(self, cell: int) -> str:
        """Return all text below one code cell."""
        return "\n".join(output.text for output in self.outputs()[cell])

    def cell(self, number: int) -> Locator:
        """Return a code cell, counted from 0."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def prompt(self, cell: int) -> str:
        """Return what stands left of a code cell, such as ``[3]:``."""
        return self.cell(cell).locator(".jp-InputPrompt").first.inner_text()

    def await_text(self, cell: int, text: str) -> None:
        """Wait until a text stands below a code cell."""
        outputs = self.cell(cell).locator(".jp-OutputArea")
        outputs.get_by_text(text).first.wait_for()

    def await_true(self, holds: Callable[[], bool], seconds: float = 120) -> None:
        """Wait until something holds outside the page; the page lives on meanwhile."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it did not come true in time"
            self.page.wait_for_timeout(200)

    def kill_kernel(self) -> int:
        """Kill the kernel's process with SIGKILL; return once another one is there."""
        victim = self.kernel_pid
        os.kill(victim, signal.SIGKILL)
        self.accept_dialog()
        self.wait_idle()
        return victim

    def restart(self) -> None:
        """Restart the kernel by the menu, and say yes to the question."""
        self.menu("Kernel", "Restart Kernel…")
        self.accept_dialog()
        self.wait_idle()

    def interrupt(self) -> None:
        """Press the button that interrupts the kernel."""
        button = '[data-command="notebook:interrupt-kernel"]'
        self.page.locator(f".jp-NotebookPanel-toolbar {button}").first.click()

    def answer(self, text: str) -> None:
        """Type an answer where a cell asks for one."""
        box = self.page.locator(".jp-Stdin-input")
        box.fill(text)
        box.press("Enter")

    def rename(self, name: str) -> None:
        """Give the notebook another name, as one does with a new one in JupyterLab."""
        self.menu("File", "Rename Notebook…")
        self.page.locator(".jp-Dialog input").first.fill(name)
        self.accept_dialog()
        self._notebook = f"{self._notebook.rpartition('/')[0]}/{name}"

    def save(self) -> None:
        """Save the notebook, and wait until nothing is left to save."""
        self.menu("File", "Save Notebook")
        self.page.wait_for_function(
            "() => !window.jupyterapp.shell.currentWidget.context.model.dirty"
        )

    def reload(self) -> None:
        """Load the page anew."""
        self.page.reload()
        self._await_notebook()

    def menu(self, top: str, item: str) -> None:
        """Choose an item of the menu bar by its words."""
        self._exactly(".lm-MenuBar-itemLabel", top).click()
        self._exactly(".lm-Menu-itemLabel", item).click()

    def accept_dialog(self) -> None:
        """Wait for a dialog, and press the button that goes on."""
        dialog = self.page.locator(".jp-Dialog")
        dialog.locator("button.jp-mod-accept, button.jp-mod-warn").first.click()
        dialog.wait_for(state="detached")

    def picture(self, name: str) -> Path:
        """Keep a picture of the page; return its file."""
        file = self.shots / f"{self.app}-{name}.png"
        self.page.screenshot(path=file)
        return file

    def close(self) -> None:
        """Close the tab."""
        self.page.close(run_before_unload=False)

    def _exactly(self, selector: str, text: str) -> Locator:
        """Return the first element that says exactly this."""
        words = re.compile(f"^{re.escape(text)}$")
        return self.page.locator(selector, has_text=words).first

    def _await_notebook(self) -> None:
        """Wait until the notebook is shown and its kernel is ready."""
        self.page.locator(".jp-NotebookPanel .jp-Cell").first.wait_for()
        self.wait_idle()

    def _note(self, message: ConsoleMessage) -> None:
        """Keep a message of the browser's console."""
        self.console.append(f"{message.type}: {message.text}")
