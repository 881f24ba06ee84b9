"""Pictures for the README, of a real run that was killed: ``make pictures``.

The panel is JupyterLab's own page, in Chromium; the terminal is what ``bash`` printed.
Only the folder of the run is written as ``~``.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pexpect
from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

from tests.browser.conftest import FLAGS
from tests.browser.page import NotebookPage
from tests.browser.server import Server
from tests.browser.states import COMMAND, states

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "notebooks" / "quickstart.ipynb"
VICTIM = "trees"
"""A long step after a longer one."""
COLUMNS, ROWS = 92, 60
PROMPT = "$ "
COLOURS = 64
"""Enough for text; a picture with all of them would be three times as large."""
MOVES = re.compile(r"(\r|\n|\x1b\[\d*A|\x1b\[2K|\x1b\[\?\d+[hl])")
SHOW = """(cell, folder) => {
  cell.scrollIntoView();
  for (const code of cell.querySelectorAll('section code'))
    code.textContent = code.textContent.replace(folder, '~');
}"""
TERMINAL = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {terminal_width} {terminal_height}">
<style>
text {{ font: {char_height}px "DejaVu Sans Mono", Menlo, Consolas, monospace }}
{styles}
</style>
<defs>{lines}</defs>
<rect width="100%" height="100%" rx="8" fill="#ffffff" stroke="#c8c8c8"/>
<g transform="translate(12, 10)">{backgrounds}{matrix}</g>
</svg>
"""


class SharpPage(NotebookPage):
    """A page so high that it need not scroll, for screens with fine pixels."""

    size: ClassVar[dict[str, Any]] = {
        "viewport": {"width": 1000, "height": 2400},
        "device_scale_factor": 2,
    }


def panel(folder: Path, file: Path) -> None:
    """Kill the kernel in JupyterLab, run all again, and picture the panel.

    Parameters
    ----------
    folder : Path
        An empty one, for the server.
    file : Path
        The picture.
    """
    private, notebooks = folder / "private", folder / "notebooks"
    notebooks.mkdir(parents=True)
    shutil.copy(NOTEBOOK, notebooks)
    server = Server(private, notebooks)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
            page = SharpPage(browser, server, "lab", NOTEBOOK.name, folder)
            for do in (page.kill_kernel, lambda: None):
                page.run_all()
                page.await_true(
                    lambda: states(notebooks, NOTEBOOK.name).get(VICTIM) == "running"
                )
                page.page.wait_for_timeout(1500)
                do()
            page.page.mouse.move(0, 0)
            page.cell(0).evaluate(SHOW, str(notebooks))
            page.page.wait_for_timeout(500)
            shown = page.page.screenshot(clip=page.cell(0).bounding_box())
            browser.close()
    finally:
        server.close()
    few = Image.open(io.BytesIO(shown)).convert("RGB").quantize(COLOURS)
    few.save(file, optimize=True)


def terminal(folder: Path, file: Path) -> None:
    """Kill the kernel of ``nbckpt run`` in a terminal, and picture what it shows.

    Parameters
    ----------
    folder : Path
        An empty one, for the notebook and its store.
    file : Path
        The picture.
    """
    shutil.copy(NOTEBOOK, folder)
    shell = bash(folder)
    shell.sendline(f"nbckpt run {NOTEBOOK.name}")
    while not was_killed_in_victim(folder):
        assert shell.expect_exact([PROMPT, pexpect.TIMEOUT], timeout=0.5)
    shell.expect_exact(PROMPT)
    text = f"{PROMPT}{shell.before}"
    shell.close()
    file.write_text(as_svg(screen(text.replace(str(folder), "~"))), "utf-8")


def bash(folder: Path) -> Any:
    """Start a shell in a folder, as a person has it; return it at its prompt."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell: Any = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], cwd=str(folder), encoding="utf-8",
        dimensions=(ROWS, COLUMNS), timeout=300,
        env=os.environ | {"PATH": path, "PS1": PROMPT, "TERM": "xterm-256color"},
    )  # fmt: skip
    shell.expect_exact(PROMPT)
    return shell


def was_killed_in_victim(folder: Path) -> bool:
    """Kill the kernel if it is a moment into the victim's body; say whether it was."""
    command = [*COMMAND, "status", NOTEBOOK.name, "--json"]
    asked = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    state = json.loads(asked.stdout) if asked.returncode == 0 else {}
    current = state.get("current")
    if not current or current["step"] != VICTIM or current["seconds"] < 2:
        return False
    os.kill(state["holder"]["pid"], signal.SIGKILL)
    return True


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows, colours and all.

    Programs that draw a line anew erase it first, which is all that is followed here.
    """
    lines, row = [""], 0
    for part in MOVES.split(text):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part.endswith("A") and MOVES.fullmatch(part):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not MOVES.fullmatch(part):
            lines[row] += part
    return lines


def as_svg(lines: list[str]) -> str:
    """Draw lines as a picture that needs no font from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
    return console.export_svg(
        title="", theme=DEFAULT_TERMINAL_THEME,
        code_format=TERMINAL, unique_id="t",
    )  # fmt: skip


def main() -> None:
    """Make all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        panel(Path(folder), ROOT / "docs" / "panel.png")
    with tempfile.TemporaryDirectory() as folder:
        terminal(Path(folder), ROOT / "docs" / "terminal.svg")


if __name__ == "__main__":
    main()
