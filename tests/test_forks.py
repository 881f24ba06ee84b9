"""A cancelled run is over; a fork has the steps before the one that it begins at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nbckpt import cli
from nbckpt.errors import AlreadySettled, BadStep, Fenced, NotFound, StopForHuman
from nbckpt.records import PlannedStep, PlanRecord, RunState, StepState
from nbckpt.runs import forks
from nbckpt.runs.history import Reader
from nbckpt.state.garbage import collect
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.forms.pages import plain
from nbckpt.verbs.look.explaining import explain
from nbckpt.verbs.look.overview import runs_page
from nbckpt.verbs.settle import branches
from nbckpt.verbs.standing.status import runs, status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

STEPS = {
    "a": "%%step a\nimport numpy as np\nx = np.arange(200_000)\nran.append('a')",
    "b": "%%step b\ny = x[:3] + nbckpt.decide('more', 1)\nran.append('b')",
    "c": "%%step c\nz = int(y.sum()) + nbckpt.decide('last', 2)\nran.append('c')",
}


def run_all(notebook: Notebook, start: str = "") -> list[str]:
    """Run the notebook in a new kernel; return the steps whose bodies ran."""
    notebook.restart()
    if start:
        notebook.run(start)
    notebook.run("import nbckpt")
    for name, source in STEPS.items():
        notebook.run(source.replace(f"ran.append('{name}')", "_ = 0"))
    return [n for n in STEPS if notebook.decision(n) == "Run"]


def closed(notebook: Notebook, folder: Path) -> Store:
    """Let the kernel go; return its store."""
    notebook.session.release()
    return Store(folder / ".nbckpt", load_secret())


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_fork_runs_only_the_step_and_what_follows(
    notebook: Notebook, tmp_path: Path
) -> None:
    assert run_all(notebook) == ["a", "b", "c"]
    store = closed(notebook, tmp_path)
    new, said = branches.fork(store, Reader(store).run("notebook-1"), "b")
    assert new.run_id == "notebook-2"
    assert "idempotency keys are new" in said
    assert Reader(store).current("notebook") == "notebook-2"
    store.close()
    assert run_all(notebook) == ["b", "c"]
    assert notebook.session.run_id == "notebook-2"
    assert notebook.names["z"] == 8
    assert run_all(notebook) == []


def test_runs_tell_what_a_fork_was_forked_from_and_what_made_it(
    notebook: Notebook, tmp_path: Path
) -> None:
    run_all(notebook)
    store = closed(notebook, tmp_path)
    assert "forked from" not in plain(runs_page(runs(Reader(store))))
    new, _ = branches.fork(store, Reader(store).run("notebook-1"), "b")
    found = runs(Reader(store))
    assert [line["forked_from"] for line in found] == ["", "notebook-1"]
    head, first, second = plain(runs_page(found)).splitlines()
    at = head.index("forked from")
    assert (first[at:].split()[0], second[at:].split()[0]) == ("-", "notebook-1")
    assert new.made_with == Reader(store).run("notebook-1").made_with
    assert explain(Reader(store), new, "b")["last"] is None
    store.close()


def test_packs_of_a_fork_survive_gc_and_the_end_of_the_old_records(
    notebook: Notebook, tmp_path: Path
) -> None:
    run_all(notebook)
    store = closed(notebook, tmp_path)
    branches.fork(store, Reader(store).run("notebook-1"), "c")
    users = {user for key in store.keys("pack/") for user in store.get(key)["users"]}
    assert {"step/notebook-2/a", "step/notebook-2/b"} <= users
    assert "step/notebook-2/c" not in users
    # Whatever becomes of the old run, the new one rests on its own records.
    for name in STEPS:
        store.transact(lambda tx, name=name: tx.delete(f"step/notebook-1/{name}"))
    collect(store)
    store.close()
    assert run_all(notebook) == ["c"]
    assert notebook.names["x"].sum() == np.arange(200_000).sum()


def test_fork_takes_decisions_of_the_steps_before_and_no_others(
    notebook: Notebook, tmp_path: Path
) -> None:
    run_all(notebook)
    store = closed(notebook, tmp_path)
    branches.fork(store, Reader(store).run("notebook-1"), "c", "again", "4")
    reader = Reader(store)
    found = reader.decisions("again")
    assert [(d.name, d.run_id) for d in found] == [("more", "again")]
    assert reader.run("again").version == "4"
    assert reader.plan("again") == reader.plan("notebook-1")
    assert set(reader.steps("again")) == {"a", "b"}
    assert {r.run_id for r in reader.steps("again").values()} == {"again"}
    for run_id in ("again", "notebook-1"):
        _, line = reader.history(run_id)[-1]
        assert (line.kind, line.detail["to"]) == ("forked", "again")
    store.close()


def test_fork_that_fails_leaves_nothing(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(notebook)
    store = closed(notebook, tmp_path)
    before = {key: store.get_bytes(key) for key in store.keys("")}

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(forks, "_take_rows", fail)
    with pytest.raises(MemoryError):
        branches.fork(store, Reader(store).run("notebook-1"), "b")
    assert {key: store.get_bytes(key) for key in store.keys("")} == before
    store.close()


def test_fork_of_an_unknown_step_or_under_a_used_id_is_refused(
    notebook: Notebook, tmp_path: Path
) -> None:
    run_all(notebook)
    store = closed(notebook, tmp_path)
    run = Reader(store).run("notebook-1")
    with pytest.raises(NotFound, match="no step 'nope'"):
        branches.fork(store, run, "nope")
    with pytest.raises(BadStep, match="exists already"):
        branches.fork(store, run, "b", "notebook-1")
    assert [r.run_id for r in Reader(store).runs()] == ["notebook-1"]
    store.close()


def test_kernel_goes_on_in_the_fork_that_it_made(notebook: Notebook) -> None:
    run_all(notebook)
    notebook.run("%nbckpt fork --from c --run-id other")
    notebook.run(STEPS["c"].replace("ran.append('c')", "_ = 0"))
    assert notebook.session.run_id == "other"
    assert notebook.decision("c") == "Run"


MAKES = "%%step a\nPath('out.txt').write_text('a')\nx = 1"
OVER = "%%step c\nPath('out.txt').write_text('c')\nz = x"
"""It overwrites the file of the step above, unread."""


def ran(notebook: Notebook, *sources: str) -> dict[str, str]:
    """Run cells in a new kernel; return what was decided of each step."""
    notebook.restart()
    notebook.run("import os\nfrom pathlib import Path")
    for source in sources:
        notebook.run(source)
    return {name: type(one).__name__ for name, one in notebook.runner.last.items()}


def forked(notebook: Notebook, folder: Path, step: str = "c") -> None:
    """Begin a run from a step of the notebook's current one."""
    store = closed(notebook, folder)
    reader = Reader(store)
    branches.fork(store, reader.run(reader.current("notebook") or ""), step)
    store.close()


def test_step_before_a_fork_is_skipped_though_a_later_one_wrote_over_its_file(
    notebook: Notebook, tmp_path: Path
) -> None:
    ran(notebook, MAKES, OVER)
    forked(notebook, tmp_path)
    forked(notebook, tmp_path)
    assert ran(notebook, MAKES, OVER) == {"a": "Skip", "c": "Run"}
    assert ran(notebook, MAKES, OVER) == {"a": "Skip", "c": "Skip"}
    assert notebook.session.run_id == "notebook-3"


def test_without_its_claims_the_step_before_runs_again(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the test above can fail."""
    monkeypatch.setattr(forks, "_take_claims", lambda *_: None)
    ran(notebook, MAKES, OVER)
    forked(notebook, tmp_path)
    assert ran(notebook, MAKES, OVER) == {"a": "Run", "c": "Run"}


def test_step_that_was_cut_off_at_a_file_explains_it_in_a_fork_too(
    notebook: Notebook, tmp_path: Path
) -> None:
    ran(notebook, MAKES)
    assert isinstance(notebook.error(f"{OVER}\n1 / 0"), ZeroDivisionError)
    forked(notebook, tmp_path)
    assert ran(notebook, MAKES, OVER) == {"a": "Skip", "c": "Run"}


def test_file_that_a_later_step_had_read_and_changed_is_made_again(
    notebook: Notebook, tmp_path: Path
) -> None:
    """Skipped, the step above would leave what the later one adds to once more."""
    adds = "%%step c\nwas = Path('out.txt').read_text()\nPath('out.txt').write_text(was + 'c')"
    ran(notebook, MAKES, adds)
    forked(notebook, tmp_path)
    assert ran(notebook, MAKES, adds) == {"a": "Run", "c": "Run"}
    assert (tmp_path / "out.txt").read_text() == "ac"


def test_folder_that_a_step_listed_is_explained_in_a_fork(
    notebook: Notebook, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    lists = "%%step a\nx = os.listdir('in')"
    puts = "%%step c\nos.mkdir('in/sub')\nPath('in/new').write_text('c')"
    ran(notebook, lists, puts)
    forked(notebook, tmp_path)
    tries = puts.replace("os.mkdir", "os.path.isdir")
    assert ran(notebook, lists, tries) == {"a": "Skip", "c": "Run"}


def test_file_is_explained_only_until_the_step_of_the_fork_has_run(
    notebook: Notebook, tmp_path: Path
) -> None:
    ran(notebook, MAKES, OVER)
    forked(notebook, tmp_path)
    other = "%%step c\nz = x + 1"
    assert ran(notebook, MAKES, other) == {"a": "Skip", "c": "Run"}
    assert ran(notebook, MAKES, other) == {"a": "Run", "c": "Skip"}
    assert (tmp_path / "out.txt").read_text() == "a"


def test_step_that_a_fork_begins_at_counts_as_never_begun(
    notebook: Notebook, tmp_path: Path
) -> None:
    ran(notebook, MAKES, OVER)
    forked(notebook, tmp_path)
    store = Store(tmp_path / ".nbckpt", load_secret())
    data = status(Reader(store), Reader(store).run("notebook-2"))
    store.close()
    assert (data["state"], data["done"]) == ("open", 1)
    (_, c) = data["steps"]
    assert (c["state"], c["attempt"], c["seconds"]) == ("pending", 0, 0.0)
    stops = OVER.replace("step c", "step c --stop-on-redo")
    assert ran(notebook, MAKES, stops) == {"a": "Skip", "c": "Run"}
    attempt = notebook.journal.attempt("notebook-2", "c")
    assert attempt is not None
    assert attempt.attempt == 1


def test_cancelled_run_is_not_resumed_and_says_how_to_go_on(
    notebook: Notebook, tmp_path: Path
) -> None:
    run_all(notebook)
    store = closed(notebook, tmp_path)
    run = Reader(store).run("notebook-1")
    assert "--fresh" in branches.cancel(store, run)
    assert (
        status(Reader(store), Reader(store).run("notebook-1"))["state"] == "cancelled"
    )
    with pytest.raises(AlreadySettled, match="cancelled already"):
        branches.cancel(store, run)
    store.close()
    notebook.restart()
    error: Any = notebook.error("%%step a\nx = 1")
    assert isinstance(error, StopForHuman)
    assert "cancelled by" in error.what
    assert "--fresh" in error.remedy
    assert "nbckpt fork notebook-1 --from STEP" in error.remedy
    assert run_all(notebook, "%nbckpt start --fresh") == ["a", "b", "c"]
    assert notebook.session.run_id == "notebook-2"


def test_living_holder_of_a_cancelled_run_is_fenced_out_and_told(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.run("%%step a\nx = 1")
    other = Store(tmp_path / ".nbckpt", load_secret())
    token = notebook.session.journal.token
    said = branches.cancel(other, Reader(other).run("notebook-1"))
    assert "its holder is told" in said
    error = notebook.error("%%step b\ny = 2")
    assert isinstance(error, Fenced)
    assert "cancelled by" in str(error)
    lease = Reader(other).lease("notebook-1")
    assert lease is not None
    assert lease.token == token + 1
    assert Reader(other).step("notebook-1", "b") is None
    other.close()


def test_step_under_way_is_cancelled_with_its_run(
    notebook: Notebook, tmp_path: Path
) -> None:
    notebook.run("import nbckpt")
    notebook.error("%%step a\nnbckpt.ask('ok?')")
    store = closed(notebook, tmp_path)
    branches.cancel(store, Reader(store).run("notebook-1"))
    attempt = Reader(store).attempt("notebook-1", "a")
    assert attempt is not None
    assert attempt.state is StepState.CANCELLED
    assert Reader(store).run("notebook-1").state is RunState.CANCELLED
    store.close()


def test_run_that_is_cancelled_while_it_is_opened_is_not_taken(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the run and its lease somebody cancels it."""
    run_all(notebook)
    notebook.restart()

    def cancel(*_: object) -> None:
        store = Store(tmp_path / ".nbckpt", load_secret())
        branches.cancel(store, Reader(store).run("notebook-1"))
        store.close()

    monkeypatch.setattr("nbckpt.runs.opening.check_version", cancel)
    assert isinstance(notebook.error("%%step a\nx = 1"), StopForHuman)
    assert not notebook.session.is_held


def test_other_version_stops_with_three_ways_out_and_the_fork_is_one(
    notebook: Notebook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_all(notebook, "%nbckpt start --version 3")
    notebook.session.release()
    notebook.restart()
    error: Any = notebook.error("%nbckpt start --version 4")
    assert isinstance(error, StopForHuman)
    assert "--version 3;" in error.remedy
    assert "nbckpt fork notebook-1 --from STEP --version 4" in error.remedy
    assert "--fresh" in error.remedy
    notebook.session.release()
    capsys.readouterr()
    line = "fork notebook-1 --from b --version 4"
    code, out, err = call(capsys, *line.split(), "--store", str(tmp_path / ".nbckpt"))
    assert code == 0, err
    assert "notebook-2 begins from run notebook-1: it has a and" in out
    assert run_all(notebook, "%nbckpt start --version 4") == ["b", "c"]


def test_command_cancels_once(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    run_all(notebook)
    notebook.session.release()
    capsys.readouterr()
    assert call(capsys, "cancel", "notebook-1")[0] == 0
    code, _, err = call(capsys, "cancel", "notebook-1")
    assert code == 1
    assert "cancelled already" in err


def test_completed_run_is_not_cancelled_by_mistake(
    notebook: Notebook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing of it is left to do; cancelled, Run All would stop."""
    run_all(notebook)
    store = closed(notebook, tmp_path)
    steps = tuple(PlannedStep(n, name, "") for n, name in enumerate(STEPS, 1))
    plan = PlanRecord(steps, "notebook").to_json()
    store.transact(lambda transaction: transaction.put("plan/notebook-1", plan))
    store.close()
    capsys.readouterr()
    code, out, err = call(capsys, "cancel", "notebook-1")
    assert (code, out) == (1, "")
    assert err == (
        "nbckpt: run notebook-1 is completed: nothing of it is left to cancel. To archive "
        "it: nbckpt finish notebook-1; to do all again: --fresh\n"
    )
