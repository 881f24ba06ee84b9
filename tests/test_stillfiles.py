"""A file that somebody changes while a step reads it is not the file that it read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbckpt.inputs.proofs import Paths
from nbckpt.inputs.stillfiles import StillFiles

if TYPE_CHECKING:
    from tests.notebook import Notebook

# Written through a handle that was open before, which is no more seen of this process
# than what another one does.
SETUP = """\
import os, subprocess
from pathlib import Path
handle = os.open("data.csv", os.O_RDWR)
def nothing(): pass
def change(): os.pwrite(handle, b"changed by somebody", 0)
def child(): subprocess.run(["cp", "other.csv", "data.csv"], check=True)"""
LOAD = "%%step load --ignore act{0}\ntext = Path('data.csv').read_text()\nact()"
TOLD = "file 'data.csv' was changed while the step ran"


@pytest.fixture
def data() -> Path:
    Path("other.csv").write_text("of another length")
    file = Path("data.csv")
    file.write_text("as it was")
    return file


def run(notebook: Notebook, step: str, act: str) -> None:
    """Run the step, which calls a function after it has read its file."""
    notebook.run(f"{SETUP}\nact = {act}")
    notebook.run(step)


def test_file_changed_by_somebody_else_has_the_step_run_again(
    notebook: Notebook, data: Path
) -> None:
    step = LOAD.format("")
    run(notebook, step, "change")
    assert notebook.names["text"] == "as it was"
    assert f"runs again next time: {TOLD}" in notebook.told()
    notebook.restart()
    run(notebook, step, "nothing")
    assert notebook.reason("load").startswith(TOLD)
    assert notebook.names["text"] == data.read_text() == "changed by somebody"
    notebook.restart()
    run(notebook, step, "nothing")
    assert notebook.decision("load") == "Skip"


@pytest.mark.parametrize(
    ("step", "act"),
    [
        pytest.param(LOAD.format(""), "nothing", id="left alone"),
        pytest.param(LOAD.format(""), "child", id="by a process of its own"),
        pytest.param(LOAD.format(" --writes data.csv"), "change", id="declared"),
        pytest.param(
            LOAD.format("") + "\nlater = Path('data.csv').read_text()",
            "change",
            id="seen",
        ),
    ],
)
def test_step_is_skipped_where_it_has_seen_or_made_the_change(
    notebook: Notebook, data: Path, step: str, act: str
) -> None:
    run(notebook, step, act)
    assert notebook.told() == ""
    notebook.restart()
    run(notebook, step, act)
    assert notebook.decision("load") == "Skip"
    assert data.exists()


def test_file_that_is_gone_is_told_as_gone_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    still = StillFiles()
    still.note("a", tmp_path / "a")
    (tmp_path / "a").unlink()
    assert still.changed(Paths(tmp_path), ()) == []
