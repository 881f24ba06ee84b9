"""What counts as open: steps, effects, questions, unknowns, as the records tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.runs.history import Reader
from nbckpt.verbs.standing.dossier import (
    damaged,
    is_open_question,
    is_open_unknown,
    is_unsettled,
    open_steps,
    read,
)

if TYPE_CHECKING:
    from nbckpt.verbs.standing.dossier import Dossier
    from tests.notebook import Notebook

RUN = "notebook-1"


def dossier(notebook: Notebook) -> Dossier:
    reader = Reader(notebook.session.store)
    return read(reader, reader.run(RUN))


@pytest.mark.parametrize(
    ("effect", "unsettled"),
    [
        ({"state": "intent"}, True),
        ({"state": "UNKNOWN"}, True),
        ({"state": "done"}, False),
        ({"state": "failed"}, False),
        ({}, False),
    ],
)
def test_intent_without_an_outcome_is_unsettled(
    effect: dict[str, Any], *, unsettled: bool
) -> None:
    assert is_unsettled(effect) is unsettled


def test_question_is_open_until_it_is_answered() -> None:
    assert is_open_question({"question": "?"})
    assert is_open_question({"question": "?", "answer": None, "answered_at": 0.0})
    assert not is_open_question({"answer": ""})
    assert not is_open_question({"answer": "no"})


def test_unknown_is_open_until_it_is_settled() -> None:
    assert is_open_unknown({"text": "?"})
    assert is_open_unknown({"text": "?", "settled_at": 0.0})
    assert not is_open_unknown({"text": "?", "settled_at": 2.0})


def test_value_that_is_no_json_is_no_damaged_record(notebook: Notebook) -> None:
    notebook.run("import nbckpt\ncut = nbckpt.decide('cut', (1, 2))")
    notebook.error("%%step a\nrows = nbckpt.map(lambda n: (1 / n,), [1, 0])")
    keys = notebook.session.store.keys("")
    assert {"decided", "result"} <= {key.partition("/")[0] for key in keys}
    assert damaged(Reader(notebook.session.store), RUN) == ""
    assert not {"decided", "result"} & dossier(notebook).others.keys()


def test_completed_steps_are_not_open(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    assert open_steps(dossier(notebook)) == []


def test_failed_step_is_open(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    notebook.error("%%step b\nraise ValueError")
    assert [step["name"] for step in open_steps(dossier(notebook))] == ["b"]


def test_step_that_can_never_be_skipped_is_done_all_the_same(
    notebook: Notebook,
) -> None:
    notebook.run("%%step a\nx = (n for n in range(3))")
    found = dossier(notebook)
    assert found.status["steps"][0]["state"] == "stale"
    assert open_steps(found) == []


def test_step_that_somebody_wants_again_is_open(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    notebook.run("%nbckpt rerun a")
    assert [step["name"] for step in open_steps(dossier(notebook))] == ["a"]


def test_records_of_any_kind_are_found_and_bulk_is_left_out(
    notebook: Notebook,
) -> None:
    notebook.run("%%step a\nx = 1")
    rows = {
        f"effect/{RUN}/a/e1": {"state": "done"},
        f"effect/{RUN}-2/a/e1": {"state": "done"},
        f"pings/{RUN}": {"failed": 2},
        f"done/{RUN}/a/1/00000001": {"item": 1},
        f"odd/{RUN}/a": ["no", "record"],
    }
    for key, row in rows.items():
        notebook.session.store.transact(lambda tx, k=key, r=row: tx.put(k, r))
    found = dossier(notebook)
    assert found.other("effect") == [{"name": "a/e1", "state": "done"}]
    assert found.other("pings") == [{"name": "", "failed": 2}]
    assert "done" not in found.others
    assert found.other("odd") == []
    assert found.other("never heard of") == []
    assert found.head.number == len(found.lines)
