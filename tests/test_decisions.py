"""Decisions, open points, notes and evidence told by the code of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import nbckpt
from nbckpt.errors import BadStep, CheckFailed, ValueRefused
from nbckpt.runs.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    notebook.run("import nbckpt")
    return notebook


def test_decision_is_made_once_in_a_run_and_keeps_its_reason(
    notebook: Notebook,
) -> None:
    notebook.run("calls = []")
    source = "%%step a\nx = nbckpt.decide('cut', lambda: calls.append(1) or 7, 'tail')"
    notebook.run(source)
    notebook.run("y = nbckpt.decide('cut', lambda: 1 / 0)")
    assert (notebook.names["x"], notebook.names["y"]) == (7, 7)
    (record,) = notebook.journal.decisions(notebook.session.run_id)
    assert (record.value, record.reason, record.step) == (7, "tail", "a")
    assert record.by
    assert record.at


def test_resumed_run_gets_the_decision_of_the_kernel_before(
    notebook: Notebook,
) -> None:
    notebook.run("x = nbckpt.decide('seed', lambda: [1, {'a': 2.5}])")
    notebook.restart()
    notebook.run("import nbckpt\nx = nbckpt.decide('seed', lambda: 1 / 0)")
    assert notebook.names["x"] == [1, {"a": 2.5}]


def test_decision_is_durable_before_it_is_returned(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[bool] = []
    write = Journal.write

    def watched(self: Journal, change: object, *, durable_: bool = True) -> object:
        durable.append(durable_)
        return write(self, change, durable=durable_)  # type: ignore[arg-type]

    notebook.run("1")
    notebook.session.hold()
    monkeypatch.setattr(
        Journal, "write", lambda s, c, *, durable=True: watched(s, c, durable_=durable)
    )
    notebook.run("nbckpt.decide('a', 1)")
    assert durable == [True]


def test_value_that_is_no_json_comes_back_as_it_was(notebook: Notebook) -> None:
    notebook.run(
        "import numpy as np\nclass P:\n    def __init__(self): self.n = 3\n"
        "x = nbckpt.decide('p', lambda: (P(), np.arange(3), {1: 2}))"
    )
    notebook.restart()
    notebook.run(
        "import nbckpt\nclass P:\n    def __init__(self): self.n = 3\n"
        "p, a, d = nbckpt.decide('p', lambda: 1 / 0)\na[0] = 5"
    )
    assert notebook.names["p"].n == 3
    assert notebook.names["a"].tolist() == [5, 1, 2]
    assert notebook.names["d"] == {1: 2}
    assert isinstance(notebook.names["p"], notebook.names["P"])


def test_value_that_cannot_be_kept_decides_nothing(notebook: Notebook) -> None:
    error = notebook.error("nbckpt.decide('gen', lambda: (n for n in [1]))")
    assert isinstance(error, ValueRefused)
    assert "decision gen" in str(error)
    assert notebook.journal.decisions(notebook.session.run_id) == []


def test_choice_that_fails_decides_nothing(notebook: Notebook) -> None:
    assert isinstance(
        notebook.error("nbckpt.decide('a', lambda: 1/0)"), ArithmeticError
    )
    notebook.run("x = nbckpt.decide('a', 2)")
    assert notebook.names["x"] == 2


def test_decision_name_is_checked(notebook: Notebook) -> None:
    assert isinstance(notebook.error("nbckpt.decide('a/b', 1)"), BadStep)


def test_credential_in_a_decision_is_not_stored_and_comes_back(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-9f8e7d")
    notebook.run(
        "import os\nx = nbckpt.decide('t', os.environ['MY_TOKEN'] + '!', 'for s3cr3t-9f8e7d')"
    )
    assert notebook.names["x"] == "s3cr3t-9f8e7d!"
    notebook.restart()
    notebook.run("import nbckpt\nx = nbckpt.decide('t', 0)")
    assert notebook.names["x"] == "s3cr3t-9f8e7d!"
    stored = [p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()]
    assert not any(b"s3cr3t-9f8e7d" in data for data in stored)


def test_unknown_is_one_point_however_often_it_is_told(notebook: Notebook) -> None:
    notebook.run("for _ in range(3): nbckpt.unknown('which zone?')")
    notebook.run("nbckpt.unknown('whose rows?')")
    points = notebook.journal.unknowns(notebook.session.run_id)
    assert [(p.number, p.text) for p in points] == [
        (1, "which zone?"),
        (2, "whose rows?"),
    ]


@pytest.mark.parametrize("call", ["note(5)", "note(' ')", "unknown(None)"])
def test_word_that_tells_nothing_is_refused(notebook: Notebook, call: str) -> None:
    error = notebook.error(f"nbckpt.{call}")
    assert isinstance(error, BadStep)
    assert "tells nothing" in str(error)


def test_notes_and_evidence_are_in_the_record_of_their_step(notebook: Notebook) -> None:
    notebook.run(
        "%%step a --note by hand\nnbckpt.note('looked')\nnbckpt.evidence('id', 'b-7')\n"
        "nbckpt.check('rows', True)\nx = 1"
    )
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    assert record.evidence.note == "by hand\nlooked"
    assert record.evidence.learned == {"id": "b-7"}
    assert record.evidence.confirmed == ("rows",)
    assert [n.step for n in notebook.journal.notes(notebook.session.run_id)] == ["a"]
    shown = str(notebook.run("%nbckpt show a") or "") + notebook.shown()
    assert "b-7" in shown
    assert "rows" in shown


def test_evidence_of_one_attempt_is_not_in_the_next(notebook: Notebook) -> None:
    notebook.error("%%step a\nnbckpt.evidence('id', 1)\nraise ValueError")
    notebook.run("%%step a\nx = 1")
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    assert record.evidence.learned == {}


def test_evidence_stands_as_it_was_when_it_was_given(notebook: Notebook) -> None:
    notebook.run(
        "%%step a\nfound = {'id': 1}\nnbckpt.evidence('reply', found)\n"
        "found['client'] = object()\ndel found"
    )
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    assert record.evidence.learned == {"reply": {"id": 1}}


@pytest.mark.parametrize(
    "value", ["(1, 2)", "{1: 2}", "float('nan')", "b'x'", "[{()}]"]
)
def test_evidence_that_is_no_json_is_refused(notebook: Notebook, value: str) -> None:
    error = notebook.error(f"%%step a\nnbckpt.evidence('id', {value})")
    assert isinstance(error, BadStep)
    assert "step a" in str(error)


@pytest.mark.parametrize("call", ["evidence('id', 1)", "check('ok', True)"])
def test_evidence_belongs_into_a_step(notebook: Notebook, call: str) -> None:
    assert isinstance(notebook.error(f"nbckpt.{call}"), BadStep)


def test_evidence_with_a_credential_is_refused(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-9f8e7d")
    error = notebook.error("%%step a\nnbckpt.evidence('id', ['s3cr3t-9f8e7d'])")
    assert isinstance(error, BadStep)
    assert "s3cr3t" not in str(error)


def test_check_that_is_not_true_leaves_no_record_even_if_caught(
    notebook: Notebook,
) -> None:
    assert isinstance(
        notebook.error("%%step a\nnbckpt.check('rows', [])\nx = 1"), CheckFailed
    )
    caught = (
        "%%step a\ntry:\n    nbckpt.check('rows', False)\nexcept Exception: pass\nx = 1"
    )
    assert isinstance(notebook.error(caught), CheckFailed)
    assert notebook.journal.step(notebook.session.run_id, "a") is None


def test_check_that_becomes_true_in_a_later_trial_counts(notebook: Notebook) -> None:
    notebook.run("n = 0")
    notebook.run(
        "%%step a --retries 2 --backoff 0s --ignore n\nn += 1\nnbckpt.check('third', n == 3)"
    )
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    assert record.evidence.confirmed == ("third",)


def test_calls_are_loaded_when_they_are_used_and_a_wrong_name_is_none() -> None:
    assert callable(nbckpt.evidence)
    assert set(nbckpt.HOMES) <= set(nbckpt.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = nbckpt.nothing
