"""Which run a notebook is in, told from the records alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nbckpt.errors import StopForHuman
from nbckpt.records import (
    SCHEMA_VERSION,
    PlannedStep,
    PlanRecord,
    RunRecord,
    RunState,
)
from nbckpt.runs import opening as runs
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WANTED = RunRecord("", "etl.ipynb", "3")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / "s", load_secret())
    yield found
    found.close()


def lines_of(store: Store, run_id: str) -> list[tuple[str, str]]:
    return [(line.kind, line.reason) for _, line in Reader(store).history(run_id)]


def put(store: Store, run: RunRecord) -> None:
    store.transact(lambda tx: tx.put(f"run/{run.run_id}", run.to_json()))


def put_plan(store: Store, run_id: str, *names: str) -> None:
    steps = tuple(PlannedStep(n, name, "") for n, name in enumerate(names, 1))
    plan = PlanRecord(steps).to_json()
    store.transact(lambda tx: tx.put(f"plan/{run_id}", plan))


def test_notebook_stays_in_its_run_until_a_new_one_is_asked_for(store: Store) -> None:
    first = runs.open_run(store, "etl", WANTED)
    assert (first.run_id, first.version, first.why) == ("etl-1", "3", "")
    assert set(first.made_with) == {"nbckpt", "python"}
    assert runs.open_run(store, "etl", WANTED) == first
    assert runs.open_run(store, "etl", WANTED, fresh=True).run_id == "etl-2"
    assert runs.open_run(store, "etl", WANTED).run_id == "etl-2"


def test_run_that_is_named_is_begun_under_its_name_and_is_the_current_one(
    store: Store,
) -> None:
    runs.open_run(store, "etl", WANTED)
    named = runs.open_run(store, "etl", replace(WANTED, run_id="night-7"))
    assert named.run_id == "night-7"
    assert Reader(store).current("etl") == "night-7"
    assert runs.open_run(store, "etl", WANTED) == named


def test_run_id_that_was_used_under_another_name_is_not_given_again(
    store: Store,
) -> None:
    put(store, RunRecord("etl-1", "other.ipynb"))
    assert runs.open_run(store, "etl", WANTED).run_id == "etl-2"


def test_run_of_an_older_schema_is_frozen_and_another_begun(store: Store) -> None:
    first = runs.open_run(store, "etl", WANTED)
    put(store, replace(first, schema_version=SCHEMA_VERSION - 1))
    new = runs.open_run(store, "etl", WANTED)
    assert new.run_id == "etl-2"
    assert "run etl-1 has an older schema" in new.why
    assert Reader(store).run("etl-1").state is RunState.FROZEN


def test_archived_run_is_refused_by_name_and_left_behind_without_one(
    store: Store,
) -> None:
    first = runs.open_run(store, "etl", WANTED)
    put(store, replace(first, state=RunState.FINISHED))
    with pytest.raises(StopForHuman, match="archived"):
        runs.open_run(store, "etl", replace(WANTED, run_id="etl-1"))
    new = runs.open_run(store, "etl", WANTED)
    assert "archived" in new.why
    assert lines_of(store, new.run_id) == [("fresh", new.why)]


@pytest.mark.parametrize("name", ["", "etl-1"])
def test_cancelled_run_is_refused_with_the_ways_on(store: Store, name: str) -> None:
    first = runs.open_run(store, "etl", WANTED)
    put(store, replace(first, state=RunState.CANCELLED, why="cancelled by ada"))
    with pytest.raises(StopForHuman, match="cancelled by ada") as caught:
        runs.open_run(store, "etl", replace(WANTED, run_id=name))
    assert "--fresh" in caught.value.remedy
    assert "nbckpt fork etl-1 --from STEP" in caught.value.remedy
    assert [run.run_id for run in Reader(store).runs()] == ["etl-1"]


def test_cancelled_run_does_not_keep_a_new_one_from_beginning(store: Store) -> None:
    first = runs.open_run(store, "etl", WANTED)
    put(store, replace(first, state=RunState.CANCELLED))
    assert runs.open_run(store, "etl", WANTED, fresh=True).run_id == "etl-2"


@pytest.mark.parametrize(
    ("begun", "now", "refused"),
    [
        ("1", "1", False),
        ("1", "", False),
        ("", "", False),
        ("1", "2", True),
        ("", "2", True),
    ],
)
def test_version_is_compared_only_when_the_notebook_tells_one(
    store: Store, begun: str, now: str, refused: bool
) -> None:
    run = RunRecord("r-1", version=begun)
    if not refused:
        runs.check_version(store, run, now)
        assert lines_of(store, "r-1") == []
        return
    with pytest.raises(StopForHuman, match=f"this notebook is version {now}"):
        runs.check_version(store, run, now)
    ((kind, why),) = lines_of(store, "r-1")
    assert kind == "stopped"
    assert f"version {begun or 'none'}, this notebook is version {now}" in why


def test_fresh_run_says_in_its_first_line_what_was_before(store: Store) -> None:
    runs.open_run(store, "etl", WANTED, fresh=True)
    assert lines_of(store, "etl-1") == []
    runs.open_run(store, "etl", WANTED, fresh=True)
    assert lines_of(store, "etl-2") == [("fresh", "")]
    (_, line), *_ = Reader(store).history("etl-2")
    assert line.detail == {"instead of": "etl-1"}


def test_run_that_is_begun_by_its_name_is_no_fresh_one(store: Store) -> None:
    runs.open_run(store, "etl", WANTED)
    runs.open_run(store, "etl", replace(WANTED, run_id="night-8"))
    assert lines_of(store, "night-8") == []


@pytest.mark.parametrize("state", list(RunState))
def test_run_is_ended_when_nothing_more_is_recorded_of_it(state: RunState) -> None:
    ended = RunRecord("r-1", state=state).is_ended
    assert ended == (state in {"frozen", "cancelled", "finished"})
