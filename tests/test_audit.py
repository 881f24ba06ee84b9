"""An audit has one shape, whatever a run holds, and every part comes from a record."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import __version__
from nbckpt.records import (
    Contents,
    DecisionRecord,
    Event,
    Evidence,
    Fingerprint,
    ItemError,
    LoopRecord,
    NextInput,
    PlannedStep,
    PlanRecord,
    Question,
    RunRecord,
    StepRecord,
    StepState,
    Unknown,
)
from nbckpt.runs import lines
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.store.packs import Pack
from nbckpt.trust import load_secret
from nbckpt.verbs.forms import documents, drawing
from nbckpt.verbs.forms.pages import Table, moment
from nbckpt.verbs.look import audited
from nbckpt.verbs.look.audit import audit, key_of
from nbckpt.verbs.look.handover import handover, handover_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "etl-1"
EFFECTS: dict[str, dict[str, Any]] = {
    "load/a": {"state": "done", "key": "k-a", "answer": {"who": "joan", "at": 7.0}},
    "load/b": {"state": "failed", "idempotency_key": "k-b"},
    "pay/c": {"state": "unknown", "key": "k-c"},
    "pay/d": {"state": "intent"},
}
LOOP = LoopRecord(
    run_id=RUN,
    step="pay",
    loop="1",
    lineage="l",
    code="c",
    attempt=1,
    total=9,
    done=3,
    failed=1,
    errors=(ItemError("o-2", "ValueError: no", 1),),
    next_input=NextInput("o-5", "Order 5"),
)
PLAN = PlanRecord(
    (
        PlannedStep(1, "load", "code", ("x > 0",), ("in.csv",), ("out.csv",)),
        PlannedStep(2, "pay", "code", effects=("bank",)),
        PlannedStep(3, "tell", "code"),
    ),
    "notebook",
)


def completed(journal: Journal, step: str) -> None:
    """Record a step as completed, with evidence of each kind."""
    attempt = journal.start(step, "it has no record yet", writes=(), durable=False)
    record = StepRecord(
        RUN,
        step,
        attempt.attempt,
        1,
        attempt.order,
        Fingerprint("code", versions={"python": "3.11", "pandas": "2.2"}),
        Evidence({"out.csv": "d" * 32, "gone.csv": ""}, ("x > 0",), "read it all"),
        Contents(),
        100.0,
        102.5,
        2.5,
    )
    journal.complete(record, Pack("none", None), "it has no record yet")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Return the reader of a run that died while it paid."""
    store = Store(tmp_path / "store", load_secret())
    open_run(store, "etl", RunRecord(RUN, "/jobs/etl.ipynb", "3"))
    journal = Journal(store, RUN, 1, lambda _: None)
    journal.write_plan(PLAN)
    completed(journal, "load")
    journal.skip("load", "verified", 2.5)
    journal.skip("load", "verified", 2.5)
    journal.start("pay", "first", writes=(), durable=True)
    journal.fail("pay", StepState.FAILED, "ValueError: no money")
    journal.start("pay", "asked for", writes=(), durable=True)

    def change(transaction: Any) -> None:
        for name, effect in EFFECTS.items():
            transaction.put(f"effect/{RUN}/{name}", effect)
        transaction.put(f"loop/{RUN}/pay/1", LOOP.to_json())
        colour = DecisionRecord(RUN, "colour", "red", reason="as in May", by="ada")
        transaction.put(f"decision/{RUN}/colour", colour.to_json())
        for point in (Unknown(1, "is 9E EV?"), Unknown(2, "old?", settled=True)):
            key = f"unknown/{RUN}/{point.number:06d}"
            transaction.put(key, point.to_json())
        asked = Question(RUN, "q-1", "Delete them?", "pay")
        told = Question(
            RUN, "q-2", "And now?", "pay",
            answered=True, answer="no", answered_by="grace", answered_at=5.0,
        )  # fmt: skip
        for question in (asked, told):
            transaction.put(question.key, question.to_json())
        transaction.put(f"note/{RUN}/000001", {"text": "outliers are real"})
        transaction.put(f"pings/{RUN}", {"sent": 7, "failed": 2})
        for kind, reason in (
            ("taken", "replace"),
            ("refused", "held by process 7"),
            ("stopped", "attempted before"),
        ):
            lines.add_line(transaction, RUN, Event(9.0, kind, "pay", reason))

    store.transact(change)
    yield Reader(store)
    store.close()


@pytest.fixture
def data(reader: Reader) -> Any:
    """Return its audit."""
    return audit(reader, reader.run(RUN), verify=True)


def test_audit_has_the_parts_that_a_program_reads(data: Any) -> None:
    assert list(data) == [
        "run",
        "notebook",
        "state",
        "created_at",
        "audited_at",
        "versions",
        "steps",
        "keys",
        "records",
        "events",
        "history",
        "chain",
    ]
    assert json.loads(json.dumps(data)) == data


def test_audit_names_run_notebook_state_and_versions(data: Any) -> None:
    assert (data["run"], data["notebook"]) == (RUN, "/jobs/etl.ipynb")
    assert data["state"] == "waiting" or data["state"] == "interrupted"
    assert data["versions"] == {
        "workflow": "3",
        "nbckpt at first": __version__,
        "python at first": platform.python_version(),
        "nbckpt": __version__,
        "python": platform.python_version(),
    }


def test_audit_of_a_completed_step_holds_all_of_its_evidence(data: Any) -> None:
    load = data["steps"][0]
    assert load["started_at"] > 0
    assert load | {"started_at": 0} == {
        "number": 1,
        "name": "load",
        "outcome": "completed",
        "attempts": 1,
        "seconds": 2.5,
        "started_at": 0,
        "completed_at": 102.5,
        "reason": "it has no record yet",
        "error": "",
        "files": {"out.csv": "d" * 32, "gone.csv": ""},
        "checks": ["x > 0"],
        "note": "read it all",
        "effects": [],
        "versions": {"python": "3.11", "pandas": "2.2"},
        "skipped": 2,
    }


def test_audit_of_a_step_that_died_says_so(data: Any) -> None:
    pay = data["steps"][1]
    assert pay["outcome"] == "interrupted"
    assert pay["attempts"] == 2
    assert pay["reason"] == "asked for"
    assert pay["effects"] == ["bank"]
    assert pay["files"] == {}


def test_audit_of_a_step_that_never_began_is_pending(data: Any) -> None:
    tell = data["steps"][2]
    assert (tell["outcome"], tell["attempts"], tell["reason"]) == ("pending", 0, "")


def test_audit_lists_every_key_whatever_came_of_it(data: Any) -> None:
    assert data["keys"] == ["k-a", "k-b", "k-c"]


@pytest.mark.parametrize(
    ("effect", "key"),
    [
        ({"key": "a"}, "a"),
        ({"idempotency_key": "b"}, "b"),
        ({"key": "", "idempotency_key": "b"}, "b"),
        ({}, ""),
    ],
)
def test_key_of_an_effect_is_found(effect: dict[str, Any], key: str) -> None:
    assert key_of(effect) == key


def test_audit_holds_the_records_of_every_kind(data: Any) -> None:
    counted = {kind: len(found) for kind, found in data["records"].items()}
    assert counted == {
        "decision": 1,
        "effect": 4,
        "loop": 1,
        "note": 1,
        "pings": 1,
        "question": 2,
        "unknown": 2,
    }


def test_events_are_all_lines_but_the_course_of_steps(data: Any) -> None:
    assert [(e["kind"], e["reason"]) for e in data["events"]] == [
        ("taken", "replace"),
        ("refused", "held by process 7"),
        ("stopped", "attempted before"),
    ]
    kinds = [line["kind"] for line in data["history"]]
    assert kinds == [
        "plan",
        "started",
        "completed",
        "skipped",
        "skipped",
        "started",
        "failed",
        "started",
        "taken",
        "refused",
        "stopped",
    ]


def test_chain_tells_its_head_and_whether_it_was_read(reader: Reader) -> None:
    run = reader.run(RUN)
    unread = audit(reader, run)["chain"]
    assert unread["verified"] is False
    read = audit(reader, run, verify=True)["chain"]
    assert read == {
        "lines": 11,
        "head": lines.head(reader.store, RUN).chain,
        "verified": True,
        "broken": "",
    }


@pytest.mark.parametrize("form", [documents.text, documents.markdown, documents.page])
@pytest.mark.parametrize(
    "word",
    [
        "etl-1",
        "/jobs/etl.ipynb",
        "workflow 3",
        "out.csv",
        "absent",
        "read it all",
        "x ", # of the check; Markdown and HTML escape what follows
        "k-a",
        "k-b",
        "k-c",
        "o-5",
        "ValueError: no",
        "as in May",
        "ada",
        "is 9E EV?",
        "Delete them?",
        "grace",
        "outliers are real",
        "failed: 2",
        "held by process 7",
        "attempted before",
        "11 lines, whole",
    ],
)  # fmt: skip
def test_each_form_shows_what_an_auditor_asks_for(
    data: Any, form: Any, word: str
) -> None:
    assert word in form(audited.title_of(data), audited.sections(data))


def test_what_is_told_of_the_run_stands_in_two_columns(data: Any) -> None:
    found = audited.sections(data)
    assert "<td>notebook</td><td>/jobs/etl.ipynb</td>" in documents.page("t", found)
    assert "\nnotebook  /jobs/etl.ipynb\n" in documents.text("t", found)


def test_steps_fit_a_terminal_of_80_columns_and_errors_stand_below(data: Any) -> None:
    for step in data["steps"]:
        step.update(name="pay-customers", outcome="interrupted", effects=[])
        step.update(
            attempts=2, seconds=119.5, completed_at=7.0, error="no card: C. Ask"
        )
    table, *errors = audited.sections(data)[1].parts
    assert isinstance(table, Table)
    widths = [
        max(map(len, cells)) for cells in zip(table.head, *table.rows, strict=True)
    ]
    assert sum(widths) + drawing.GAP * (len(widths) - 1) + 2 <= 80
    assert errors == ["pay-customers: no card: C. Ask"] * 3


def test_effects_that_a_plan_names_are_a_column_of_the_steps(data: Any) -> None:
    table = audited.sections(data)[1].parts[0]
    assert isinstance(table, Table)
    assert [row[table.head.index("effects")] for row in table.rows] == [
        "-",
        "bank",
        "-",
    ]


def test_answer_inside_a_record_says_when_for_people(data: Any) -> None:
    shown = audited.records_table(data["records"]["effect"])
    assert f'"at": "{moment(7.0)}"' in shown.rows[0][2]


def test_long_texts_are_cut_in_tables_and_whole_in_json(reader: Reader) -> None:
    long = {"value": "v" * 5000}
    reader.store.transact(lambda tx: tx.put(f"decision/{RUN}/long", long))
    data = audit(reader, reader.run(RUN))
    shown = documents.text("t", audited.sections(data))
    assert "v" * 200 + "…" in shown
    assert "v" * 201 not in shown
    assert "v" * 5000 in json.dumps(data)


def test_run_without_a_step_has_an_audit_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path / "s", load_secret())
    open_run(store, "new", RunRecord("new-1"))
    reader = Reader(store)
    data = audit(reader, reader.run("new-1"), verify=True)
    assert (data["steps"], data["keys"], data["chain"]["broken"]) == ([], [], "")
    assert "new-1" in documents.page("t", audited.sections(data))
    store.close()


def test_handover_has_the_parts_that_a_program_reads(reader: Reader) -> None:
    data = handover(reader, reader.run(RUN))
    assert list(data) == [
        "run",
        "notebook",
        "version",
        "state",
        "holder",
        "to_answer",
        "to_settle",
        "command",
        "next_step",
        "in_flight",
        "steps",
        "loops",
        "decisions",
        "unknowns",
        "questions",
        "unsettled",
        "never_twice",
        "notes",
        "files",
        "worktree",
    ]
    assert json.loads(json.dumps(data)) == data


def test_handover_tells_what_is_open_and_what_is_next(reader: Reader) -> None:
    data = handover(reader, reader.run(RUN))
    assert data["next_step"] == "pay"
    assert data["command"] == "nbckpt run /jobs/etl.ipynb --run-id etl-1"
    assert [u["text"] for u in data["unknowns"]] == ["is 9E EV?"]
    assert [q["id"] for q in data["questions"]] == ["q-1"]
    assert [e["name"] for e in data["unsettled"]] == ["pay/c", "pay/d"]
    assert data["notes"] == ["outliers are real"]
    (flight,) = data["in_flight"]
    assert (flight["step"], flight["state"]) == ("pay", "interrupted")
    assert flight["next_input"] == {"item": "o-5", "text": "Order 5"}


def test_handover_lists_what_may_have_happened_as_never_to_be_done_twice(
    reader: Reader,
) -> None:
    data = handover(reader, reader.run(RUN))
    assert data["never_twice"] == [
        {"effect": "load/a", "state": "done", "key": "k-a"},
        {"effect": "pay/c", "state": "unknown", "key": "k-c"},
        {"effect": "pay/d", "state": "intent", "key": ""},
    ]


def test_handover_shows_the_plan_with_checks_and_evidence(reader: Reader) -> None:
    load, pay, tell = handover(reader, reader.run(RUN))["steps"]
    assert load == {
        "number": 1,
        "name": "load",
        "state": "completed",
        "attempts": 1,
        "error": "",
        "checks": ["x > 0"],
        "reads": ["in.csv"],
        "writes": ["out.csv"],
        "effects": [],
        "files": {"out.csv": "d" * 32, "gone.csv": ""},
    }
    assert (pay["state"], pay["effects"]) == ("interrupted", ["bank"])
    assert (tell["state"], tell["attempts"]) == ("pending", 0)


@pytest.mark.parametrize(
    "word",
    [
        "1 of 3 steps done",
        "Next step: pay",
        "nbckpt run /jobs/etl.ipynb --run-id etl-1",
        "Answer first",
        "Settle first",
        "Order 5",
        "Delete them?",
        "is 9E EV?",
        "outliers are real",
        "as in May",
        "k-c",
        "Keep the run's id",
        "version: 3",
    ],
)
def test_handover_page_says_what_another_person_needs(
    reader: Reader, word: str
) -> None:
    assert word in handover_text(handover(reader, reader.run(RUN)))


def test_handover_leaves_out_what_is_settled(reader: Reader) -> None:
    page = handover_text(handover(reader, reader.run(RUN)))
    assert "old?" not in page
    assert "And now?" not in page
