"""From the records of a run to what is shown of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nbformat
import pytest

from nbckpt.panel.looking import (
    MOST_EVIDENCE,
    NOT_YET,
    completed,
    evidence,
    look,
    look_at_file,
)
from nbckpt.panel.view import LoopView, RunView, State, StepView
from nbckpt.records import Contents, Evidence, Fingerprint, Mark, StepRecord

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

RECORD = StepRecord(
    "r-1", "clean", 1, 1, 1, Fingerprint(), Evidence(), Contents(), 1.0, 3.0, 2.0
)
LOOP = """\
%%step {}
import nbckpt
loop = nbckpt.items(range(3), key=str, on_error="continue")
for item in loop:
    if item == 1:
        loop.failed(ValueError("odd"))
del loop
assert {}"""


def seen(notebook: Notebook) -> RunView:
    session = notebook.session
    return look(session.journal, session.journal.run(session.run_id))


def test_states_are_told_from_the_records(notebook: Notebook) -> None:
    notebook.run("%%step fine\nx = 1")
    notebook.error(LOOP.format("odd", "False"))
    notebook.run("%%step gone\nhandle = (n for n in [1])")
    run = seen(notebook)
    assert {step.name: step.state for step in run.steps} == {
        "fine": State.DONE,
        "odd": State.FAILED,
        "gone": State.AGAIN,
    }
    fine, odd, gone = run.steps
    assert fine.why == f"ran: it has no record yet; {NOT_YET}"
    assert fine.expected == fine.seconds > 0
    assert odd.why.startswith("AssertionError")
    assert odd.loops == (LoopView("1", 2, 3, 1),)
    assert "handle" in gone.why
    assert run.run_id == "notebook-1"
    assert run.resume == ""
    assert run.began == 0.0


def test_step_that_somebody_asked_for_again_is_stale(notebook: Notebook) -> None:
    notebook.run("%%step fine\nx = 1")
    mark = Mark(rerun="ada")
    key = f"mark/{notebook.session.run_id}/fine"
    notebook.journal.write(lambda tx: tx.put(key, mark.to_json()))
    [step] = seen(notebook).steps
    assert (step.state, step.why) == (State.STALE, "asked for: ada")


def test_time_of_an_earlier_run_is_expected_again(notebook: Notebook) -> None:
    notebook.run("%nbckpt start first\n")
    notebook.run("%%step fine\nx = 1")
    before = notebook.journal.steps("first")["fine"].seconds
    notebook.restart()
    notebook.run("%nbckpt start second")
    notebook.error("%%step fine\nassert False")
    [step] = seen(notebook).steps
    assert (step.state, step.expected) == (State.FAILED, before)


def test_file_tells_the_steps_of_which_nothing_ran(tmp_path: Path) -> None:
    sources = ["%load_ext nbckpt", "%%step a\nx = 1", "%%step b\ny = x"]
    cells = [nbformat.v4.new_code_cell(source) for source in sources]  # type: ignore[no-untyped-call]
    file = tmp_path / "job.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)  # type: ignore[no-untyped-call]
    found = look_at_file(file).steps
    assert [(step.number, step.name) for step in found] == [(1, "a"), (2, "b")]
    assert {step.state for step in found} == {State.PENDING}


@pytest.mark.parametrize("name", [None, "gone.ipynb", "job.py"])
def test_nothing_is_shown_of_a_file_that_tells_nothing(
    name: str | None, tmp_path: Path
) -> None:
    assert look_at_file(tmp_path / name if name else None) == RunView()


def test_evidence_is_told_piece_by_piece() -> None:
    found = Evidence(
        files={"out.csv": "0123456789abcdef", "old.csv": ""},
        checks=("len(df) > 0",),
        note="looked at it",
        learned={"id": 7},
        confirmed=("sane",),
    )
    assert evidence(replace(RECORD, evidence=found)) == (
        "file out.csv 0123456789ab",
        "no file old.csv",
        "check len(df) > 0",
        "said to be true: sane",
        "id = 7",
        "note (weaker): looked at it",
    )


def test_much_evidence_is_cut_with_the_command_that_tells_all() -> None:
    files = {f"{number}.csv": "ab" for number in range(MOST_EVIDENCE + 5)}
    found = evidence(replace(RECORD, evidence=Evidence(files=files)))
    assert len(found) == MOST_EVIDENCE + 1
    assert found[-1] == "and 5 more: nbckpt show clean"


def test_skipped_step_saves_its_time_and_says_no_reason() -> None:
    step = completed(StepView(2, "clean"), RECORD, State.SKIPPED, "")
    assert (step.number, step.saved, step.why) == (2, 2.0, "")


def test_step_that_can_not_be_kept_runs_again() -> None:
    record = replace(RECORD, runs_again="handle: a socket")
    step = completed(StepView(2, "clean"), record, State.DONE, "it has no record yet")
    assert (step.state, step.why) == (State.AGAIN, "handle: a socket")
    assert step.saved == 0.0
