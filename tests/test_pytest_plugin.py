"""The pytest options, with nbval and without it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from nbckpt import headless
from nbckpt.verbs.finding.opening import looking

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.records import Event

LOAD = "%load_ext nbckpt\nimport os"
STEP = "%%step a --writes a.txt\nx = 1\nopen('a.txt', 'w').write('1')\nprint('x is', x)"
SECOND = "%%step b\ny = x + 1\ny"
HEAVY = {"nbclient", "IPython", "diskcache", "cloudpickle", "psutil", "nbckpt.store"}


def a_notebook(folder: Path, *sources: str, name: str = "nb.ipynb") -> Path:
    make: Any = nbformat.v4
    cells = [make.new_code_cell(source) for source in sources]
    path = folder / name
    nbformat.write(make.new_notebook(cells=cells), path)
    return path


def with_outputs(notebook: Path) -> Path:
    """Execute a notebook and keep its outputs in it, as one that is committed."""
    order = headless.Order(notebook, store=notebook.parent / "made")
    assert headless.run(order, lambda _: None) == 0
    notebook.with_name("nb.out.ipynb").replace(notebook)
    return notebook


def pytest_on(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, with the plugin as it is installed."""
    hidden = {"PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS"}
    environment = {n: t for n, t in os.environ.items() if n not in hidden}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True,
        timeout=200, check=False,
    )  # fmt: skip


def events(store: Path) -> list[Event]:
    with looking(store) as reader:
        runs = [run.run_id for run in reader.runs()]
        return [event for run in runs for _, event in reader.history(run)]


def kinds(store: Path) -> list[str]:
    return [e.kind for e in events(store) if e.kind in {"completed", "skipped"}]


def test_nbval_passes_cold_and_warm_and_names_the_run_after_the_notebook(
    tmp_path: Path,
) -> None:
    notebook = with_outputs(a_notebook(tmp_path, LOAD, STEP, SECOND))
    cold = pytest_on(tmp_path, "--nbval", notebook.name)
    assert cold.returncode == 0, cold.stdout
    warm = pytest_on(tmp_path, "--nbval", notebook.name)
    assert warm.returncode == 0, warm.stdout
    assert kinds(tmp_path / ".nbckpt") == ["completed"] * 2 + ["skipped"] * 2
    with looking(tmp_path / ".nbckpt") as reader:
        assert [run.run_id for run in reader.runs()] == ["nb-1"]


def test_warm_store_never_makes_broken_code_green(tmp_path: Path) -> None:
    notebook = with_outputs(a_notebook(tmp_path, LOAD, STEP, SECOND))
    assert pytest_on(tmp_path, "--nbval", notebook.name).returncode == 0
    text = notebook.read_text()
    notebook.write_text(text.replace("y = x + 1", "y = x + undefined"))
    broken = pytest_on(tmp_path, "--nbval", notebook.name)
    assert broken.returncode == 1
    assert "NameError" in broken.stdout


def test_fresh_store_is_thrown_away_and_the_notebooks_own_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that would skip all is there, and the body runs none the less."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    body = "%%step a\nos.write(os.open('log', os.O_WRONLY | os.O_APPEND), b'x')"
    notebook = a_notebook(tmp_path, LOAD, f"{body}\nx = 1")
    (tmp_path / "log").touch()
    assert pytest_on(tmp_path, "--nbval-lax", notebook.name).returncode == 0
    own = kinds(tmp_path / ".nbckpt")
    assert pytest_on(tmp_path, "--nbval-lax", "--nbckpt-fresh", ".").returncode == 0
    assert (tmp_path / "log").read_text() == "xx"
    assert kinds(tmp_path / ".nbckpt") == own
    assert list(scratch.glob("nbckpt-*")) == []


def test_two_notebooks_of_one_name_have_fresh_stores_of_their_own(
    tmp_path: Path,
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        a_notebook(tmp_path / name, LOAD, f"%%step a\nassert True, {name!r}\nx = 1")
    done = pytest_on(tmp_path, "--nbval-lax", "--nbckpt-fresh", ".")
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_twice_works_without_nbval_and_leaves_no_store(tmp_path: Path) -> None:
    a_notebook(tmp_path, LOAD, STEP, SECOND)
    a_notebook(tmp_path, "1 / 0", name="plain.ipynb")
    options = ("-p", "no:nbval", "--nbckpt-twice", "--nbckpt-keep", "kept/here")
    done = pytest_on(tmp_path, *options, ".")
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert not (tmp_path / ".nbckpt").exists()
    [kept] = (tmp_path / "kept/here").iterdir()
    cells = nbformat.read(kept, as_version=4).cells
    assert [cell.outputs[0].get("text") for cell in cells[1:2]] == ["x is 1\n"]


def test_twice_fails_where_the_warm_pass_is_another_one(tmp_path: Path) -> None:
    a_notebook(tmp_path, LOAD, "n = os.getpid()", "%%step a\nx = n", "print(n)")
    done = pytest_on(tmp_path, "--nbckpt-twice", ".")
    assert done.returncode == 1
    assert "step a ran again in the warm pass: input 'n' changed" in done.stdout
    assert "cell 4: its output differs in the warm pass" in done.stdout
    assert "nbckpt/headless" not in done.stdout


def test_without_an_option_no_notebook_is_collected(tmp_path: Path) -> None:
    a_notebook(tmp_path, LOAD, STEP)
    assert pytest_on(tmp_path, ".").returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_plugin_imports_nothing_heavy_at_start() -> None:
    code = (
        f"import sys, nbckpt.pytest_plugin\nprint(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
