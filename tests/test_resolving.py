"""A person says whether an effect happened: who may say what, and when."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.cli import main
from nbckpt.errors import AlreadySettled, BadStep, NotFound, RunHeld
from nbckpt.records import (
    Attempt,
    EffectRecord,
    EffectState,
    Lease,
    RunRecord,
    StepState,
)
from nbckpt.runs.history import Reader
from nbckpt.runs.processes import this_process
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle import resolving
from nbckpt.verbs.settle.resolving import Said, read_said, read_value, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def an_effect(name: str = "pay", step: str = "charge", **more: Any) -> EffectRecord:
    return EffectRecord(
        **{
            "run_id": "r-1", "step": step, "name": name, "item": "", "at": 5.0,
            "key": f"{step}.{name}-1", "first_at": 5.0, "attempt": 1, "token": 1,
            "state": EffectState.INTENT, "request": {"a": "1"}, **more,
        }
    )  # fmt: skip


def put(store: Store, *records: EffectRecord) -> None:
    for one in records:
        path = f"effect/{one.run_id}/{one.step}/{one.key}"
        store.transact(lambda tx, one=one, path=path: tx.put(path, one.to_json()))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path / ".nbckpt", load_secret())
    run = RunRecord("r-1", "etl.ipynb", created_at=time.time())
    store.transact(lambda tx: tx.put("run/r-1", run.to_json()))
    put(store, an_effect())
    yield store
    store.close()


RUN = RunRecord("r-1", "etl.ipynb")


def test_answer_is_recorded_with_who_when_and_why(store: Store) -> None:
    text = resolve(store, RUN, "pay", Said("done", "ch_1", "seen"))
    (found,) = Reader(store).effects("r-1", "charge")
    assert (found.state, found.value, found.how) == (EffectState.DONE, "ch_1", "said")
    assert found.answer is not None
    assert (found.answer.word, found.answer.why) == ("done", "seen")
    assert found.answer.who in text
    assert text.endswith("Then: nbckpt run etl.ipynb --run-id r-1")
    (_, line), *_ = Reader(store).history("r-1")
    assert (line.kind, line.reason) == ("resolved", "seen")
    assert line.detail["key"] == "charge.pay-1"
    assert line.detail["said"] == "done"


@pytest.mark.parametrize("word", ["done", "redo"])
def test_word_about_an_effect_that_was_found_done_meanwhile_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch, word: Any
) -> None:
    found = an_effect(state=EffectState.DONE, how="found", value="ch_7")
    monkeypatch.setattr(resolving, "person", lambda: put(store, found) or "me")
    with pytest.raises(AlreadySettled, match="settled meanwhile"):
        resolve(store, RUN, "pay", Said(word, "ch_1"))
    assert Reader(store).effects("r-1", "charge") == [found]


def test_effect_is_named_by_its_key_where_its_name_is_not_enough(store: Store) -> None:
    put(store, an_effect(step="other"))
    with pytest.raises(NotFound, match=r"2 effects named 'pay'.*other\.pay-1"):
        resolve(store, RUN, "pay", Said("redo"))
    resolve(store, RUN, "other.pay-1", Said("redo"))
    (found,) = Reader(store).effects("r-1", "other")
    assert found.answer is not None


def test_unknown_name_is_refused_with_those_that_wait(store: Store) -> None:
    with pytest.raises(NotFound, match=r"no effect 'nope'.*not known: pay"):
        resolve(store, RUN, "nope", Said("redo"))


def test_nothing_is_said_of_a_step_that_runs(store: Store) -> None:
    attempt = Attempt("r-1", "charge", 1, 1, 1, StepState.RUNNING, 5.0)
    lease = Lease(1, this_process())
    store.transact(lambda tx: tx.put("attempt/r-1/charge", attempt.to_json()))
    store.transact(lambda tx: tx.put("lease/r-1", lease.to_json()))
    with pytest.raises(RunHeld, match="may be happening now"):
        resolve(store, RUN, "pay", Said("not-done"))
    assert Reader(store).effects("r-1")[0] == an_effect()


def test_not_done_is_known_not_to_have_happened(store: Store) -> None:
    resolve(store, RUN, "pay", Said("not-done"))
    assert Reader(store).effects("r-1")[0].state is EffectState.FAILED


def test_what_is_done_is_not_taken_for_what_did_not_happen(store: Store) -> None:
    put(store, an_effect(state=EffectState.DONE, how="performed", settled_at=9.0))
    with pytest.raises(
        AlreadySettled, match=r"pay of step charge is done: performed at"
    ):
        resolve(store, RUN, "pay", Said("not-done"))
    resolve(store, RUN, "pay", Said("done", "ch_2", "seen"))
    with pytest.raises(
        AlreadySettled, match=r"done, said by .*'seen'.*--redo"
    ) as error:
        resolve(store, RUN, "pay", Said("not-done"))
    assert Reader(store).effects("r-1")[0].value == "ch_2"
    assert error.value.remedy.endswith("--done VALUE")
    resolve(store, RUN, "pay", Said("redo"))
    assert Reader(store).effects("r-1")[0].state is EffectState.INTENT


def test_second_person_is_told_what_the_first_one_said(store: Store) -> None:
    assert "before" not in resolve(store, RUN, "pay", Said("not-done", why="asked"))
    text = resolve(store, RUN, "pay", Said("done", "ch_1"))
    assert "(before: not-done, said by " in text
    assert "'asked')" in text


@pytest.mark.parametrize(
    ("done", "flags"), [(None, ()), ("x", ("redo",)), (None, ("redo", "not_done"))]
)
def test_exactly_one_thing_is_said(done: str | None, flags: tuple[str, ...]) -> None:
    with pytest.raises(BadStep, match="say one of"):
        read_said(done, not_done="not_done" in flags, redo="redo" in flags)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (None, None),
        ("7", 7),
        ("[1]", [1]),
        ("ch_1", "ch_1"),
        ('"7"', "7"),
        ("NaN", "NaN"),
        ("[1e999, -Infinity]", ["1e999", "-Infinity"]),
    ],
)
def test_value_is_json_or_text(text: str | None, value: Any) -> None:
    assert read_value(text) == value


def test_command_line_settles_and_shows(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt = Attempt("r-1", "charge", 1, 1, 1, StepState.WAITING, 5.0)
    store.transact(lambda tx: tx.put("attempt/r-1/charge", attempt.to_json()))
    with pytest.raises(SystemExit) as left:
        main(["show", "charge"])
    assert left.value.code == 0
    assert "not known" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        main(["resolve", "r-1", "pay", "--done", "--why", "seen"])
    assert left.value.code == 0
    (found,) = Reader(store).effects("r-1")
    assert (found.state, found.value) == (EffectState.DONE, None)
    with pytest.raises(SystemExit):
        main(["show", "charge"])
    shown = capsys.readouterr().out
    assert "done (said)" in shown
    assert "charge.pay-1" in shown
    with pytest.raises(SystemExit) as left:
        main(["resolve", "r-1", "pay"])
    assert left.value.code == 2
