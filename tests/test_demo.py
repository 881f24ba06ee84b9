"""``make demo`` does what it says, here on a small notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from notebooks import demo

if TYPE_CHECKING:
    from pathlib import Path

FOREST = """\
%%step forest --ignore Event Path
from pathlib import Path
from threading import Event
is_first = not Path("tried").exists()
Path("tried").touch()
if is_first:
    Event().wait()  # only a kill ends it
total = sum(rows)
"""
CELLS = ("%load_ext nbckpt", "%%step load\nrows = [1, 2, 3]", FOREST, "print(total)")


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the demo run a small notebook; return where its executed copy will lie."""
    notebook = tmp_path / "small.ipynb"
    nbformat.write(
        new_notebook(cells=[new_code_cell(cell) for cell in CELLS]), notebook
    )
    monkeypatch.setattr(demo, "NOTEBOOK", notebook)
    monkeypatch.setattr(demo, "OUTPUT", tmp_path / "build" / notebook.name)
    monkeypatch.setattr(demo, "SECONDS_INTO_IT", 0.0)
    return demo.OUTPUT


def test_demo_kills_a_step_once_and_the_next_one_skips_everything(
    output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert demo.main() == 0
    first = capfd.readouterr()
    assert first.out.count("kill -9") == 1
    assert "died in step forest" in first.err
    assert demo.read_status()["state"] == "completed"
    assert nbformat.read(output, as_version=4).cells[-1].outputs[0].text == "6\n"

    assert demo.main() == 0
    second = capfd.readouterr()
    assert "kill -9" not in second.out
    assert "skipped   2: load, forest" in second.out
