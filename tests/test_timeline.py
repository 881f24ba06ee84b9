"""A timeline says who ran, who was skipped and who died, over all sessions of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.records import Event, Lease, PlannedStep, PlanRecord, RunRecord, StepState
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.runs.processes import this_process
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.forms.pages import Table, Tree, plain
from nbckpt.verbs.look.timeline import (
    SHOWN,
    timeline,
    timeline_page,
    timeline_picture,
    told,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.notebook import Notebook

FAILING = "%%step fit\nif not ready: raise ValueError('not ready')"


def event(at: float, kind: str, step: str = "", **more: Any) -> Event:
    return Event(at, kind, step, **more)


def a_timeline(*events: Event, state: str = "interrupted", seen: float = 0.0) -> Any:
    return told("etl-1", state, ["load", "fit"], events, seen)


def short(data: Any) -> list[tuple[int, str, str, float, float]]:
    return [
        (e["session"], e["step"], e["what"], e["begin"], e["end"])
        for e in data["entries"]
    ]


STARTED = event(10, "started", "load", reason="it has no record yet")
DONE = event(14, "completed", "load", reason="it has no record yet", seconds=3.5)


def test_step_that_ran_has_its_begin_its_end_and_the_time_of_its_body() -> None:
    (entry,) = a_timeline(STARTED, DONE)["entries"]
    assert entry == {
        "session": 1,
        "step": "load",
        "what": "completed",
        "begin": 10,
        "end": 14,
        "seconds": 3.5,
        "reason": "it has no record yet",
    }


def test_kernel_that_takes_the_run_begins_the_next_session() -> None:
    taken = event(20, "taken", reason="resume")
    skipped = event(21, "skipped", "load", reason="verified", seconds=3.5)
    data = a_timeline(STARTED, DONE, taken, skipped)
    assert data["sessions"] == 2
    assert short(data)[1] == (2, "load", "skipped", 21, 21)


def test_session_in_which_no_step_was_met_does_not_count() -> None:
    taken = [event(20 + n, "taken") for n in range(3)]
    data = a_timeline(taken[0], STARTED, DONE, *taken, event(30, "skipped", "load"))
    assert [entry["session"] for entry in data["entries"]] == [1, 2]


@pytest.mark.parametrize("kind", ["failed", "interrupted", "waiting", "cancelled"])
def test_step_that_did_not_complete_says_how_it_ended(kind: str) -> None:
    (entry,) = a_timeline(STARTED, event(12, kind, "load", reason="why"))["entries"]
    assert (entry["what"], entry["seconds"], entry["reason"]) == (kind, 2, "why")


def test_killed_step_ends_at_the_last_sign_of_life_of_its_process() -> None:
    taken = event(900, "taken", detail={"seen_at": 25.0})
    data = a_timeline(STARTED, taken, event(901, "started", "load"), seen=950.0)
    assert short(data) == [
        (1, "load", "died", 10, 25.0),
        (2, "load", "died", 901, 950.0),
    ]


def test_killed_step_of_which_no_sign_of_life_is_known_has_no_length() -> None:
    data = a_timeline(STARTED, event(900, "taken"), seen=1.0)
    assert short(data) == [(1, "load", "died", 10, 10)]
    assert "  -  " in plain(timeline_page(data))


def test_step_that_runs_goes_on_until_now() -> None:
    data = a_timeline(STARTED, state="running", seen=60.0)
    assert short(data) == [(1, "load", "running", 10, 60.0)]


def test_step_that_was_stopped_before_its_body_is_told() -> None:
    data = a_timeline(event(10, "stopped", "fit", reason="attempted before"))
    assert short(data) == [(1, "fit", "stopped", 10, 10)]


def test_lines_about_no_step_are_no_entries() -> None:
    others = [
        event(1, kind) for kind in ("plan", "surveyed", "skipped", "note", "asked")
    ]
    assert a_timeline(*others)["entries"] == []
    assert a_timeline(*others)["sessions"] == 0


def test_step_that_left_the_plan_is_told_after_the_others() -> None:
    data = a_timeline(event(1, "skipped", "gone"), STARTED, DONE)
    assert data["steps"] == ["load", "fit", "gone"]


def test_table_has_a_line_for_each_entry() -> None:
    failed = event(16, "failed", "fit", reason="ValueError: no\nand why")
    data = a_timeline(STARTED, DONE, event(15, "started", "fit"), failed)
    lines = plain(timeline_page(data)).splitlines()
    assert lines[0] == "run etl-1: interrupted, sessions: 1"
    assert lines[1].startswith("  session 1, ")
    assert [line.split()[1:3] for line in lines[3:]] == [
        ["load", "completed"],
        ["fit", "failed"],
    ]
    assert lines[-1].endswith("ValueError: no")


def test_each_session_has_a_table_in_which_another_day_is_told() -> None:
    late = event(200_000, "started", "fit"), event(200_001, "completed", "fit")
    data = a_timeline(STARTED, DONE, event(20, "taken"), *late)
    (tree,) = timeline_page(data)
    assert isinstance(tree, Tree)
    first, second = tree.branches
    assert isinstance(first, Tree)
    assert isinstance(second, Tree)
    assert second.text.startswith("session 2, 1970-01-03 ")
    (table,) = first.branches
    assert isinstance(table, Table)
    assert len(table.rows[0][0]) == len("00:00:10")
    data["entries"][1]["session"] = 1
    (tree,) = timeline_page(data)
    assert "  1970-01-03 " in plain([tree])


def test_timeline_of_a_run_without_steps_says_so() -> None:
    data = a_timeline()
    assert "no step was begun yet" in plain(timeline_page(data))
    assert "<svg" in timeline_picture(data).svg()


def test_picture_has_a_lane_for_each_step_and_tells_the_counts() -> None:
    skipped = event(21, "skipped", "load", reason="verified", seconds=3.5)
    picture = timeline_picture(a_timeline(STARTED, DONE, event(20, "taken"), skipped))
    svg = picture.svg()
    for text in (">load</text>", ">fit</text>", ">pending</text>"):
        assert text in svg
    assert "skipped, saved 3.5 s</text>" in svg
    assert picture.told == "1 completed, 1 skipped"


def test_picture_shows_the_last_sessions_and_says_so() -> None:
    events = [
        each
        for n in range(SHOWN + 3)
        for each in (event(n * 100, "taken"), event(n * 100 + 1, "skipped", "load"))
    ]
    picture = timeline_picture(a_timeline(*events))
    assert picture.told == f"{SHOWN} skipped"
    assert picture.title.endswith(f"the last {SHOWN} of {SHOWN + 3} sessions")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    store = Store(tmp_path / "store", load_secret())
    run = open_run(store, "etl", RunRecord("", ""))
    found = Journal(store, run.run_id, 1, lambda _: None)
    plan = PlanRecord((PlannedStep(1, "load", "c"), PlannedStep(2, "fit", "c")))
    found.write_plan(plan)
    yield found
    store.close()


def test_timeline_is_read_from_the_store(journal: Journal) -> None:
    lease = Lease(1, this_process(), beat_at=5e9)
    key = f"lease/{journal.run_id}"
    journal.store.transact(lambda tx: tx.put(key, lease.to_json()))
    journal.start("load", "first", writes=(), durable=False)
    journal.fail("load", StepState.FAILED, "ValueError: no")
    journal.start("fit", "first", writes=(), durable=False)
    reader = Reader(journal.store)
    run = reader.run(journal.run_id)

    data = timeline(reader, run, now=6e9)
    assert [entry["what"] for entry in data["entries"]] == ["failed", "running"]
    assert data["entries"][1]["end"] == 6e9
    assert json.loads(json.dumps(data)) == data

    gone = replace(lease, holder=replace(lease.holder, ticks=1))
    journal.store.transact(lambda tx: tx.put(key, gone.to_json()))
    data = timeline(reader, run, now=6e9)
    assert (data["entries"][1]["what"], data["entries"][1]["end"]) == ("died", 5e9)


def test_resumed_notebook_has_two_sessions(notebook: Notebook) -> None:
    cells = ["ready = False", "%%step load\nrows = [1]", FAILING]
    for source in cells:
        notebook.run(source, fine=False)
    notebook.restart()
    for source in ["ready = True", *cells[1:]]:
        notebook.run(source)
    reader = Reader(notebook.session.store)
    data = timeline(reader, reader.run(notebook.session.run_id))
    assert [(session, step, what) for session, step, what, *_ in short(data)] == [
        (1, "load", "completed"),
        (1, "fit", "failed"),
        (2, "load", "skipped"),
        (2, "fit", "completed"),
    ]
    taken = [e for _, e in reader.history(notebook.session.run_id) if e.kind == "taken"]
    assert 0 < taken[0].detail["seen_at"] <= taken[0].at
