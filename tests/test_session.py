"""A kernel's hold on its run: which one, of which version, and what it notes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nbckpt import places
from nbckpt.errors import BadStep, NotFound, RunHeld, StopForHuman, StoreFull
from nbckpt.headless import Order
from nbckpt.records import Lease, RunState
from nbckpt.runs import journal, opening
from nbckpt.verbs.finding.targets import folder_of
from tests.notebook import Notebook

A, B = "%%step a\nx = 1", "%%step b\ny = 2"


def write(path: str, *sources: str) -> str:
    """Write a notebook file."""
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(sources)
    ]
    data = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    Path(path).write_text(json.dumps(data))
    return path


def known(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, *sources: str
) -> Notebook:
    """Let the kernel know its notebook, which holds some cells."""
    monkeypatch.setenv("NBCKPT_NOTEBOOK", write("etl.ipynb", *sources))
    notebook.restart()
    return notebook


def kinds(notebook: Notebook) -> list[str]:
    return [e.kind for _, e in notebook.journal.history(notebook.session.run_id)]


def planned(notebook: Notebook) -> list[str]:
    plan = notebook.journal.plan(notebook.session.run_id)
    return [step.name for step in plan.steps]


def runs(notebook: Notebook) -> list[str]:
    return [run.run_id for run in notebook.journal.runs()]


def test_run_is_held_at_the_first_step_and_given_back_in_the_end(
    notebook: Notebook,
) -> None:
    assert not notebook.session.is_held
    assert not Path(".nbckpt").exists()
    notebook.run(A)
    session = notebook.session
    assert session.is_held
    store, run_id = session.store, session.run_id
    session.release()
    session.release()
    assert not session.is_held
    assert Lease.from_json(store.get(f"lease/{run_id}")).released


def test_kernel_that_gave_the_run_back_takes_it_again(notebook: Notebook) -> None:
    notebook.run(A)
    notebook.session.release()
    notebook.run(B)
    assert notebook.decision("b") == "Run"
    assert runs(notebook) == ["notebook-1"]
    assert notebook.journal.token == 2
    assert "taken" in kinds(notebook)


def test_run_is_named_after_the_notebook_and_counts(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, A)
    notebook.run(A)
    assert notebook.session.run_id == "etl-1"
    notebook.run("%nbckpt start --fresh")
    notebook.run(A)
    assert notebook.session.run_id == "etl-2"
    assert notebook.decision("a") == "Run"


def test_second_start_in_one_kernel_means_the_run_that_the_first_one_began(
    notebook: Notebook,
) -> None:
    notebook.run("%nbckpt start --fresh")
    notebook.run(A)
    notebook.session.release()
    notebook.run(A)
    assert runs(notebook) == ["notebook-1"]
    assert notebook.decision("a") == "Skip"


def test_start_line_that_is_run_again_means_the_run_that_it_began(
    notebook: Notebook,
) -> None:
    for _ in range(2):
        notebook.run("%nbckpt start --fresh")
        notebook.run(A)
    assert runs(notebook) == ["notebook-1"]
    assert notebook.decision("a") == "Skip"


def test_run_that_is_named_is_begun_and_found_again(notebook: Notebook) -> None:
    notebook.run("%nbckpt start orders-2026")
    notebook.run(A)
    notebook.restart()
    notebook.run("%nbckpt start orders-2026")
    notebook.run(A)
    assert notebook.decision("a") == "Skip"
    assert runs(notebook) == ["orders-2026"]


@pytest.mark.parametrize("run_id", ["a/b", ".."])
def test_name_that_is_no_run_id_is_refused(notebook: Notebook, run_id: str) -> None:
    assert isinstance(notebook.error(f"%nbckpt start {run_id}"), BadStep)
    assert not notebook.session.is_held


def test_environment_names_run_version_and_store(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBCKPT_RUN_ID", "night-7")
    monkeypatch.setenv("NBCKPT_VERSION", "3")
    monkeypatch.setenv("NBCKPT_STORE", "elsewhere")
    notebook.restart()
    notebook.run(A)
    run = notebook.journal.run("night-7")
    assert run.version == "3"
    assert Path("elsewhere/records").is_dir()
    assert not Path(".nbckpt").exists()


def test_store_of_a_run_is_that_of_its_notebook_alone(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a kernel of ``nbckpt run a.ipynb --store theirs`` that runs b.ipynb."""
    a, b = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    for file in (a, b):
        write(str(file), A)
    monkeypatch.setenv(places.STORE_OF, str(a))
    monkeypatch.setenv(places.STORE, str(tmp_path / "theirs"))
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(b))
    notebook.restart()
    notebook.run(A)
    assert notebook.session.store.folder == tmp_path / ".nbckpt"
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(a))
    notebook.restart()
    notebook.run(A)
    assert notebook.session.store.folder == tmp_path / "theirs"
    for target, folder in {
        "b.ipynb": ".nbckpt",
        "a.ipynb": "theirs",
        "": "theirs",
    }.items():
        assert folder_of("", target) == tmp_path / folder
    assert Order(b).folder == tmp_path / ".nbckpt"
    assert Order(a).folder == tmp_path / "theirs"
    monkeypatch.setenv("NBCKPT_STORE", "all")
    assert Order(b).folder == tmp_path / "all"


def test_start_line_goes_before_the_environment(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBCKPT_RUN_ID", "night-7")
    notebook.restart()
    notebook.run("%nbckpt start day-1 --store here")
    assert notebook.session.run_id == "day-1"
    assert Path("here").is_dir()


def test_overlap_that_there_is_none_of_is_refused(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.close()
    monkeypatch.setenv("NBCKPT_OVERLAP", "queue")
    with pytest.raises(BadStep, match="'queue' is no overlap policy"):
        Notebook(notebook.capsys)
    monkeypatch.delenv("NBCKPT_OVERLAP")
    notebook.restart()


@pytest.mark.parametrize(("begun", "now"), [("1", "2"), ("", "2")])
def test_run_of_another_version_stops_with_the_three_ways_on(
    notebook: Notebook, begun: str, now: str
) -> None:
    notebook.run(f"%nbckpt start r --version {begun}" if begun else "%nbckpt start r")
    notebook.run(A)
    notebook.restart()
    error = notebook.error(f"%nbckpt start r --version {now}")
    assert isinstance(error, StopForHuman)
    assert f"version {begun or 'none'}" in error.what
    assert f"this notebook is version {now}" in error.what
    old = f"--version {begun};" if begun else "without --version;"
    for way in (old, f"nbckpt fork r --from STEP --version {now}", "--fresh"):
        assert way in error.remedy
    assert not notebook.session.is_held
    assert isinstance(notebook.error(A), StopForHuman)
    assert "x" not in notebook.names
    notebook.run(f"%nbckpt start --fresh --version {now}")
    notebook.run(A)
    assert notebook.session.run_id == "notebook-1"


def test_run_of_the_same_version_or_without_a_wish_goes_on(notebook: Notebook) -> None:
    notebook.run("%nbckpt start r --version 1")
    notebook.run(A)
    for line in ("%nbckpt start r --version 1", "%nbckpt start r"):
        notebook.restart()
        notebook.run(line)
        notebook.run(A)
        assert notebook.decision("a") == "Skip"


def test_work_of_a_kernel_that_knew_no_notebook_is_taken_up(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(A)
    notebook.run(B)
    known(notebook, monkeypatch, A, B)
    notebook.run(A)
    assert notebook.session.run_id == "notebook-1"
    assert notebook.decision("a") == "Skip"


@pytest.mark.parametrize("cells", [(A,), (B, A), (A, B, "%%step c\nz = 3"), ()])
def test_work_of_another_plan_is_not_taken_up(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, cells: tuple[str, ...]
) -> None:
    notebook.run(A)
    notebook.run(B)
    known(notebook, monkeypatch, *cells)
    notebook.run(A)
    assert notebook.session.run_id == "etl-1"
    assert notebook.decision("a") == "Run"


def test_notebook_with_a_run_of_its_own_takes_no_other(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, A)
    notebook.run(A)
    monkeypatch.delenv("NBCKPT_NOTEBOOK")
    notebook.restart()
    notebook.run(A)
    assert notebook.session.run_id == "notebook-1"
    known(notebook, monkeypatch, A)
    notebook.run(A)
    assert notebook.session.run_id == "etl-1"


def test_plan_of_a_known_notebook_is_recorded_whole_before_the_first_body(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, "%load_ext nbckpt", A, "x + 1", B)
    notebook.run(A)
    assert planned(notebook) == ["a", "b"]
    assert kinds(notebook)[0] == "plan"
    assert kinds(notebook).index("plan") < kinds(notebook).index("started")


def test_run_whose_plan_could_not_be_written_is_given_back_and_taken_anew(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, "%load_ext nbckpt", A, B)
    whole = journal.Journal.write_plan
    left = [StoreFull("no room", "Make some")]

    def write_plan(self: journal.Journal, *args: Any, **named: Any) -> None:
        if left:
            raise left.pop()
        whole(self, *args, **named)

    monkeypatch.setattr(journal.Journal, "write_plan", write_plan)
    with pytest.raises(StoreFull):
        notebook.run(A)
    assert not notebook.session.is_held
    notebook.run(A)
    assert planned(notebook) == ["a", "b"]
    assert notebook.journal.run("etl-1").state is RunState.OPEN


def test_plan_grows_as_cells_are_seen_where_no_notebook_is_known(
    notebook: Notebook,
) -> None:
    notebook.run(A)
    assert planned(notebook) == ["a"]
    notebook.run(B)
    notebook.run(A)
    assert planned(notebook) == ["a", "b"]
    assert notebook.journal.run("notebook-1").state is RunState.OPEN


def test_changed_plan_is_noted_with_the_one_before(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, A)
    notebook.run(A)
    known(notebook, monkeypatch, B, A)
    notebook.run(A)
    history = notebook.journal.history(notebook.session.run_id)
    plans = [event.detail for _, event in history if event.kind == "plan"]
    assert plans == [{"steps": ["a"]}, {"before": ["a"], "steps": ["b", "a"]}]
    known(notebook, monkeypatch, B, A)
    notebook.run(A)
    assert kinds(notebook).count("plan") == 2


def test_broken_notebook_file_plans_nothing_and_stops_nothing(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, A)
    Path("etl.ipynb").write_text("{")
    notebook.run(A)
    assert planned(notebook) == ["a"]


def test_run_is_completed_when_each_planned_step_is(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, A, B)
    notebook.run(A)
    assert notebook.journal.run("etl-1").state is RunState.OPEN
    notebook.run(B)
    assert notebook.journal.run("etl-1").state is RunState.COMPLETED


def test_two_cells_of_one_name_are_refused_before_either_runs(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(notebook, monkeypatch, A, "%%step a\nx = 2", B)
    error = notebook.error(A)
    assert isinstance(error, BadStep)
    assert "two cells are named 'a'" in str(error)
    assert "x" not in notebook.names
    notebook.run(B)


def test_two_cells_of_one_name_are_told_apart_by_the_front_end(
    notebook: Notebook,
) -> None:
    notebook.show_cell("one")
    notebook.run(A)
    notebook.run("%%step a\nx = 2")
    assert notebook.names["x"] == 2
    notebook.show_cell("two")
    error = notebook.error("%%step a\nx = 3")
    assert isinstance(error, BadStep)
    assert notebook.names["x"] == 2


def test_notebook_that_begins_anew_may_have_other_cells(
    notebook: Notebook,
) -> None:
    notebook.show_cell("one")
    notebook.run(A)
    notebook.run("%load_ext nbckpt")
    notebook.show_cell("two")
    notebook.run(A)
    assert notebook.decision("a") == "Skip"


def test_run_that_another_kernel_holds_is_not_touched(notebook: Notebook) -> None:
    """Another host can't be asked: within its lease's time it counts as alive."""
    notebook.run(A)
    store, run_id = notebook.session.store, notebook.session.run_id
    lease = Lease.from_json(store.get(f"lease/{run_id}"))
    away = replace(lease, holder=replace(lease.holder, host="far-away", boot="other"))
    notebook.session.release()
    store.transact(lambda tx: tx.put(f"lease/{run_id}", away.to_json()))
    store.close()
    error = notebook.error(B)
    assert isinstance(error, RunHeld)
    assert "far-away" in str(error)
    assert "y" not in notebook.names
    notebook.run("%nbckpt start --overlap concurrent")
    notebook.run(B)
    assert notebook.session.run_id == "notebook-2"


def test_file_of_an_earlier_step_is_claimed_before_it_is_changed(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after the change, the earlier step must not be blamed for it."""
    claimed: list[tuple[str, str]] = []
    real = journal.Journal.claim

    def claim(self: Any, attempt: Any, path: str) -> Any:
        claimed.append((path, Path("log.txt").read_text()))
        return real(self, attempt, path)

    monkeypatch.setattr(journal.Journal, "claim", claim)
    write_log = "with open('log.txt', 'a') as f: f.write('{}')"
    notebook.run("%%step a\n" + write_log.format("1"))
    assert claimed == []
    notebook.run("%%step b\n" + write_log.format("2") + "\n" + write_log.format("3"))
    assert claimed == [("log.txt", "1")]
    attempts = notebook.journal.attempts(notebook.session.run_id)
    assert attempts["b"].writes == ("log.txt",)
    notebook.run("%%step a\n" + write_log.format("1"))
    assert notebook.decision("a") == "Skip"


def test_names_that_are_dropped_are_kept_by_no_step(notebook: Notebook) -> None:
    notebook.run("%%step a --drop scratch\nscratch = object()\nx = 1")
    record = notebook.journal.step("notebook-1", "a")
    assert record is not None
    assert record.contents.bound == ("x",)
    notebook.restart()
    notebook.run("%%step a --drop scratch\nscratch = object()\nx = 1")
    assert notebook.decision("a") == "Skip"
    assert "scratch" not in notebook.names


def test_skipped_step_shows_its_outputs_and_result_again(notebook: Notebook) -> None:
    cell = "%%step a\nprint('shown')\nx = [7]\nx"
    notebook.run(cell)
    first = notebook.shown()
    notebook.restart()
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"
    assert notebook.shown() == first
    assert notebook.names["_"] is notebook.names["x"]


@pytest.mark.parametrize(("is_kernel", "shown"), [(True, ""), (False, "shown\n")])
def test_silent_execution_restores_and_shows_what_the_body_would_have(
    notebook: Notebook, is_kernel: bool, shown: str
) -> None:
    """A kernel sends nothing then; ``ipython file.ipy`` in a terminal prints."""
    cell = "%%step a\nprint('shown')\nx = 7\nx"
    notebook.shell.run_cell(cell, silent=True)
    notebook.restart()
    notebook.shown()
    if is_kernel:
        notebook.shell.kernel = object()
    notebook.shell.run_cell(cell, silent=True)
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == 7
    assert notebook.shown() == shown


def test_values_that_are_taken_back_are_those_that_stood_there(
    notebook: Notebook,
) -> None:
    notebook.run("old = 1")
    notebook.run("%%step a --ignore old\nx = 1\nmade = 2\ndel old")
    session = notebook.session
    record = notebook.journal.step("notebook-1", "a")
    assert record is not None
    restored = session.checkpoints.load(record.contents)
    notebook.names.pop("made")
    notebook.names.update(x="mine", old="kept")
    undo = session.bind(record, restored)
    assert (notebook.names["x"], notebook.names["made"]) == (1, 2)
    assert "old" not in notebook.names
    undo()
    assert (notebook.names["x"], notebook.names["old"]) == ("mine", "kept")
    assert "made" not in notebook.names


def test_run_of_an_older_schema_is_frozen_and_said_so(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(A)
    notebook.close()
    monkeypatch.setattr(opening, "SCHEMA_VERSION", opening.SCHEMA_VERSION + 1)
    notebook.restart()
    notebook.told()
    notebook.run(A)
    assert notebook.session.run_id == "notebook-2"
    assert "run notebook-1 has an older schema and is frozen" in notebook.told()
    assert notebook.journal.run("notebook-1").state is RunState.FROZEN


@pytest.mark.parametrize("name", ["", "NBCKPT_NOTEBOOK"])
def test_kernel_without_a_run_is_told_to_run_a_step(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name:
        notebook.run(A)
        monkeypatch.setenv(name, write("other.ipynb", A))
        notebook.restart()
    error = notebook.error("%nbckpt explain a")
    assert isinstance(error, NotFound)
    assert "run a cell with %%step" in error.remedy
    assert "NOTEBOOK" not in str(error)
    assert ("Known: notebook-1" in error.remedy) is bool(name)
