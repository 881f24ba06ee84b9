"""ruff and black on notebooks with steps: what docs/places.md says of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

BIN = Path(sys.executable).parent
BODY = "a = {'x':1}"
FORMATTED = 'a = {"x": 1}'


def a_notebook(folder: Path, magic: str) -> Path:
    sources = ("%load_ext nbckpt", f"{magic} one\n{BODY}", "print(a)")
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    metadata = {"language_info": {"name": "python"}}
    path = folder / "nb.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def call(*command: str | Path) -> str:
    """Run a program; return what it says."""
    program = [str(BIN / command[0]), *map(str, command[1:])]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def step(notebook: Path) -> str:
    return str(nbformat.read(notebook, 4).cells[1].source).partition("\n")[2]


def test_ruff_reads_a_step_as_a_line_magic(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, "%step")
    assert "All checks passed" in call("ruff", "check", "--isolated", notebook)
    call("ruff", "format", "--isolated", notebook)
    assert step(notebook) == FORMATTED


def test_ruff_passes_over_a_step_as_a_cell_magic(tmp_path: Path) -> None:
    """Should it read such cells one day, the page has to say so."""
    notebook = a_notebook(tmp_path, "%%step")
    assert "Undefined name `a`" in call("ruff", "check", "--isolated", notebook)
    call("ruff", "format", "--isolated", notebook)
    assert step(notebook) == BODY


@pytest.mark.parametrize(
    ("magic", "options", "text"),
    [
        ("%step", [], FORMATTED),
        ("%%step", [], BODY),
        ("%%step", ["--python-cell-magics", "step"], FORMATTED),
    ],
)
def test_black_formats_a_step(
    tmp_path: Path, magic: str, options: list[str], text: str
) -> None:
    notebook = a_notebook(tmp_path, magic)
    call("black", "--quiet", *options, notebook)
    assert step(notebook) == text
