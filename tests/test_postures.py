"""In which posture a run is gone on with, and what of its plan is another: both recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.errors import StopForHuman
from nbckpt.runs.history import Reader
from nbckpt.verbs.look.audit import audit
from nbckpt.verbs.prepare.planning import plan_notebook
from tests.notebook import Notebook, write_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.records import Event

A, B, C = "%%step a\nx = 1", "%%step b\ny = x + 1", "%%step c\nz = 3"
FAILS = "%%step b\ny = x / 0"


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Notebook]:
    """Return a kernel that knows its notebook ``etl.ipynb``."""
    monkeypatch.chdir(tmp_path)
    write_cells(A, B)
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(tmp_path / "etl.ipynb"))
    found = Notebook(capsys)
    yield found
    found.close()


def again(notebook: Notebook, *sources: str) -> None:
    """Run these cells in a new kernel, as the file that holds them."""
    write_cells(*sources)
    notebook.restart()
    notebook.told()
    for source in sources:
        notebook.run(source)


def lines(notebook: Notebook, *kinds: str) -> list[Event]:
    history = notebook.journal.history(notebook.session.run_id)
    return [event for _, event in history if event.kind in kinds]


def test_resumed_run_has_a_line_and_a_first_hold_has_none(notebook: Notebook) -> None:
    notebook.run(A)
    assert lines(notebook, "taken", "fresh") == []
    notebook.restart()
    notebook.run(A)
    (line,) = lines(notebook, "taken")
    assert (line.reason, line.detail["overlap"]) == ("resume", "skip")
    assert line.token == 2


def test_fresh_run_has_a_line_that_names_the_one_before(notebook: Notebook) -> None:
    notebook.run(A)
    notebook.restart()
    notebook.run("%nbckpt start --fresh")
    (line,) = lines(notebook, "fresh")
    assert line.detail == {"instead of": "etl-1"}
    found = audit(Reader(notebook.session.store), notebook.journal.run("etl-2"))
    assert [event["kind"] for event in found["events"]] == ["fresh"]


def test_run_that_stops_on_redo_stops_at_a_step_that_failed_before(
    notebook: Notebook,
) -> None:
    write_cells("%nbckpt start --stop-on-redo", A, FAILS)
    notebook.restart()
    notebook.run("%nbckpt start --stop-on-redo")
    (line,) = lines(notebook, "taken")
    assert line.reason == "stop"
    notebook.run(A)
    assert isinstance(notebook.error(FAILS), ZeroDivisionError)
    notebook.restart()
    notebook.run("%nbckpt start --stop-on-redo")
    notebook.run(A)
    assert notebook.decision("a") == "Skip"
    error: Any = notebook.error(FAILS)
    assert isinstance(error, StopForHuman)
    assert "attempted and not completed (failed)" in error.what
    assert [line.step for line in lines(notebook, "stopped")] == ["b"]
    notebook.run("%nbckpt rerun b")
    notebook.run(B)
    assert notebook.names["y"] == 2


def test_run_without_the_wish_redoes_what_failed(notebook: Notebook) -> None:
    """The control: the same notebook, resumed."""
    notebook.run(A)
    notebook.error(FAILS)
    notebook.restart()
    notebook.run(A)
    assert isinstance(notebook.error(FAILS), ZeroDivisionError)
    assert [line.reason for line in lines(notebook, "taken")] == ["resume"]


def test_stop_is_asked_for_by_the_environment_too_and_until_it_is_left_out(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(A)
    notebook.error(FAILS)
    monkeypatch.setenv("NBCKPT_STOP_ON_REDO", "1")
    notebook.restart()
    notebook.run("%nbckpt start")
    notebook.run(A)
    assert isinstance(notebook.error(FAILS), StopForHuman)
    monkeypatch.delenv("NBCKPT_STOP_ON_REDO")
    notebook.run("%nbckpt start --stop-on-redo")
    assert isinstance(notebook.error(FAILS), StopForHuman)
    notebook.run("%nbckpt start")
    assert isinstance(notebook.error(FAILS), ZeroDivisionError)


def test_plan_foretells_the_stop(notebook: Notebook) -> None:
    write_cells("%nbckpt start --stop-on-redo", A, FAILS)
    notebook.run(A)
    notebook.error(FAILS)
    reader, path = Reader(notebook.session.store), Path("etl.ipynb")
    found = {s["name"]: s["prediction"] for s in plan_notebook(reader, path)["steps"]}
    assert found == {"a": "skip", "b": "stop"}


def test_stop_of_another_version_stands_in_the_audit(notebook: Notebook) -> None:
    notebook.run("%nbckpt start --version 3")
    notebook.run(A)
    notebook.restart()
    assert isinstance(notebook.error("%nbckpt start --version 4"), StopForHuman)
    assert not notebook.session.is_held
    store = notebook.session.open_store()
    found = audit(Reader(store), Reader(store).run("etl-1"))
    store.close()
    stops = [event for event in found["events"] if event["kind"] == "stopped"]
    assert [event["reason"] for event in stops] == [
        "begun with version 3, this notebook is version 4"
    ]


def test_changed_list_of_steps_is_told_at_the_resume_and_recorded(
    notebook: Notebook,
) -> None:
    notebook.run(A)
    notebook.run(B)
    again(notebook, C, A)
    told = "added c; removed b"
    assert f"run etl-1: the list of steps changed: {told}" in notebook.told()
    assert [line.reason for line in lines(notebook, "plan")] == ["", told]
    assert lines(notebook, "plan")[-1].detail == {
        "before": ["a", "b"],
        "steps": ["c", "a"],
    }
    assert notebook.decision("a") == "Skip"


def test_list_that_is_the_same_is_not_told_again(notebook: Notebook) -> None:
    notebook.run(A)
    again(notebook, C, A)
    notebook.told()
    again(notebook, C, A)
    assert "list of steps" not in notebook.told()
    assert len(lines(notebook, "plan")) == 2


def test_step_whose_code_changed_changes_no_list(notebook: Notebook) -> None:
    notebook.run(A)
    again(notebook, A, "%%step b\ny = x + 2")
    assert "list of steps" not in notebook.told()
    assert [line.reason for line in lines(notebook, "plan")] == ["", ""]


def test_steps_that_were_only_seen_are_no_list(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that does not know its file sees one step after the other."""
    monkeypatch.delenv("NBCKPT_NOTEBOOK")
    notebook.restart()
    notebook.run(A)
    notebook.restart()
    notebook.run(A)
    notebook.run(C)
    assert "list of steps" not in notebook.told()


def test_new_name_of_a_step_with_effects_is_told_with_what_it_means(
    notebook: Notebook,
) -> None:
    pay = "import nbckpt\nnbckpt.effect('charge', lambda: 1, dedup='1d')"
    write_cells(f"%%step pay\n{pay}")
    notebook.restart()
    notebook.run(f"%%step pay\n{pay}")
    write_cells(f"%%step bill\n{pay}")
    notebook.restart()
    notebook.told()
    notebook.run("%nbckpt start")
    told = notebook.told()
    assert "renamed pay to bill" in told
    assert "step bill will stop for a person at what pay made: charge" in told


def test_plan_tells_the_changed_list_before_anything_runs(notebook: Notebook) -> None:
    notebook.run(A)
    notebook.run(B)
    write_cells(B, A)
    found = plan_notebook(Reader(notebook.session.store), Path("etl.ipynb"))
    assert "the list of steps changed: moved b" in found["notes"]
    assert lines(notebook, "plan")[-1].reason == ""
