"""One step from start to finish: what is on disk when, and what decides that it runs."""

from __future__ import annotations

import builtins
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import current, runner
from nbckpt.errors import (
    CheckFailed,
    Fenced,
    NbckptError,
    SaveFailed,
    StopForHuman,
    StoreFull,
)
from nbckpt.loops.ledger import Ledger
from nbckpt.records import Lease, Mark, RunState, StepState
from nbckpt.runs.journal import Journal, set_mark
from nbckpt.state.checkpoints import Checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.notebook import Notebook

LARGE = "x = bytes(range(256)) * 4000"
"""More than fits into the records: its pack is a file."""


def counted(body: str, options: str = "") -> str:
    """Return a step `a` whose body counts its runs in `runs`."""
    return f"%%step a --ignore runs {options}\nruns.append(1)\n{body}"


def spied(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, note: Callable[[Any], None]
) -> None:
    """Note each call of a function, and let it happen."""
    real = getattr(owner, name)

    def spy(*args: Any, **options: Any) -> Any:
        note(args)
        return real(*args, **options)

    monkeypatch.setattr(owner, name, spy)


def offer(
    monkeypatch: pytest.MonkeyPatch, name: str, function: Callable[[], None]
) -> None:
    """Let cells call a function of the test without having it among their names."""
    monkeypatch.setattr(builtins, name, function, raising=False)


def packs() -> list[Path]:
    return list(Path(".nbckpt/packs").glob("*.pack"))


def attempt(notebook: Notebook) -> Any:
    return notebook.journal.attempts(notebook.session.run_id)["a"]


def record(notebook: Notebook) -> Any:
    return notebook.journal.step(notebook.session.run_id, "a")


def take_over(notebook: Notebook) -> None:
    """Let another holder take the run, as `--overlap replace` does elsewhere."""
    store, run_id = notebook.session.store, notebook.session.run_id
    lease = Lease.from_json(store.get(f"lease/{run_id}"))
    taken = replace(
        lease, token=lease.token + 1, holder=replace(lease.holder, nonce="other")
    )
    store.transact(lambda tx: tx.put(f"lease/{run_id}", taken.to_json()))


def test_each_thing_is_on_disk_before_what_rests_on_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt before the body, the bytes before the record, the record before a drop."""
    order: list[str] = []

    def synced(args: Any) -> None:
        name = Path(f"/proc/self/fd/{args[0]}").readlink()
        order.append("sync" if name.suffix == ".pack" else "")

    spied(monkeypatch, Journal, "start", lambda _: order.append("start"))
    spied(monkeypatch, Checkpoints, "write", lambda _: order.append("write"))
    spied(monkeypatch, os, "fdatasync", synced)
    spied(monkeypatch, Journal, "complete", lambda _: order.append("complete"))
    spied(monkeypatch, Checkpoints, "drop", lambda _: order.append("drop"))
    notebook.names["order"] = order
    notebook.run(f"%%step a --ignore order\norder.append('body')\n{LARGE}")
    steps = [each for each in order if each]
    assert steps == ["start", "body", "write", "sync", "complete", "drop"]


def test_record_rests_on_bytes_that_are_there_when_it_is_written(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []

    def look(args: Any) -> None:
        names = args[1].contents.packs
        there.extend(Path(f".nbckpt/packs/{name}.pack").exists() for name in names)

    spied(monkeypatch, Journal, "complete", look)
    notebook.run(f"%%step a\n{LARGE}")
    assert there == [True]


def test_pack_of_a_record_that_is_replaced_goes_after_the_new_one_is_written(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(f"%%step a\n{LARGE}")
    old = packs()
    there: list[bool] = []
    spied(monkeypatch, Checkpoints, "drop", lambda _: there.append(old[0].exists()))
    notebook.run(f"%%step a\n{LARGE} + b'1' + bytes(3_000_000)")
    assert there == [True]
    assert len(packs()) == 1 or old[0] in packs()


def test_body_runs_while_its_attempt_stands_as_running(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    offer(monkeypatch, "look", lambda: seen.append(attempt(notebook)))
    notebook.run("%%step a --writes out.txt\nlook()\nx = 1")
    assert seen[0].state is StepState.RUNNING
    assert seen[0].writes == ("out.txt",)
    assert attempt(notebook).state is StepState.COMPLETED


def test_body_that_raises_is_recorded_as_failed_with_its_error(
    notebook: Notebook,
) -> None:
    error = notebook.error("%%step a\nx = 1\nx / 0")
    assert isinstance(error, ZeroDivisionError)
    found = attempt(notebook)
    assert (found.state, found.error) == (
        StepState.FAILED,
        "ZeroDivisionError: division by zero",
    )
    assert record(notebook) is None
    assert notebook.names["x"] == 1


@pytest.mark.parametrize(
    ("cell", "state", "reason"),
    [
        ("1 / 0", StepState.FAILED, "it failed before"),
        ("raise KeyboardInterrupt", StepState.INTERRUPTED, "it was interrupted before"),
        (
            "import asyncio\nraise asyncio.CancelledError",
            StepState.INTERRUPTED,
            "it was interrupted before",
        ),
    ],
)
def test_step_that_did_not_end_runs_again_and_says_why(
    notebook: Notebook, cell: str, state: StepState, reason: str
) -> None:
    notebook.error(f"%%step a\n{cell}")
    assert attempt(notebook).state is state
    notebook.restart()
    notebook.run("%%step a\nx = 1")
    assert notebook.reason("a") == reason
    assert attempt(notebook).attempt == 2


def test_long_error_is_cut_and_the_run_goes_on(notebook: Notebook) -> None:
    notebook.error("%%step a\nraise ValueError('x' * 10**6)")
    assert len(attempt(notebook).error) == 2000


def test_step_runs_for_a_reason_that_names_what_changed(notebook: Notebook) -> None:
    Path("in.txt").write_text("1")
    notebook.run("from pathlib import Path\nn = 1\nruns = []")
    cell = counted("x = n + int(Path('in.txt').read_text())", "--reads in.txt")
    notebook.run(cell)
    assert notebook.reason("a") == "it has no record yet"
    notebook.run("n = 2")
    notebook.run(cell)
    assert notebook.reason("a") == "input 'n' changed"
    Path("in.txt").write_text("5")
    notebook.run(cell)
    assert notebook.reason("a") == "file 'in.txt' changed"
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"
    assert notebook.names["runs"] == [1, 1, 1]
    assert notebook.names["x"] == 7


def test_rerun_that_a_person_asked_for_happens_once(notebook: Notebook) -> None:
    notebook.run("runs = []")
    notebook.run(counted("x = 1"))
    store, run_id = notebook.session.store, notebook.session.run_id
    set_mark(store, run_id, "a", lambda _: Mark(rerun="asked on Monday"))
    notebook.run(counted("x = 1"))
    assert notebook.reason("a") == "asked for: asked on Monday"
    notebook.run(counted("x = 1"))
    assert notebook.decision("a") == "Skip"
    assert notebook.names["runs"] == [1, 1]


def test_step_marked_always_is_never_skipped(notebook: Notebook) -> None:
    notebook.run("runs = []")
    for _ in range(3):
        notebook.run(counted("x = object()", "--always"))
    assert notebook.names["runs"] == [1, 1, 1]
    assert notebook.reason("a") == "it is marked --always"


def test_step_older_than_it_may_be_runs_again(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("%%step a --max-age 1h\nx = 1")
    notebook.run("%%step a --max-age 1h\nx = 1")
    assert notebook.decision("a") == "Skip"
    completed_at = record(notebook).completed_at
    monkeypatch.setattr(runner.time, "time", lambda: completed_at + 3601)
    notebook.run("%%step a --max-age 1h\nx = 1")
    assert notebook.reason("a") == "it is older than --max-age"


def test_step_that_must_not_be_redone_stops_for_a_person(notebook: Notebook) -> None:
    notebook.run("runs = []")
    notebook.error(counted("1 / 0", "--stop-on-redo"))
    before = attempt(notebook)
    error = notebook.error(counted("x = 1", "--stop-on-redo"))
    assert isinstance(error, StopForHuman)
    assert error.what == "step a: it was attempted and not completed (failed)"
    assert "%nbckpt rerun a, or" in error.remedy
    assert error.remedy.endswith(f"nbckpt rerun a --run {notebook.session.run_id}")
    assert notebook.names["runs"] == [1]
    assert attempt(notebook) == before
    set_mark(
        notebook.session.store,
        notebook.session.run_id,
        "a",
        lambda _: Mark(rerun="I looked"),
    )
    notebook.run(counted("x = 1", "--stop-on-redo"))
    assert notebook.names["runs"] == [1, 1]


def test_check_that_is_not_true_leaves_no_record(notebook: Notebook) -> None:
    error = notebook.error("%%step a --check 'x > 1'\nx = 1")
    assert isinstance(error, CheckFailed)
    assert record(notebook) is None
    assert attempt(notebook).state is StepState.FAILED


def test_check_that_fails_at_the_skip_takes_the_values_back_and_runs(
    notebook: Notebook,
) -> None:
    """The body finds what stood there, not what was restored for the check."""
    notebook.run("limit, x = 9, 'first'")
    cell = "%%step a --ignore x --check 'x < limit'\nfound = x\nx = 5"
    notebook.run(cell)
    notebook.run("limit, x = 1, 'before'")
    assert isinstance(notebook.error(cell), CheckFailed)
    assert "x < limit" in notebook.reason("a")
    assert notebook.names["found"] == "before"


def test_values_that_can_not_be_loaded_make_the_body_run(notebook: Notebook) -> None:
    notebook.run(f"%%step a\n{LARGE}")
    notebook.restart()
    for pack in packs():
        pack.unlink()
    notebook.run(f"%%step a\n{LARGE}")
    assert notebook.decision("a") == "Run"
    assert "its values can't be loaded" in notebook.reason("a")
    notebook.restart()
    notebook.run(f"%%step a\n{LARGE}")
    assert notebook.decision("a") == "Skip"


def test_record_that_was_tampered_with_is_not_believed(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    store, run_id = notebook.session.store, notebook.session.run_id
    store.transact(lambda tx: tx._cache.set(f"step/{run_id}/a", b"0" * 64))
    notebook.run("%%step a\nx = 1")
    assert notebook.decision("a") == "Run"
    assert "damaged" in notebook.reason("a")


def test_skip_binds_deletes_and_is_noted(notebook: Notebook) -> None:
    notebook.run("old = 1")
    cell = "%%step a\nx = old + 1\ndel old"
    notebook.run(cell)
    notebook.restart()
    notebook.run("old = 1")
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == 2
    assert "old" not in notebook.names
    kinds = [e.kind for _, e in notebook.journal.history(notebook.session.run_id)]
    assert kinds[-1] == "skipped"


def test_holder_that_was_replaced_records_nothing_and_says_so(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fence stands in the transaction of the record itself."""
    offer(monkeypatch, "take_over", lambda: take_over(notebook))
    error = notebook.error("%%step a\nx = 1\ntake_over()")
    assert isinstance(error, Fenced)
    assert not isinstance(error, Exception)
    assert record(notebook) is None
    assert attempt(notebook).state is StepState.RUNNING
    assert notebook.names["x"] == 1


def test_failure_of_a_holder_that_was_replaced_is_the_users_own(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, "take_over", lambda: take_over(notebook))
    error = notebook.error("%%step a\ntake_over()\n1 / 0")
    assert isinstance(error, ZeroDivisionError)
    assert attempt(notebook).state is StepState.RUNNING
    assert "nbckpt: " in notebook.told()


def full(*_: object) -> Any:
    raise OSError(28, "No space left on device")


def test_save_that_failed_is_made_up_for_without_the_body(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("runs = []")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "write", full)
        error = notebook.error(counted("x = [1]\nprint('shown')"))
    assert isinstance(error, SaveFailed)
    assert "step a ran, but its checkpoint could not be saved" in error.what
    assert "No space left" in error.what
    assert record(notebook) is None
    assert notebook.names["x"] == [1]
    notebook.shown()
    notebook.run(counted("x = [1]\nprint('shown')"))
    assert notebook.names["runs"] == [1]
    assert notebook.shown() == "shown\n"
    notebook.restart()
    notebook.run("runs = []")
    notebook.run(counted("x = [1]\nprint('shown')"))
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == [1]


@pytest.mark.parametrize("kind", [MemoryError, OSError, lambda: SaveFailed("why")])
def test_every_kind_of_failed_save_keeps_the_values(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, kind: Callable[[], Exception]
) -> None:
    def fail(*_: object) -> None:
        raise kind()

    notebook.run("runs = []")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "complete", fail)
        assert isinstance(notebook.error(counted("x = 1")), SaveFailed)
    notebook.run(counted("x = 1"))
    assert notebook.names["runs"] == [1]
    assert "x" in record(notebook).contents.bound


@pytest.mark.parametrize(
    ("between", "again"),
    [
        ("x.append(2)", "x = [1]"),
        ("y = 1", "x = [1]"),
        ("del x", "x = [1]"),
        ("pass", "x = [1, 3]"),
    ],
)
def test_save_is_not_made_up_for_once_values_or_code_are_others(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, between: str, again: str
) -> None:
    notebook.run("runs = []")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "write", full)
        notebook.error(counted("x = [1]"))
    notebook.run(between)
    notebook.run(counted(again))
    assert notebook.names["runs"] == [1, 1]
    assert notebook.decision("a") == "Run"


def test_looking_at_values_between_does_not_lose_a_failed_save(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("runs = []")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "write", full)
        notebook.error(counted("x = [1]"))
    notebook.run("len(x), print(x)")
    notebook.run(counted("x = [1]"))
    assert notebook.names["runs"] == [1]


def test_save_that_fails_twice_can_be_made_up_for_later(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("runs = []")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "write", full)
        notebook.error(counted("x = 1"))
        assert isinstance(notebook.error(counted("x = 1")), SaveFailed)
    notebook.run(counted("x = 1"))
    assert notebook.names["runs"] == [1]


def test_another_step_ends_the_wait_for_a_failed_save(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("runs = []")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "write", full)
        notebook.error(counted("x = 1"))
    notebook.run("%%step b\npass")
    notebook.run(counted("x = 1"))
    assert notebook.names["runs"] == [1, 1]


def test_retries_are_one_attempt(notebook: Notebook) -> None:
    notebook.run("runs = []")
    notebook.run(counted("assert len(runs) == 3\nx = 1", "--retries 5 --backoff 0s"))
    assert notebook.names["runs"] == [1, 1, 1]
    assert attempt(notebook).attempt == 1


def test_interrupt_is_never_retried(notebook: Notebook) -> None:
    notebook.run("runs = []")
    notebook.error(counted("raise KeyboardInterrupt", "--retries 5 --backoff 0s"))
    assert notebook.names["runs"] == [1]
    assert attempt(notebook).state is StepState.INTERRUPTED


def test_step_that_can_not_be_kept_says_so_and_runs_again(notebook: Notebook) -> None:
    cell = "%%step a\nimport socket\nx = socket.socket()"
    notebook.run(cell)
    assert "nbckpt: step a runs again next time: x" in notebook.told()
    notebook.names["x"].close()
    notebook.run(cell)
    assert notebook.reason("a").startswith("it can't be kept: x")
    notebook.names["x"].close()


def test_step_whose_items_can_not_be_written_ends_as_failed(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **_how: object) -> None:
        raise StoreFull("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "flush", full)
        notebook.error(
            "%%step a\nimport nbckpt\nfor n in nbckpt.items([1, 2]):\n    break"
        )
    assert attempt(notebook).state is StepState.FAILED
    assert current.running() is None


def test_end_without_a_beginning_changes_nothing(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    before = attempt(notebook)
    notebook.runner.commit()
    notebook.runner.fail(ValueError())
    assert attempt(notebook) == before


def test_run_is_completed_only_when_every_planned_step_is(
    notebook: Notebook,
) -> None:
    notebook.run("%%step a\nx = 1")
    run = notebook.journal.run(notebook.session.run_id)
    assert run.state is RunState.OPEN


@pytest.mark.parametrize(
    "refused",
    ["evidence('x', object())", "ask('ok?')", "ask('ok?', [])", "decide('a/b', 1)"],
)
def test_refusal_of_nbckpt_is_not_tried_again(notebook: Notebook, refused: str) -> None:
    notebook.run("import nbckpt\ntries = []")
    body = f"tries.append(1)\nnbckpt.{refused}"
    found = notebook.error(f"%%step a --retries 3 --backoff 0s\n{body}")
    assert isinstance(found, NbckptError)
    assert notebook.names["tries"] == [1]
