"""The memory of a run: a completed step is one transaction, all of it or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.errors import Fenced, NotFound, SaveFailed
from nbckpt.records import (
    Contents,
    Evidence,
    Fingerprint,
    Mark,
    PlannedStep,
    PlanRecord,
    RunRecord,
    RunState,
    StepRecord,
    StepState,
)
from nbckpt.runs import journal, lines
from nbckpt.runs.history import Reader, readable
from nbckpt.runs.journal import Journal, set_mark
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.store.packs import Pack, release_packs
from nbckpt.trust import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbckpt.store import Transaction


class Bench:
    """A store, a journal of run r-1, and a fence that can be closed."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder, Secret(b"s" * 32))
        self.fenced = False
        self.journal = Journal(self.store, "r-1", 1, self.guard)
        open_run(self.store, "r", RunRecord("r-1", "nb.ipynb"))

    def guard(self, _: Transaction) -> None:
        if self.fenced:
            raise Fenced("taken over")

    def start(self, step: str = "a", *, durable: bool = False) -> Any:
        return self.journal.start(step, "new", writes=(), durable=durable)

    def complete(
        self, step: str, *packs: str, inline: bytes | None = b"x"
    ) -> list[str]:
        attempt = self.start(step)
        record = StepRecord(
            "r-1", step, attempt.attempt, 1, attempt.order, Fingerprint(), Evidence(),
            Contents(packs=packs), 1.0, 2.0, 1.0,
        )  # fmt: skip
        pack = Pack(packs[-1] if packs else "none", inline)
        return self.journal.complete(record, pack, "new")

    def rows(self) -> dict[str, Any]:
        keys = self.store.keys("")
        return {key: self.store.get_bytes(key) for key in keys}

    def kinds(self) -> list[str]:
        return [event.kind for _, event in self.journal.history("r-1")]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "store")
    yield bench
    bench.store.close()


def test_attempt_is_recorded_before_its_body_runs(bench: Bench) -> None:
    bench.start()
    found = bench.journal.attempts("r-1")["a"]
    assert found.state is StepState.RUNNING
    assert (found.attempt, found.order, found.token) == (1, 1, 1)


def test_attempts_count_within_the_step_and_orders_within_the_run(
    bench: Bench,
) -> None:
    found = [bench.start(step) for step in ("a", "a", "b", "a")]
    assert [attempt.attempt for attempt in found] == [1, 2, 1, 3]
    assert [attempt.order for attempt in found] == [1, 2, 3, 4]


def test_completion_writes_record_attempt_history_and_pack(bench: Bench) -> None:
    bench.complete("a", "p1")
    assert bench.journal.steps("r-1").keys() == {"a"}
    assert bench.journal.attempts("r-1")["a"].state is StepState.COMPLETED
    assert bench.kinds() == ["started", "completed"]
    assert bench.store.get("pack/p1") == {"users": ["step/r-1/a"]}
    assert bench.store.get_bytes("inline/p1") == b"x"


def test_pack_that_is_a_file_is_not_in_the_records(bench: Bench) -> None:
    bench.complete("a", "p1", inline=None)
    assert bench.store.get_bytes("inline/p1") is None
    assert bench.store.get("pack/p1")


@pytest.mark.parametrize("failing", range(6))
def test_completion_that_fails_half_way_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    attempt = bench.start()
    before = bench.rows()
    names = ["_end_attempt", "_clear_rerun", "add_line"]
    parts: list[tuple[Any, str]] = [*((Journal, name) for name in names)]
    parts += [(lines, "link"), (journal, "use_packs"), (journal, "release_loops")]

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(*parts[failing], fail)
    record = StepRecord(
        "r-1", "a", 1, 1, attempt.order, Fingerprint(), Evidence(),
        Contents(packs=("p",)), 1.0, 2.0, 1.0,
    )  # fmt: skip
    with pytest.raises(MemoryError):
        bench.journal.complete(record, Pack("p", b"x"), "new")
    assert bench.rows() == before


def test_completion_that_rests_on_a_dropped_pack_is_refused_whole(
    bench: Bench,
) -> None:
    with pytest.raises(SaveFailed, match="pack gone was dropped") as caught:
        bench.complete("a", "gone", "p1")
    assert "the body does not run" in caught.value.remedy
    assert bench.journal.steps("r-1") == {}
    assert bench.store.keys("pack/") == []


def test_pack_is_in_use_as_long_as_one_record_rests_on_it(bench: Bench) -> None:
    assert bench.complete("a", "p1") == []
    assert bench.complete("b", "p1", "p2") == []
    assert bench.complete("a", "p3") == []
    assert bench.store.get("pack/p1") == {"users": ["step/r-1/b"]}
    assert sorted(bench.complete("b", "p4")) == ["p1", "p2"]
    assert bench.store.keys("pack/") == ["pack/p3", "pack/p4"]
    assert bench.store.keys("inline/") == ["inline/p3", "inline/p4"]


def test_step_that_completes_again_keeps_the_packs_it_goes_on_using(
    bench: Bench,
) -> None:
    bench.complete("a", "p1")
    assert bench.complete("a", "p1", "p2") == []
    assert bench.store.get("pack/p1") == {"users": ["step/r-1/a"]}


def test_releasing_packs_of_a_step_without_a_record_frees_nothing(
    bench: Bench,
) -> None:
    freed = bench.store.transact(lambda tx: release_packs(tx, "step/x", None, set()))
    assert freed == []


def test_record_that_is_replaced_stays_in_the_history(bench: Bench) -> None:
    bench.complete("a", "p1")
    bench.complete("a", "p2")
    last = bench.journal.history("r-1")[-1][1]
    assert last.detail["before"]["attempt"] == 1


@pytest.mark.parametrize("state", [StepState.FAILED, StepState.INTERRUPTED])
def test_failed_attempt_says_why_and_keeps_the_record_before(
    bench: Bench, state: StepState
) -> None:
    bench.complete("a", "p1")
    bench.start()
    bench.journal.fail("a", state, "ValueError: no")
    attempt = bench.journal.attempts("r-1")["a"]
    assert (attempt.state, attempt.error) == (state, "ValueError: no")
    assert bench.journal.step("r-1", "a") is not None
    assert bench.kinds()[-1] == str(state)


def test_claimed_files_are_added_to_the_attempt(bench: Bench) -> None:
    attempt = bench.journal.start("a", "new", writes=("out.csv",), durable=True)
    attempt = bench.journal.claim(attempt, "x.csv")
    bench.journal.claim(attempt, "y.csv")
    found = bench.journal.attempts("r-1")["a"]
    assert found.writes == ("out.csv", "x.csv", "y.csv")


@pytest.mark.parametrize("state", [StepState.FAILED, StepState.INTERRUPTED, None])
def test_attempt_after_one_that_did_not_complete_keeps_its_claims(
    bench: Bench, state: StepState | None
) -> None:
    attempt = bench.journal.start("a", "new", writes=("out.csv",), durable=True)
    bench.journal.claim(attempt, "x.csv", durable=False)
    if state is not None:
        bench.journal.fail("a", state, "it ended")
    again = bench.journal.start("a", "new", writes=("out.csv",), durable=True)
    assert again.writes == ("out.csv", "x.csv")
    assert bench.journal.attempts("r-1")["a"] == again


def test_attempt_after_a_completed_one_claims_nothing(bench: Bench) -> None:
    bench.journal.claim(bench.start(), "x.csv")
    record = StepRecord(
        "r-1", "a", 1, 1, 1, Fingerprint(), Evidence(), Contents(), 1.0, 2.0, 1.0
    )
    bench.journal.complete(record, Pack("p", b""), "")
    assert bench.start().writes == ()


def test_fenced_process_writes_nothing_at_all(bench: Bench) -> None:
    attempt = bench.start()
    before = bench.rows()
    bench.fenced = True
    journal = bench.journal
    record = StepRecord(
        "r-1", "a", 1, 1, 1, Fingerprint(), Evidence(), Contents(), 1.0, 2.0, 1.0
    )
    for write in (
        lambda: journal.start("a", "", writes=(), durable=False),
        lambda: journal.claim(attempt, "x"),
        lambda: journal.complete(record, Pack("p", b""), ""),
        lambda: journal.fail("a", StepState.FAILED, ""),
        lambda: journal.skip("a", "", 1.0),
        lambda: journal.note("x"),
        journal.complete_run,
        lambda: journal.write_plan(PlanRecord()),
    ):
        with pytest.raises(Fenced):
            write()
    assert bench.rows() == before


def test_history_is_in_order_and_can_be_followed(bench: Bench) -> None:
    for number in range(12):
        bench.journal.note(f"n{number}", reason="r", extra=number)
    lines = bench.journal.history("r-1")
    assert [event.kind for _, event in lines] == [f"n{n}" for n in range(12)]
    assert lines[3][1].detail == {"extra": 3}
    later = bench.journal.history("r-1", after=lines[9][0])
    assert [event.kind for _, event in later] == ["n10", "n11"]


def test_skip_is_noted_with_the_time_it_saved(bench: Bench) -> None:
    bench.journal.skip("a", "verified", 12.5)
    event = bench.journal.history("r-1")[-1][1]
    assert (event.kind, event.step, event.seconds) == ("skipped", "a", 12.5)


def test_changed_plan_keeps_the_names_of_the_one_before(bench: Bench) -> None:
    one = PlanRecord((PlannedStep(1, "a", "c"),))
    bench.journal.write_plan(one)
    bench.journal.write_plan(replace(one, steps=(PlannedStep(1, "b", "c"),)))
    assert [s.name for s in bench.journal.plan("r-1").steps] == ["b"]
    assert bench.journal.history("r-1")[-1][1].detail == {
        "before": ["a"],
        "steps": ["b"],
    }


def test_completion_takes_the_wish_for_a_rerun_back_and_keeps_the_rest(
    bench: Bench,
) -> None:
    set_mark(bench.store, "r-1", "a", lambda _: Mark(("c",), "me"))
    bench.complete("a", "p1")
    assert bench.journal.mark("r-1", "a") == Mark(("c",), "")


def test_failure_keeps_the_wish_for_a_rerun(bench: Bench) -> None:
    set_mark(bench.store, "r-1", "a", lambda _: Mark((), "me"))
    bench.start()
    bench.journal.fail("a", StepState.FAILED, "x")
    assert bench.journal.mark("r-1", "a").rerun == "me"


def test_finishing_a_run_twice_writes_once(bench: Bench) -> None:
    bench.journal.complete_run()
    bench.fenced = True
    bench.journal.complete_run()
    assert bench.journal.run("r-1").state is RunState.COMPLETED


def opened(bench: Bench, run_id: str = "", *, fresh: bool = False) -> RunRecord:
    return open_run(bench.store, "r", RunRecord(run_id, "nb.ipynb"), fresh=fresh)


def test_notebook_goes_on_with_its_current_run(bench: Bench) -> None:
    assert opened(bench).run_id == "r-1"
    assert opened(bench).run_id == "r-1"


def test_fresh_run_gets_the_next_id_and_becomes_current(bench: Bench) -> None:
    assert opened(bench, fresh=True).run_id == "r-2"
    assert opened(bench).run_id == "r-2"
    assert Reader(bench.store).current("r") == "r-2"


def test_named_run_is_opened_or_begun_and_becomes_current(bench: Bench) -> None:
    assert opened(bench, "mine").run_id == "mine"
    assert opened(bench, "r-1").created_at == bench.journal.run("r-1").created_at
    assert opened(bench).run_id == "r-1"


def test_run_of_an_older_schema_is_frozen_and_another_begun(bench: Bench) -> None:
    old = replace(bench.journal.run("r-1"), schema_version=0)
    bench.store.transact(lambda tx: tx.put("run/r-1", old.to_json()))
    run = opened(bench)
    assert run.run_id == "r-2"
    assert "older schema" in run.why
    assert bench.journal.run("r-1").state is RunState.FROZEN


def test_run_that_does_not_exist_names_those_that_do(bench: Bench) -> None:
    with pytest.raises(NotFound, match="no run 'zzz'") as caught:
        bench.journal.run("zzz")
    assert "r-1" in caught.value.remedy


def test_runs_come_oldest_first(bench: Bench) -> None:
    opened(bench, fresh=True)
    opened(bench, "a-9")
    assert [run.run_id for run in bench.journal.runs()] == ["r-1", "r-2", "a-9"]


def test_what_was_never_written_is_empty(bench: Bench) -> None:
    reader = Reader(bench.store)
    assert reader.plan("x") == PlanRecord()
    assert reader.lease("x") is None
    assert reader.step("x", "a") is None
    assert reader.steps("x") == {}
    assert reader.mark("x", "a") == Mark()
    assert reader.history("x") == []
    assert reader.current("x") is None


def test_steps_of_one_run_are_not_those_of_a_run_with_a_longer_id(
    bench: Bench,
) -> None:
    bench.complete("a", "p1")
    assert bench.journal.steps("r") == {}
    assert bench.journal.steps("r-11") == {}


def test_record_that_can_not_be_believed_says_why(bench: Bench) -> None:
    bench.complete("a", "p1")
    assert readable(bench.store, "step/r-1/a")[1] == ""
    bench.store.transact(lambda tx: tx._cache.set("step/r-1/a", bytes(40)))
    value, why = readable(bench.store, "step/r-1/a")
    assert value is None
    assert "not authentic" in why


class Counted(Store):
    """A store that counts the records that are read."""

    reads = 0

    def get_bytes(self, key: str) -> bytes | None:
        self.reads += 1
        return super().get_bytes(key)


def test_holder_reads_its_records_once_and_then_what_it_changed(tmp_path: Path) -> None:
    store = Counted(tmp_path / "store", Secret(b"s" * 32))
    bench = Bench.__new__(Bench)
    bench.store, bench.fenced = store, False
    bench.journal = journal = Journal(store, "r-1", 1, bench.guard)
    open_run(store, "r", RunRecord("r-1", "nb.ipynb"))
    for number in range(9):
        bench.complete(f"s{number}")
    assert len(journal.steps("r-1")) == len(journal.attempts("r-1")) == 9
    store.reads = 0
    bench.complete("s3")
    plain = Reader(store)
    found = journal.steps("r-1"), journal.attempts("r-1"), journal.plan("r-1")
    assert store.reads <= 3
    assert found == (plain.steps("r-1"), plain.attempts("r-1"), plain.plan("r-1"))
    assert found[0]["s3"].attempt == 2
    store.close()


@pytest.mark.parametrize("end", ["start", "claim", "complete", "fail", "plan"])
def test_holder_sees_each_of_its_own_writes(bench: Bench, end: str) -> None:
    journal, plain = bench.journal, Reader(bench.store)
    bench.complete("a")
    attempt = bench.start("b")
    journal.steps("r-1"), journal.attempts("r-1"), journal.plan("r-1")
    writes = {
        "start": lambda: bench.start("b"),
        "claim": lambda: journal.claim(attempt, "f.csv"),
        "complete": lambda: bench.complete("b"),
        "fail": lambda: journal.fail("b", StepState.FAILED, "no"),
        "plan": lambda: journal.write_plan(PlanRecord((PlannedStep(1, "a", "c"),))),
    }
    writes[end]()
    assert journal.steps("r-1") == plain.steps("r-1")
    assert journal.attempts("r-1") == plain.attempts("r-1")
    assert journal.plan("r-1") == plain.plan("r-1")


def test_holder_whose_write_failed_sees_what_is_stored(bench: Bench) -> None:
    bench.complete("a")
    before = bench.journal.attempts("r-1")
    bench.fenced = True
    with pytest.raises(Fenced):
        bench.start("a")
    assert bench.journal.attempts("r-1") == before
