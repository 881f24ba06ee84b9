"""Notebooks with steps in the programs that people run them with, each for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from nbckpt import headless
from nbckpt.verbs.finding.opening import looking

BIN = Path(sys.executable).parent
ROOT = str(Path(__file__).parents[2])
TWO = """\
%%step two
b = a + 1
assert not pathlib.Path('fail').exists(), 'told to'
print('b is', b)"""
CELLS = (
    "%load_ext nbckpt",
    "n = 1",
    "%%step one\na = n * 10\nprint('a is', a)",
    "import os, pathlib",
    TWO,
)
SCRIPT = """\
# %% [markdown]
# A job as a script.
# %%
# %load_ext nbckpt
# %%
n = 1
# %%
# %%step one --check "a == 10"
a = n * 10
print('a is', a)
"""
TERMINAL = """\
%load_ext nbckpt
%%step one
a = 10
print('a is', a)

%%step two
a + 1

"""


def a_notebook(folder: Path) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    cells[1].metadata["tags"] = ["parameters"]
    path = folder / "nb.ipynb"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), path)
    return path


def call(folder: Path, *command: str, said: str = "", **told: str) -> str:
    """Run a program of this environment; return what it printed, and how it ended."""
    program = [str(BIN / command[0]), *command[1:]]
    done = subprocess.run(
        program,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ROOT, **told},
        input=said,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return f"{done.stdout}{done.stderr}\nended with {done.returncode}"


def events(folder: Path) -> Counter[tuple[str, str, str]]:
    """Return how often each step of each run was run, skipped, or failed."""
    with looking(folder / ".nbckpt") as reader:
        return Counter(
            (run.run_id, event.step, event.kind)
            for run in reader.runs()
            for _, event in reader.history(run.run_id)
            if event.kind in {"completed", "skipped", "failed"}
        )


def executed(path: Path) -> list[str]:
    """Return what the cells of an executed notebook printed."""
    cells = nbformat.read(path, 4).cells
    return [out.text for cell in cells for out in cell.get("outputs", ()) if out.text]


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder in which ``nbckpt run`` has run a notebook once."""
    folder = tmp_path_factory.mktemp("cold")
    notebook = a_notebook(folder)
    (folder / "driver.ipynb").touch()
    assert headless.run(headless.Order(notebook), lambda _: None) == 0
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "jupyter nbconvert --execute --to notebook --output converted.ipynb nb.ipynb",
        "jupyter execute nb.ipynb",
        "pytest -p no:cacheprovider --nbmake nb.ipynb",
    ],
    ids=["nbconvert", "execute", "nbmake"],
)
def test_program_resumes_the_run_of_the_notebook_that_it_executes(
    cold: Path, command: str
) -> None:
    """Called, too, from a notebook whose server told its kernel another name."""
    before = events(cold)
    around = str(cold / "driver.ipynb")
    said = call(cold, *command.split(), JPY_SESSION_NAME=around)
    assert "ended with 0" in said
    new = events(cold) - before
    assert new == Counter({("nb-1", step, "skipped"): 1 for step in ("one", "two")}), (
        said
    )


def test_export_shows_what_was_printed_without_any_script(cold: Path) -> None:
    page, _ = HTMLExporter().from_filename(str(cold / "nb.out.ipynb"))
    shown = re.sub(r"<script\b.*?</script>", "", page, flags=re.DOTALL)
    for text in ("a is 10", "b is 11"):
        assert text in shown


def test_papermill_resumes_by_its_output_and_parameters_are_inputs(
    tmp_path: Path,
) -> None:
    notebook = a_notebook(tmp_path).rename(tmp_path / "in.ipynb")
    papermill = (
        "papermill",
        "--engine",
        "nbckpt",
        notebook.name,
        "out.ipynb",
        "-p",
        "n",
    )
    (tmp_path / "fail").touch()
    assert "told to" in call(tmp_path, *papermill, "5")
    (tmp_path / "fail").unlink()
    assert "ended with 0" in call(tmp_path, *papermill, "5")
    assert executed(tmp_path / "out.ipynb") == ["a is 50\n", "b is 51\n"]
    expected = {("one", "completed"): 1, ("two", "failed"): 1}
    expected |= {("one", "skipped"): 1, ("two", "completed"): 1}
    assert events(tmp_path) == {("out-1", *key): n for key, n in expected.items()}
    assert "ended with 0" in call(tmp_path, *papermill, "6")
    assert executed(tmp_path / "out.ipynb") == ["a is 60\n", "b is 61\n"]


def test_script_with_percent_cells_is_run_and_resumed(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    for _ in range(2):
        assert headless.run(headless.Order(script), lambda _: None) == 0
    assert executed(tmp_path / "job.out.ipynb") == ["a is 10\n"]
    assert events(tmp_path) == {
        ("job-1", "one", "completed"): 1,
        ("job-1", "one", "skipped"): 1,
    }
    assert script.read_text() == SCRIPT


def test_terminal_skips_what_another_terminal_has_done(tmp_path: Path) -> None:
    command = ("ipython", "--simple-prompt", "--no-banner", "--no-confirm-exit")
    first, second = (call(tmp_path, *command, said=TERMINAL) for _ in range(2))
    assert first.count("a is 10") == second.count("a is 10") == 1
    assert first.count(": 11") == second.count(": 11") == 1
    assert events(tmp_path)["notebook-1", "one", "skipped"] == 1


def test_file_of_ipython_is_one_cell_and_so_one_step(tmp_path: Path) -> None:
    command = ("ipython", "--ext", "nbckpt", "job.ipy")
    file = tmp_path / "job.ipy"
    file.write_text("%%step one\na = 10\nprint('a is', a)\n")
    for _ in range(2):
        assert "a is 10" in call(tmp_path, *command)
    assert events(tmp_path)["notebook-1", "one", "completed"] == 1
    assert events(tmp_path)["notebook-1", "one", "skipped"] == 1
    file.write_text("a = 1\n%%step two\nb = 2\n")
    assert "must be the first line of its cell" in call(tmp_path, *command)
