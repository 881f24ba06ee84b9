"""The verbs by which a person speaks: on the command line, in a notebook, in status."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli
from nbckpt.errors import AlreadySettled, BadStep, NotFound
from nbckpt.headless.progress import describe
from nbckpt.people import settling
from nbckpt.records import (
    DecisionRecord,
    Event,
    PlannedStep,
    PlanRecord,
    Question,
    RunRecord,
    StepState,
)
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.forms.pages import plain
from nbckpt.verbs.look.overview import runs_page, status_page
from nbckpt.verbs.settle import words
from nbckpt.verbs.settle.resolving import read_value
from nbckpt.verbs.standing import waiting
from nbckpt.verbs.standing.status import runs, status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.notebook import Notebook

ASKED = Question("etl-1", "go", "Go on?", "load", "", ("yes", "no"), 100.0, 200.0)


class Desk:
    """A store with one run that waits, and a person who speaks."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder / ".nbckpt", load_secret())
        self.run = open_run(self.store, "etl", RunRecord("", "etl.ipynb"))
        self.journal = Journal(self.store, "etl-1", 1, lambda _: None)
        plan = PlanRecord((PlannedStep(1, "load", "code"),), "notebook")
        self.journal.write_plan(plan)
        self.journal.start("load", "new", writes=(), durable=False)
        self.journal.write(settling.question(ASKED))
        self.journal.fail("load", StepState.WAITING, "question go: Go on?. Answer: x")

    @property
    def reader(self) -> Reader:
        return Reader(self.store)

    def lines(self, kind: str) -> list[Event]:
        return [line for _, line in self.reader.history("etl-1") if line.kind == kind]

    def page(self, now: float = 150.0) -> str:
        return plain(status_page(status(self.reader, self.run, now)))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    found = Desk(tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    notebook.run("import nbckpt")
    return notebook


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of the command line."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_answer_tells_how_to_go_on_and_is_in_the_history(desk: Desk) -> None:
    said = words.answer(desk.store, desk.run, "go", "yes")
    assert "is answered: yes" in said
    assert said.endswith("nbckpt run etl.ipynb --run-id etl-1")
    (line,) = desk.lines("answered")
    assert line.step == "load"
    assert line.detail == {"id": "go", "answer": "yes", "by": "ada", "late": True}


def test_run_without_a_notebook_is_gone_on_with_by_hand() -> None:
    nameless = RunRecord("etl-1")
    assert waiting.resume_command(nameless) == "run the notebook top to bottom"


def test_way_on_is_one_line_for_a_shell() -> None:
    spaced = RunRecord("etl-1", "my jobs/etl.ipynb")
    words = ["nbckpt", "run", "my jobs/etl.ipynb", "--run-id", "etl-1"]
    assert shlex.split(waiting.resume_command(spaced)) == words


def test_decision_from_outside_has_no_step_and_takes_json_or_text(desk: Desk) -> None:
    given = {"a": "120", "b": "[1, 2]", "c": "as text", "d": '"120"', "e": "null"}
    for name, word in given.items():
        words.decide(desk.store, desk.run, name, word, "")
    found = {d.name: d.value for d in desk.reader.decisions("etl-1")}
    assert found == {"a": 120, "b": [1, 2], "c": "as text", "d": "120", "e": None}
    assert {d.step for d in desk.reader.decisions("etl-1")} == {""}
    assert {d.by for d in desk.reader.decisions("etl-1")} == {"ada"}


def test_decision_that_stands_tells_who_why_and_how_to_decide_anew(desk: Desk) -> None:
    words.decide(desk.store, desk.run, "cut", "1", "as in May")
    with pytest.raises(AlreadySettled, match="1 by ada, because as in May") as first:
        words.decide(desk.store, desk.run, "cut", "2", "")
    assert "--fresh" in first.value.remedy
    made = DecisionRecord("etl-1", "zone", encoded=True, step="load", by="bob")
    desk.store.transact(settling.decision(made, b"x"))
    with pytest.raises(AlreadySettled, match="a value that is no text") as second:
        words.decide(desk.store, desk.run, "zone", "2", "")
    assert "fork etl-1 --from load" in second.value.remedy


def test_decision_with_a_bad_name_is_refused(desk: Desk) -> None:
    with pytest.raises(BadStep, match="no name for a decision"):
        words.decide(desk.store, desk.run, "a/b", "1", "")


def test_point_is_opened_listed_settled_and_gone(desk: Desk) -> None:
    assert "--settle 1 --why TEXT" in words.unknown(desk.store, desk.run, "which zone?")
    assert "unknown   1: which zone? (ada)" in desk.page()
    assert "UTC" in words.settle(desk.store, desk.run, 1, "UTC")
    assert "which zone?" not in desk.page()
    (line,) = desk.lines("settled")
    assert (line.reason, line.detail) == ("UTC", {"number": 1, "by": "ada"})


def test_point_is_not_settled_without_a_reason(desk: Desk) -> None:
    words.unknown(desk.store, desk.run, "which zone?")
    with pytest.raises(BadStep, match="--why TEXT"):
        words.settle(desk.store, desk.run, 1, "")


def test_note_from_outside_is_kept_once(desk: Desk) -> None:
    for _ in range(2):
        assert "by hand" in words.note(desk.store, desk.run, "by hand")
    assert [n.text for n in desk.reader.notes("etl-1")] == ["by hand"]


def test_credentials_are_in_no_word(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-9f8e7d")
    words.note(desk.store, desk.run, "with s3cr3t-9f8e7d")
    words.unknown(desk.store, desk.run, "is s3cr3t-9f8e7d old?")
    words.decide(desk.store, desk.run, "k", "1", "for s3cr3t-9f8e7d")
    told = [desk.reader.notes("etl-1")[0].text, desk.reader.unknowns("etl-1")[0].text]
    told.append(desk.reader.decisions("etl-1")[0].reason)
    assert told == ["with $MY_TOKEN", "is $MY_TOKEN old?", "for $MY_TOKEN"]


def test_status_shows_what_waits_and_the_exact_commands(desk: Desk) -> None:
    page = desk.page()
    assert "run etl-1: waiting for a human" in page
    assert "question  go, load: Go on?" in page
    assert "  to answer: nbckpt answer etl-1 go no" in page
    assert "deadline" not in page
    assert "Answer: x" not in page
    assert "its deadline has passed without an answer" in desk.page(now=201.0)


def test_status_as_json_has_questions_and_points_of_a_stable_shape(desk: Desk) -> None:
    words.unknown(desk.store, desk.run, "which zone?")
    told = json.loads(json.dumps(status(desk.reader, desk.run, 201.0)))
    assert told["state"] == "waiting"
    assert told["questions"] == [
        {
            "id": "go",
            "step": "load",
            "item": "",
            "text": "Go on?",
            "options": ["yes", "no"],
            "asked_at": 100.0,
            "deadline": 200.0,
            "late": True,
            "commands": [
                "nbckpt answer etl-1 go yes",
                "nbckpt answer etl-1 go no",
            ],
        }
    ]
    (point,) = told["unknowns"]
    assert set(point) == {"number", "text", "step", "by", "at", "command"}


def test_list_of_runs_tells_which_waits(desk: Desk) -> None:
    assert "waiting for a human" in plain(runs_page(runs(desk.reader, 150.0)))


def test_progress_tells_that_a_step_waits() -> None:
    event = Event(1.0, "waiting", "load", "WaitingForAnswer: question go. Do so\nmore")
    assert describe(event) == "waits for a human (WaitingForAnswer: question go)"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("answer etl-1 go yes", 0, "is answered: yes"),
        ("answer etl.ipynb go no", 0, "is answered: no"),
        ("answer etl-1 go maybe", 2, "Choose one of: yes, no"),
        ("answer etl-1 stop yes", 2, "Open: go"),
        ("answer etl-9 go yes", 2, "there is no run 'etl-9'"),
        ("decide etl-1 cut 120 --reason tail", 0, "120 by ada, because tail"),
        ("unknown etl-1 zone", 0, "open point 1"),
        ("unknown etl-1", 2, "--settle N --why TEXT"),
        ("unknown etl-1 zone --settle 1", 2, "--settle N --why TEXT"),
        ("unknown etl-1 --settle 7 --why x", 2, "no open point 7"),
        ("note etl-1 seen", 0, "noted in run etl-1: seen"),
    ],
)
def test_command_says_what_it_did_or_what_is_wrong(
    desk: Desk, capsys: pytest.CaptureFixture[str], line: str, code: int, said: str
) -> None:
    assert desk.run.run_id == "etl-1"
    found, out, err = call(capsys, *line.split())
    assert found == code, err
    assert said in (out if code == 0 else err)


def test_second_answer_exits_with_1_and_names_the_first(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(capsys, "answer", "etl-1", "go", "yes")[0] == 0
    monkeypatch.setattr("getpass.getuser", lambda: "bob")
    code, out, err = call(capsys, "answer", "etl-1", "go", "no")
    assert (code, out) == (1, "")
    assert "was answered 'yes' by ada" in err
    assert desk.reader.questions("etl-1")[0].answered_by == "ada"


def test_answer_in_advance_by_command_is_found_when_the_step_asks(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["answer", "etl-1", "send", "yes", "--step", "mail"]
    for _ in range(2):
        assert call(capsys, *line) == (
            0,
            "answer to question send of step mail: yes\n",
            "",
        )
    asked = replace(ASKED, id="send", step="mail")
    found = desk.journal.write(settling.question(asked))
    assert (found.answer, found.answered_by) == ("yes", "ada")
    assert call(capsys, *line)[0] == 0
    assert len(desk.lines("given")) == len(desk.lines("answered")) == 1


def test_second_answer_in_advance_exits_with_1_and_names_the_first(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call(capsys, *["answer", "etl-1", "send", "yes", "--step", "mail"])[0] == 0
    monkeypatch.setattr("getpass.getuser", lambda: "bob")
    code, out, err = call(capsys, *["answer", "etl-1", "send", "no", "--step", "mail"])
    assert (code, out) == (1, "")
    assert "was answered in advance: 'yes' by ada" in err
    assert desk.run.run_id == "etl-1"


def test_step_of_an_open_question_may_be_named_too(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = call(capsys, *["answer", "etl-1", "go", "maybe", "--step", "load"])
    assert (code, "Choose one of: yes, no" in err) == (2, True)
    assert call(capsys, *["answer", "etl-1", "go", "yes", "--step", "load"])[0] == 0
    assert desk.reader.questions("etl-1")[0].answer == "yes"
    code, _, err = call(capsys, *["answer", "etl-1", "go", "no", "--step", "load"])
    assert (code, "was answered 'yes' by ada" in err) == (1, True)


def test_name_that_is_none_is_refused_in_advance(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in ("answer etl-1 go yes --step a/b", "answer etl-1 g/o yes --step a"):
        assert call(capsys, *line.split())[0] == 2
    assert desk.lines("given") == []


@pytest.mark.parametrize("word", ["NaN", "-Infinity", "1e999"])
def test_decision_that_is_no_json_is_a_text(desk: Desk, word: str) -> None:
    words.decide(desk.store, desk.run, "cut", word, "")
    (found,) = desk.reader.decisions("etl-1")
    assert (found.value, read_value(word)) == (word, word)


def test_words_in_a_notebook_are_about_its_run(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    notebook.run("%nbckpt unknown which zone\n%nbckpt note looked by hand")
    notebook.run('%nbckpt decide cut 120 --reason "as in May"')
    notebook.run('%nbckpt unknown --settle 1 --why "it is UTC"')
    run_id, journal = notebook.session.run_id, notebook.journal
    assert [n.text for n in journal.notes(run_id)] == ["looked by hand"]
    assert [p.why for p in journal.unknowns(run_id)] == ["it is UTC"]
    assert [d.value for d in journal.decisions(run_id)] == [120]
    assert "decision cut of run notebook-1: 120" in notebook.shown()


def test_answer_in_a_notebook_may_be_of_several_words(notebook: Notebook) -> None:
    notebook.error("nbckpt.ask('who?', name='who')")
    notebook.run("%nbckpt answer who Ada of London")
    notebook.run("x = nbckpt.ask('who?', name='who')")
    assert notebook.names["x"] == "Ada of London"


@pytest.mark.parametrize(
    "line",
    [
        "answer", "answer go", "decide cut", "unknown", "unknown x --settle 1", "note",
        "unknown --settle one",
    ],
)  # fmt: skip
def test_wrong_line_in_a_notebook_shows_a_right_one(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    notebook.run("%%step a\nx = 1")
    result = notebook.run(f"%nbckpt {line}", fine=False)
    error: Any = result.error_in_exec
    assert isinstance(error, BadStep)
    assert f"%nbckpt {line.split(maxsplit=1)[0]}" in error.remedy
    assert capsys.readouterr().err == ""


def test_word_about_a_run_that_is_not_there_is_refused(desk: Desk) -> None:
    with pytest.raises(NotFound, match="there is no run 'etl-2'"):
        words.note(desk.store, RunRecord("etl-2"), "x")
    assert desk.reader.notes("etl-2") == []


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(8))
def test_crash_at_any_write_neither_loses_nor_doubles_a_question(
    notebook: Notebook,
    monkeypatch: pytest.MonkeyPatch,
    point: int,
    *,
    after: bool,
) -> None:
    """The wait is a checkpoint: before and after each transaction of a pass."""
    real, count = Store.transact, 0

    def transact(self: Store, change: Any, *, durable: bool = True) -> Any:
        nonlocal count
        if durable:
            count += 1
        if durable and count == point + 1 and not after:
            raise Crash
        found = real(self, change, durable=durable)
        if durable and count == point + 1 and after:
            raise Crash
        return found

    source = "%%step a\nx = nbckpt.ask('ok?', ['yes', 'no'], name='ok')"
    monkeypatch.setattr(Store, "transact", transact)
    with suppress(Crash):
        notebook.run(source, fine=False)
    monkeypatch.setattr(Store, "transact", real)
    # The process that crashed would be dead; this one stands for its successor.
    monkeypatch.setattr("nbckpt.runs.leases.is_alive", lambda _holder: False)
    notebook.restart()
    notebook.run("import nbckpt")
    notebook.error(source)
    notebook.run("%nbckpt answer ok no")
    notebook.run(source)
    run_id = notebook.session.run_id
    assert notebook.names["x"] == "no"
    assert [q.answer for q in notebook.journal.questions(run_id)] == ["no"]
    kinds = [line.kind for _, line in notebook.journal.history(run_id)]
    assert (kinds.count("asked"), kinds.count("answered")) == (1, 1)
