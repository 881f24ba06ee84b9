"""Whose run a notebook goes on with: that of its former name, or of no name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nbckpt.errors import StopForHuman, StoreDamaged
from nbckpt.records import (
    EffectRecord,
    EffectState,
    PlannedStep,
    PlanRecord,
    RunRecord,
    RunState,
)
from nbckpt.runs import adoption
from nbckpt.runs import opening as runs
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def a_plan(*names: str, seen: bool = False) -> PlanRecord:
    steps = tuple(PlannedStep(n, name, "") for n, name in enumerate(names, 1))
    return PlanRecord(steps, "seen" if seen else "notebook")


class Shop:
    """A folder in which Untitled.ipynb ran with the steps load and fit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / ".nbckpt", load_secret())
        self.former = folder / "Untitled.ipynb"
        self.former.touch()
        (folder / "orders.ipynb").touch()
        self.open("Untitled")
        self.put("plan/Untitled-1", a_plan("load", "fit"))

    def put(self, key: str, record: PlanRecord | EffectRecord | RunRecord) -> None:
        self.store.transact(lambda tx: tx.put(key, record.to_json()))

    def open(self, stem: str, run_id: str = "") -> str:
        wanted = RunRecord(run_id, str(self.folder / f"{stem}.ipynb"))
        return runs.open_run(self.store, stem, wanted).run_id

    def resume(self, *steps: str, stem: str = "orders") -> str:
        """Run orders.ipynb; return its run."""
        notebook = str(self.folder / "orders.ipynb")
        plan = a_plan(*(steps or ("load", "fit")))
        adoption.adopt(self.store, stem, notebook, plan)
        return self.open(stem)

    def pay(self, state: EffectState = EffectState.DONE) -> None:
        one = EffectRecord("Untitled-1", "fit", "pay", "", "k", state, 1, 1, 1, 1)
        self.put("effect/Untitled-1/fit/k", one)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path)
    yield found
    found.store.close()


def test_renamed_notebook_goes_on_with_its_run_and_says_so(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.former.unlink()
    assert shop.resume() == "Untitled-1"
    assert capsys.readouterr().err == (
        "nbckpt: run Untitled-1 of Untitled.ipynb, which is gone, goes on here; for a "
        "new one: --fresh\n"
    )
    assert Reader(shop.store).run("Untitled-1").notebook.endswith("orders.ipynb")
    assert shop.resume() == "Untitled-1"
    assert capsys.readouterr().err == ""


def test_new_notebook_of_the_former_name_has_a_run_of_its_own(shop: Shop) -> None:
    shop.former.unlink()
    shop.resume()
    shop.former.touch()
    assert shop.open("Untitled") == "Untitled-2"


def test_copy_beside_its_source_has_a_run_of_its_own(shop: Shop) -> None:
    assert shop.resume() == "orders-1"


def test_notebook_with_other_steps_has_a_run_of_its_own(shop: Shop) -> None:
    shop.former.unlink()
    assert shop.resume("load", "fit", "report") == "orders-1"


def test_cells_that_were_seen_may_be_the_first_ones(shop: Shop) -> None:
    shop.put("plan/Untitled-1", a_plan("load", seen=True))
    shop.former.unlink()
    assert shop.resume() == "Untitled-1"


@pytest.mark.parametrize(
    ("seen", "run_id"), [(True, "Untitled-1"), (False, "orders-1")]
)
def test_notebook_that_was_renamed_and_never_saved_goes_on_with_cells_that_were_seen(
    shop: Shop, seen: bool, run_id: str
) -> None:
    shop.put("plan/Untitled-1", a_plan("load", seen=seen))
    shop.former.unlink()
    notebook = str(shop.folder / "orders.ipynb")
    adoption.adopt(shop.store, "orders", notebook, None)
    assert shop.open("orders") == run_id


@pytest.mark.parametrize("state", [EffectState.DONE, EffectState.INTENT])
def test_effects_stop_for_a_person_who_knows_whether_it_was_renamed(
    shop: Shop, state: EffectState
) -> None:
    shop.pay(state)
    shop.former.unlink()
    with pytest.raises(StopForHuman, match="was it renamed to orders") as told:
        shop.resume()
    assert "(pay) would happen again in a new run" in told.value.what
    assert "--run-id Untitled-1" in told.value.remedy
    assert Reader(shop.store).current("orders") is None


def test_person_who_names_the_run_goes_on_with_it_and_frees_its_name(
    shop: Shop,
) -> None:
    shop.pay()
    shop.former.unlink()
    assert shop.open("orders", "Untitled-1") == "Untitled-1"
    assert shop.resume() == "Untitled-1"
    assert Reader(shop.store).current("Untitled") is None


def test_effects_of_a_completed_run_stop_as_well(shop: Shop) -> None:
    shop.pay()
    former = RunRecord("Untitled-1", str(shop.former), state=RunState.COMPLETED)
    shop.put("run/Untitled-1", former)
    shop.former.unlink()
    with pytest.raises(StopForHuman):
        shop.resume()


def test_effect_that_failed_stops_nobody(shop: Shop) -> None:
    shop.pay(EffectState.FAILED)
    shop.former.unlink()
    assert shop.resume() == "Untitled-1"


def test_damaged_run_of_a_notebook_that_is_there_stops_no_other(shop: Shop) -> None:
    shop.open("bills")
    shop.store.transact(lambda tx: tx._cache.set("run/bills-1", bytes(64)))
    with pytest.raises(StoreDamaged):
        shop.resume()
    (shop.folder / "bills.ipynb").touch()
    adoption.adopt(shop.store, "notebook", "", a_plan("load"))
    assert shop.resume() == "orders-1"


@pytest.mark.parametrize(
    "state",
    [RunState.FINISHED, RunState.CANCELLED, RunState.FROZEN, RunState.COMPLETED],
)
def test_run_that_is_ended_or_completed_goes_on_nowhere(
    shop: Shop, state: RunState
) -> None:
    record = RunRecord("Untitled-1", str(shop.former), state=state)
    shop.put("run/Untitled-1", record)
    shop.former.unlink()
    assert shop.resume() == "orders-1"


def test_run_whose_cells_were_seen_is_never_whole(shop: Shop) -> None:
    """Its kernel was killed after a step: all that it knew of was done."""
    former = RunRecord("Untitled-1", str(shop.former), state=RunState.COMPLETED)
    shop.put("run/Untitled-1", former)
    shop.put("plan/Untitled-1", a_plan("load", seen=True))
    shop.former.unlink()
    assert shop.resume() == "Untitled-1"


def test_store_that_was_moved_with_its_notebook_is_not_renamed(shop: Shop) -> None:
    record = RunRecord("Untitled-1", "/former/place/Untitled.ipynb")
    shop.put("run/Untitled-1", record)
    assert shop.resume() == "orders-1"


def test_job_with_another_output_is_no_renamed_notebook(shop: Shop) -> None:
    shop.former.unlink()
    assert shop.resume(stem="out/tuesday") == "out_tuesday-1"


def test_run_of_a_kernel_without_a_name_is_adopted_by_its_steps(shop: Shop) -> None:
    unnamed = runs.open_run(shop.store, runs.UNNAMED, RunRecord(""))
    shop.put(f"plan/{unnamed.run_id}", a_plan("load"))
    adoption.adopt(shop.store, "empty", "", a_plan())
    adoption.adopt(shop.store, "unknown", "", None)
    assert Reader(shop.store).current("empty") is None
    assert Reader(shop.store).current("unknown") is None
    assert shop.resume("load") == unnamed.run_id


def test_notebook_with_a_run_of_its_own_adopts_none(shop: Shop) -> None:
    assert shop.open("orders") == "orders-1"
    shop.former.unlink()
    assert shop.resume() == "orders-1"
