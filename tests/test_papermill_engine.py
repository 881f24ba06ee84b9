"""The engine for papermill: what its kernels are told, and what it hands on."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from papermill.engines import papermill_engines
from papermill.iorw import local_file_io_cwd

from nbckpt import papermill_engine
from nbckpt.keys import next_run_id
from nbckpt.papermill_engine import NbckptEngine, _given, environment, job_of
from nbckpt.runs.identity import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path("/srv/jobs")


class Client:
    """Stands in for papermill's client; keeps what it was made and called with."""

    def __init__(self, manager: Any, **given: Any) -> None:
        self.manager, self.given = manager, given

    def execute(self, env: dict[str, str]) -> Any:
        return SimpleNamespace(**self.given, env=env)


@pytest.fixture
def executed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., SimpleNamespace]:
    """Return what calls the engine as papermill does, and gives what the client got."""
    monkeypatch.setattr(papermill_engine, "PapermillNotebookClient", Client)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.ipynb").touch()

    def execute(**how: Any) -> Any:
        paths = {"input_path": "in.ipynb", "output_path": "out.ipynb"}
        document = nbformat.v4.new_notebook(metadata={"papermill": paths})
        manager = SimpleNamespace(nb=document)
        return NbckptEngine.execute_managed_notebook(manager, "python3", **how)

    return execute


def test_papermill_finds_the_engine_by_its_name() -> None:
    assert papermill_engines.get_engine("nbckpt") is NbckptEngine


def test_kernel_is_told_its_notebook_and_its_job(tmp_path: Path) -> None:
    (tmp_path / "in.ipynb").touch()
    path = str(tmp_path / "in.ipynb")
    assert environment("in.ipynb", "out.ipynb", tmp_path) == {
        "NBCKPT_JOB": "out",
        "NBCKPT_NOTEBOOK": path,
        SESSION: path,
    }


@pytest.mark.parametrize("source", ["s3://bucket/in.ipynb", "gone.ipynb", "-", None])
def test_notebook_that_is_no_file_here_is_known_by_its_job(
    tmp_path: Path, source: str | None
) -> None:
    assert environment(source, "out.ipynb", tmp_path) == {"NBCKPT_JOB": "out"}


def test_without_an_output_the_runs_are_those_of_the_notebook(tmp_path: Path) -> None:
    (tmp_path / "in.ipynb").touch()
    assert environment("in.ipynb", None, tmp_path)["NBCKPT_JOB"] == ""


@pytest.mark.parametrize(
    ("output", "beside", "job", "run_id"),
    [
        ("out.ipynb", HERE, "out", "out-1"),
        ("monday/out.ipynb", HERE, "monday/out", "monday_out-1"),
        ("/srv/jobs/out.ipynb", HERE, "out", "out-1"),
        ("out.ipynb", HERE / "nb", "../out", "_out-1"),
        ("s3://bucket/out.ipynb", HERE, "s3://bucket/out", "s3___bucket_out-1"),
        ("out", HERE, "out", "out-1"),
    ],
)
def test_job_is_named_after_its_output(
    output: str, beside: Path, job: str, run_id: str
) -> None:
    assert job_of(output, HERE, beside) == job
    assert next_run_id(job, set()) == run_id


def test_outputs_of_one_name_in_two_folders_are_two_jobs() -> None:
    jobs = {job_of(f"{day}/out.ipynb", HERE, HERE) for day in ("monday", "tuesday")}
    assert len(jobs) == 2


def test_client_gets_what_papermill_says_in_its_own_words(
    executed: Callable[..., Any],
) -> None:
    found = executed(
        input_path="in.ipynb",
        log_output=True,
        stdout_file=None,
        start_timeout=7,
        execution_timeout=9,
        iopub_timeout=3,
    )
    said = (found.startup_timeout, found.timeout, found.iopub_timeout, found.log_output)
    assert said == (7, 9, 3, True)
    assert found.kernel_name == "python3"
    assert not hasattr(found, "input_path")


def test_kernel_keeps_the_rest_of_the_environment(
    executed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBCKPT_RUN_ID", "etl-2026-11-29")
    found = executed()
    assert found.env["NBCKPT_RUN_ID"] == "etl-2026-11-29"
    assert found.env["NBCKPT_JOB"] == "out"
    assert found.env["NBCKPT_PARAMETERS"] == "{}"


def test_credential_among_the_parameters_is_not_told_to_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711-secret")
    told = json.loads(_given({"n": 5, "TOKEN": "tok-4711-secret"}))
    assert told == {"n": "5", "TOKEN": "'$SHOP_TOKEN'"}


def test_long_parameter_is_told_to_the_kernel_in_short() -> None:
    one, two = (_given({"ids": [*range(n, 40_000)]}) for n in (0, 1))
    assert one != two
    done = subprocess.run(["true"], env={**os.environ, "P": one}, check=False)
    assert done.returncode == 0


def test_input_is_told_from_where_papermill_was_called_not_from_its_cwd_option(
    executed: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    with local_file_io_cwd():
        monkeypatch.chdir(tmp_path / "elsewhere")
        found = executed()
    assert found.env["NBCKPT_NOTEBOOK"] == str(tmp_path / "in.ipynb")
