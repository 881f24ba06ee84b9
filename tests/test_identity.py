"""Which notebook a kernel runs: what front ends tell it, and what was told to another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbckpt.runs import identity
from nbckpt.runs.identity import OWN, SESSION, Starter, identify, told_to_this_kernel

if TYPE_CHECKING:
    from tests.notebook import Notebook

NOBODY = Starter({})


@pytest.fixture(autouse=True)
def _untold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with three notebooks; nothing tells which one is meant."""
    for name in (*OWN, SESSION, "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("a.ipynb", "b.ipynb", "c.ipynb"):
        (tmp_path / name).touch()


def started_by(monkeypatch: pytest.MonkeyPatch, *command: str, **told: str) -> None:
    """Let this kernel have been started by a command of a process with an environment."""
    found = Starter(told, command, Path.cwd())
    monkeypatch.setattr(identity, "starter", lambda: found)


def test_kernel_that_nobody_told_anything_has_its_folder_and_no_notebook() -> None:
    found = identify({})
    assert (found.base, found.notebook, found.stem) == (Path.cwd(), None, "notebook")


def test_vs_code_leaves_the_path_among_the_names(tmp_path: Path) -> None:
    found = identify({"__vsc_ipynb_file__": str(tmp_path / "a.ipynb")})
    assert (found.notebook, found.stem) == (tmp_path / "a.ipynb", "a")


def test_untitled_notebook_of_vs_code_is_no_file_and_counts_as_unknown() -> None:
    assert identify({"__vsc_ipynb_file__": "Untitled-1.ipynb"}).notebook is None


def test_server_that_vs_code_is_connected_to_knows_the_path_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SESSION, str(tmp_path / "b.ipynb"))
    names = {"__vsc_ipynb_file__": "/on/the/laptop/b.ipynb"}
    assert identify(names).notebook == tmp_path / "b.ipynb"


def test_names_are_taken_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"__vsc_ipynb_file__": str(tmp_path / "b.ipynb")}
    monkeypatch.setenv(SESSION, str(tmp_path / "c.ipynb"))
    assert identify({}).stem == "c"
    assert identify(names).stem == "b"
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(tmp_path / "a.ipynb"))
    assert identify(names).stem == "a"


def test_server_is_asked_only_where_nothing_before_it_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(identity.servers, "notebook_now", lambda: asked.append(1))
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(tmp_path / "a.ipynb"))
    assert identify({}).stem == "a"
    assert asked == []
    monkeypatch.delenv("NBCKPT_NOTEBOOK")
    assert identify({}).notebook is None
    assert asked == [1]


def test_session_name_of_colab_is_no_file_and_its_run_is_named_by_hand(
    monkeypatch: pytest.MonkeyPatch, notebook: Notebook
) -> None:
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    monkeypatch.setenv(SESSION, "fileId=https%3A//drive/1aB")
    notebook.restart()
    assert notebook.session.identity.notebook is None
    notebook.run("%nbckpt start etl-colab")
    assert notebook.session.run_id == "etl-colab"


def test_job_has_runs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBCKPT_NOTEBOOK", "a.ipynb")
    monkeypatch.setenv("NBCKPT_JOB", "out/monday")
    assert identify({}).stem == "out/monday"


def test_notebook_that_another_one_executes_is_not_the_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterLab told the outer kernel; papermill inside it hands that on."""
    outer = str(tmp_path / "a.ipynb")
    monkeypatch.setenv(SESSION, outer)
    started_by(monkeypatch, "papermill", "b.ipynb", **{SESSION: outer})
    assert identify({}).notebook is None


def test_nothing_of_the_run_around_counts_for_the_kernel_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = str(tmp_path / "a.ipynb")
    told = dict.fromkeys(OWN, "1") | {"NBCKPT_NOTEBOOK": outer, SESSION: outer}
    told["NBCKPT_OVERLAP"] = "replace"
    for name, text in told.items():
        monkeypatch.setenv(name, text)
    assert identity.wish_of_environment().run_id == "1"
    started_by(monkeypatch, "python", "drive.py", **told)
    assert not {*OWN, SESSION} & told_to_this_kernel(identity.starter()).keys()
    assert identity.wish_of_environment() == identity.Wish()
    assert identify({}).notebook is None


def test_what_a_runner_inside_tells_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = str(tmp_path / "b.ipynb")
    monkeypatch.setenv(SESSION, inner)
    monkeypatch.setenv("NBCKPT_NOTEBOOK", inner)
    outer = str(tmp_path / "a.ipynb")
    told = {SESSION: outer, "NBCKPT_NOTEBOOK": outer}
    started_by(monkeypatch, "nbckpt", "run", "b.ipynb", **told)
    assert identify({}).stem == "b"


def test_run_of_the_kernel_around_is_not_taken_with_a_notebook_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pytest does it in a cell of a notebook that ``nbckpt run`` runs."""
    outer = str(tmp_path / "a.ipynb")
    told = {SESSION: outer, "NBCKPT_NOTEBOOK": outer, "NBCKPT_RUN_ID": "a-1"}
    for name, text in {**told, "NBCKPT_NOTEBOOK": str(tmp_path / "b.ipynb")}.items():
        monkeypatch.setenv(name, text)
    started_by(monkeypatch, "pytest", "b.ipynb", **told)
    assert identify({}).stem == "b"
    assert identity.wish_of_environment().run_id == ""


def test_notebook_that_a_user_names_in_a_shell_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = str(tmp_path / "b.ipynb")
    monkeypatch.setenv("NBCKPT_NOTEBOOK", named)
    started_by(monkeypatch, "python", "drive.py", NBCKPT_NOTEBOOK=named)
    assert identify({}).stem == "b"


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        ("/bin/python /bin/jupyter-nbconvert --execute --to notebook a.ipynb", "a"),
        ("python -m nbconvert --execute a.ipynb --output b.ipynb", "a"),
        ("python -m nbconvert --execute a.ipynb --output=b.ipynb", "a"),
        ("jupyter-execute b.ipynb", "b"),
        ("jupyter-execute b.ipynb --output c.ipynb", "b"),
        ("jupyter-execute ./b.ipynb b.ipynb", "b"),
        ("jupyter-nbconvert --execute a.ipynb b.ipynb", "notebook"),
        ("jupyter-nbconvert --execute *.ipynb", "notebook"),
        ("jupyter-lab a.ipynb", "notebook"),
        ("python drive.py a.ipynb", "notebook"),
        ("", "notebook"),
    ],
)
def test_command_that_executes_one_notebook_names_it(
    monkeypatch: pytest.MonkeyPatch, command: str, stem: str
) -> None:
    started_by(monkeypatch, *command.split())
    assert identify({}).stem == stem


def test_starter_is_looked_at_as_it_was_when_it_began(tmp_path: Path) -> None:
    """A child that sets a variable for its own child was not told it itself."""
    inner = (
        "from nbckpt.runs.identity import starter; by = starter(); "
        "print(by.environment['A'], by.command[-1], by.folder)"
    )
    outer = (
        "import os, subprocess, sys\n"
        "os.environ.update(A='late', JPY_PARENT_PID=str(os.getpid()))\n"
        f"subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    )
    told = subprocess.run(
        [sys.executable, "-c", outer, "word"],
        env={**os.environ, "A": "early"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["early", "word", str(tmp_path)]


@pytest.mark.parametrize("pid", ["", "no number", "0", "-1", "4194305"])
def test_starter_that_is_gone_tells_nothing(
    monkeypatch: pytest.MonkeyPatch, pid: str
) -> None:
    monkeypatch.setenv("JPY_PARENT_PID", pid)
    found = identity.starter()
    assert found == NOBODY or pid == "0"


def test_declared_file_that_lies_only_where_the_kernel_works_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Notebook
) -> None:
    """A native reader would open it, and its change would never be noticed."""
    below = tmp_path / "below"
    below.mkdir()
    (below / "x.parquet").write_bytes(b"1")
    monkeypatch.chdir(below)
    error = notebook.error("%%step load --reads x.parquet\na = 1")
    assert f"the notebook's folder {tmp_path}" in str(error)
    assert "Write --reads below/x.parquet" in str(error)
    notebook.run("%%step load --reads below/x.parquet\na = 1")


def test_declared_product_that_lies_elsewhere_is_refused_and_nothing_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Notebook
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    body = "import pathlib; _ = pathlib.Path('y.parquet').write_bytes(b'2')"
    error = notebook.error(f"%%step save --writes y.parquet\n{body}")
    assert "Write --writes below/y.parquet" in str(error)
    assert notebook.journal.steps(notebook.session.run_id) == {}
    notebook.run(f"%%step save --writes below/y.parquet\n{body}")


def test_product_of_a_step_below_one_that_went_into_another_folder_is_none_of_these(
    notebook: Notebook,
) -> None:
    notebook.run("%%step enter\nimport os\nos.mkdir('below')\nos.chdir('below')")
    body = "import pathlib; _ = pathlib.Path('y.parquet').write_bytes(b'2')"
    notebook.run(f"%%step save --writes y.parquet\n{body}")
    assert notebook.journal.steps(notebook.session.run_id).keys() == {"enter", "save"}
