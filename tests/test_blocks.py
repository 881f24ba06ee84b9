"""Each code block of the README and the documents runs, or says why it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from tests.pages import PAGES, blocks, run, text_of

if TYPE_CHECKING:
    from tests.notebook import Notebook

ORDERS = """\
from pathlib import Path
import nbckpt
from types import SimpleNamespace
for folder in ("data", "out", "notebooks"):
    Path(folder).mkdir(exist_ok=True)
rows = "".join(f"{n},{n % 7},{n % 2}\\n" for n in range(1, 50))
Path("data/orders.csv").write_text("price,weight,returned\\n" + rows)
"""
API = """\
orders = [SimpleNamespace(id=number) for number in range(3)]
api = SimpleNamespace(charge=lambda order, key: key, find_charge=lambda key: None)
"""
"""What stands before the blocks of a page, as its reader has it."""


def cells(page: str) -> list[str]:
    """Return the cells that the Python blocks of a page stand for."""
    texts = [text.rstrip() for text in run(page, "python")]
    parts = [part for text in texts for part in re.split(r"\n+(?=%%)", text)]
    return [part.replace("seconds = 1.0", "seconds = 0.0") for part in parts]


def run_in_bash(text: str) -> str:
    """Run a block in the working folder; return what it prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    for name in ("PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", text], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_block_is_of_a_kind_that_runs_or_says_why_not(page: str) -> None:
    for block in blocks(page):
        is_built = block.language in {"{toctree}", "{eval-rst}"}
        assert is_built or block.language in {"python", "sh"}, block.text
        assert len(block.why_not) > 20 or not block.why_not


def test_only_pages_whose_blocks_are_run_below_have_any() -> None:
    assert [page for page in PAGES if run(page, "python") or run(page, "sh")] == [
        "README.md", "docs/howto.md", "docs/overview.md", "docs/tutorial.md",
    ]  # fmt: skip


def test_blocks_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = [ORDERS, *cells("README.md")]
    make: Any = nbformat.v4
    nb = make.new_notebook(cells=[make.new_code_cell(source) for source in sources])
    nbformat.write(nb, "orders.ipynb")
    [block] = run("README.md", "sh")
    said = run_in_bash(block)
    assert "ran       3: load, clean, fit" in said
    assert "run orders-1: completed, 3 of 3 steps done" in said
    assert Path("out/clean.parquet").is_file()


def test_blocks_of_the_tutorial_run_and_its_steps_are_skipped_by_the_next_kernel(
    notebook: Notebook,
) -> None:
    steps = ("load", "total", "labels")
    was, now = "3 * n", "n * 3"
    assert f"write `{now}` in place of `{was}`" in text_of("docs/tutorial.md")
    for decided, new in (("RRR", was), ("SSS", was), ("RSS", now), ("SSS", now)):
        for source in cells("docs/tutorial.md"):
            notebook.run(source.replace(was, new))
        assert "60 labels, 1498500" in notebook.shown()
        assert [notebook.decision(step)[0] for step in steps] == list(decided)
        if decided == "SSS":
            continue  # the edited step runs in the kernel that holds its value
        notebook.restart()


def test_tutorial_ends_with_the_commands_of_the_readme() -> None:
    """Which run above."""
    assert run("docs/tutorial.md", "sh") == run("README.md", "sh")


def test_blocks_of_the_overview_run(notebook: Notebook) -> None:
    for source in (ORDERS, API, *cells("docs/overview.md")):
        notebook.run(source)
    assert notebook.decision("charge") == "Run"


def test_blocks_of_the_how_to_run(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    for block in run("docs/howto.md", "sh"):
        assert "notebook-1" in run_in_bash(block)


def test_line_of_the_how_to_for_ci_is_the_one_that_ci_runs() -> None:
    [line] = [b.text for b in blocks("docs/howto.md") if "make notebooks" in b.why_not]
    target = text_of("Makefile").partition("\nnotebooks:")[2].partition("\n\n")[0]
    assert set(line.split()) <= set(target.replace("-m pytest", "pytest").split())


def test_block_that_fails_is_noticed() -> None:
    with pytest.raises(AssertionError, match="no-such-file"):
        run_in_bash("cat no-such-file\necho it went on")
