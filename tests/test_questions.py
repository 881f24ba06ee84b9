"""A question ends the cell and frees the run; its answer is there in the next pass."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from nbckpt import current
from nbckpt.errors import AlreadySettled, BadStep, WaitingForAnswer
from nbckpt.people import settling
from nbckpt.records import Question, StepState
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

STEP = "%%step a\nx = nbckpt.ask('Delete 4 rows?', ['yes', 'no'], name='delete')"


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    notebook.run("import nbckpt")
    return notebook


def questions(folder: Path) -> list[Question]:
    store = Store(folder / ".nbckpt", load_secret())
    found = Reader(store).questions("notebook-1")
    store.close()
    return found


def say(folder: Path, value: object) -> None:
    store = Store(folder / ".nbckpt", load_secret())
    (asked,) = [q for q in Reader(store).questions("notebook-1") if not q.answered]
    store.transact(settling.answer(asked, value, "ada", time.time()))
    store.close()


def test_question_ends_the_step_frees_the_run_and_says_how_to_answer(
    notebook: Notebook, tmp_path: Path
) -> None:
    error = notebook.error(STEP)
    assert isinstance(error, WaitingForAnswer)
    assert "Delete 4 rows? (yes, no)" in str(error)
    assert "%nbckpt answer delete VALUE" in str(error)
    assert "nbckpt answer notebook-1 delete yes" in str(error)
    assert not notebook.session.is_held
    (asked,) = questions(tmp_path)
    assert (asked.step, asked.id, asked.answered) == ("a", "delete", False)


def test_waiting_step_is_recorded_as_waiting(notebook: Notebook) -> None:
    notebook.error(STEP)
    notebook.session.hold()
    attempt = notebook.journal.attempt(notebook.session.run_id, "a")
    assert attempt is not None
    assert attempt.state is StepState.WAITING


def test_answer_lets_the_step_go_on_in_this_kernel_and_in_the_next(
    notebook: Notebook,
) -> None:
    notebook.error(STEP)
    notebook.run("%nbckpt answer delete yes")
    notebook.run(STEP)
    assert notebook.names["x"] == "yes"
    notebook.restart()
    notebook.run("import nbckpt")
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == "yes"


def test_question_in_a_plain_cell_frees_the_run_too(
    notebook: Notebook, tmp_path: Path
) -> None:
    plain = "y = nbckpt.ask('who?')"
    assert isinstance(notebook.error(plain), WaitingForAnswer)
    assert not notebook.session.is_held
    say(tmp_path, "bob")
    notebook.run(plain)
    assert notebook.names["y"] == "bob"


SENDS = "%nbckpt answer delete yes --step a"


def test_answer_that_is_given_in_advance_lets_the_step_pass(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.run(SENDS)
    told = notebook.shown()
    assert told == "answer to question delete of step a: yes\n"
    notebook.run(STEP)
    assert notebook.names["x"] == "yes"
    notebook.restart()
    notebook.run("import nbckpt")
    notebook.run(SENDS)
    assert notebook.shown() == told
    notebook.run(STEP)
    assert notebook.decision("a") == "Skip"
    (asked,) = questions(tmp_path)
    assert asked.answered


def test_answer_in_advance_that_is_no_option_leaves_the_run_waiting(
    notebook: Notebook,
) -> None:
    notebook.run("%nbckpt answer delete maybe --step a")
    error = notebook.error(STEP)
    assert isinstance(error, WaitingForAnswer)
    assert "'maybe' by" in str(error)
    assert "which is no option" in str(error)
    assert isinstance(notebook.error("%nbckpt answer delete maybe --step a"), BadStep)
    notebook.run("%nbckpt answer delete no --step a")
    notebook.run(STEP)
    assert notebook.names["x"] == "no"


def test_answer_of_somebody_else_stands_against_the_line_in_the_notebook(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.error(STEP)
    say(tmp_path, "no")
    error = notebook.error(SENDS)
    assert isinstance(error, AlreadySettled)
    assert "'no' by" in str(error)
    notebook.run(STEP)
    assert notebook.names["x"] == "no"


def test_plain_cell_is_answered_in_advance_under_a_dash(notebook: Notebook) -> None:
    notebook.run("%nbckpt answer who bob --step -")
    notebook.run("y = nbckpt.ask('who?', name='who')")
    assert notebook.names["y"] == "bob"


def test_question_asked_again_is_one_question(
    notebook: Notebook, tmp_path: Path
) -> None:
    for _ in range(2):
        assert isinstance(notebook.error(STEP), WaitingForAnswer)
    assert len(questions(tmp_path)) == 1


def test_answer_to_4_rows_does_not_delete_9000(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.error(STEP)
    say(tmp_path, "yes")
    assert isinstance(notebook.error(STEP.replace("4", "9000")), WaitingForAnswer)
    say(tmp_path, "no")
    notebook.run(STEP.replace("4", "9000"))
    assert notebook.names["x"] == "no"


def test_two_questions_of_one_name_are_refused(
    notebook: Notebook, tmp_path: Path
) -> None:
    source = STEP + "\ny = nbckpt.ask('Sure?', ['yes', 'no'], name='delete')"
    notebook.error(source)
    say(tmp_path, "yes")
    error = notebook.error(source)
    assert isinstance(error, BadStep)
    assert "two questions have the name 'delete'" in str(error)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ("''", "is no question"),
        ("5", "is no question"),
        ("'Go?', 'yes'", "is one text"),
        ("'Go?', ['1', 1]", "read the same"),
        ("'Go?', deadline='soon'", "no duration"),
    ],
)
def test_question_that_nobody_can_answer_is_refused(
    notebook: Notebook, tmp_path: Path, call: str, part: str
) -> None:
    error = notebook.error(f"%%step a\nnbckpt.ask({call})")
    assert isinstance(error, BadStep)
    assert part in str(error)
    assert questions(tmp_path) == []


def test_items_of_a_loop_have_questions_of_their_own(
    notebook: Notebook, tmp_path: Path
) -> None:
    for item in ("o-1", "o-2", "a name/with ü"):
        token = current.item.set(item)
        notebook.error("%%step a\nnbckpt.ask('ok?', name='ok')")
        current.item.reset(token)
    found = {asked.item: asked.id for asked in questions(tmp_path)}
    assert (found["o-1"], found["o-2"]) == ("ok.o-1", "ok.o-2")
    assert len(set(found.values())) == 3


def test_body_that_catches_the_wait_is_not_recorded(notebook: Notebook) -> None:
    body = "\ntry:\n    nbckpt.ask('ok?')\nexcept Exception: pass\nz = 1"
    assert isinstance(notebook.error(f"%%step a{body}"), WaitingForAnswer)
    assert not notebook.session.is_held


def test_wait_is_no_error_to_retry(notebook: Notebook) -> None:
    notebook.run("tries = []")
    source = "%%step a --retries 3 --backoff 0s\ntries.append(1)\nnbckpt.ask('ok?')"
    assert isinstance(notebook.error(source), WaitingForAnswer)
    assert notebook.names["tries"] == [1]


def test_passed_deadline_goes_on_waiting_and_says_so(
    notebook: Notebook, tmp_path: Path
) -> None:
    source = "%%step a\nx = nbckpt.ask('ok?', deadline=-1)"
    assert "deadline has passed" in str(notebook.error(source))
    assert "deadline has passed" in str(notebook.error(source))
    say(tmp_path, "late")
    notebook.run(source)
    assert notebook.names["x"] == "late"


@pytest.mark.parametrize(
    "deadline", ["'2h'", "7200", "datetime.now(UTC) + timedelta(hours=2)"]
)
def test_deadline_is_a_duration_or_a_moment(
    notebook: Notebook, tmp_path: Path, deadline: str
) -> None:
    notebook.names.update(datetime=datetime, UTC=UTC, timedelta=timedelta)
    notebook.error(f"nbckpt.ask('ok?', deadline={deadline})")
    (asked,) = questions(tmp_path)
    assert asked.deadline == pytest.approx(time.time() + 7200, abs=60)


@pytest.mark.parametrize("options", ["[]", "[None]", "[[1]]", "[b'x']"])
def test_what_cannot_be_an_option_is_refused(notebook: Notebook, options: str) -> None:
    assert isinstance(notebook.error(f"nbckpt.ask('ok?', {options})"), BadStep)
    assert not notebook.journal.questions(notebook.session.run_id)


def test_killed_between_question_and_answer_the_question_stands(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("nbckpt.people.questions._waiting", killed)
    notebook.error(STEP)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    notebook.restart()
    notebook.run("import nbckpt")
    assert isinstance(notebook.error(STEP), WaitingForAnswer)
    assert len(questions(tmp_path)) == 1


def test_no_buttons_are_shown_where_nobody_can_click(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[object] = []
    monkeypatch.setattr("nbckpt.panel.buttons.Buttons", lambda *a: offered.append(a))
    notebook.error(STEP)
    assert offered == []
    parent = {"content": {"allow_stdin": True}}
    monkeypatch.setattr(notebook.shell, "kernel", object(), raising=False)
    monkeypatch.setattr(notebook.shell, "get_parent", lambda: parent, raising=False)
    shown = SimpleNamespace(show=lambda: offered.append("shown"))
    monkeypatch.setattr("nbckpt.panel.buttons.Buttons", lambda *_: shown)
    notebook.error(STEP.replace("step a", "step b"))
    assert offered == ["shown"]
    assert current.asked == []


def test_store_elsewhere_is_named_in_the_command(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.run("%nbckpt start --store other")
    assert f"--store {tmp_path / 'other'}" in str(notebook.error(STEP))
    assert replace(Question("r", "i", "t"), step="").key == "question/r/-/i"
