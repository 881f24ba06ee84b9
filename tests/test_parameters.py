"""The parameters of a run: kept for it, and others stop where effects would be shared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli, headless
from nbckpt.errors import BadStep, StopForHuman
from nbckpt.headless import passes, placing
from nbckpt.records import EffectRecord, EffectState
from nbckpt.runs import parameters
from nbckpt.verbs.finding.opening import changing, looking
from tests.notebook import write_cells

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

DAY_1, DAY_2 = {"DAY": "2026-11-29"}, {"DAY": "2026-11-30"}


class Etl:
    """A notebook whose kernels only note which parameters they were given."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "etl.ipynb"
        self.given: list[str] = []
        self.said: list[str] = []
        write_cells("%load_ext nbckpt", "%%step a\nx = 1", file=str(self.path))

    def start(self, parameters: dict[str, str], **order: Any) -> str:
        """Start a run; return what its first cell sets, and the run."""
        asked = headless.Order(self.path, parameters=parameters, **order)
        self.said.clear()
        assert headless.run(asked, self.said.append, self.said.append) == 0
        run_id = self.said[0].partition(":")[0].removeprefix("run ")
        if self.said[0].startswith("parameters"):
            run_id = self.said[1].partition(":")[0].removeprefix("run ")
        return f"{run_id}: {self.given[-1]}"

    def stopped(self, parameters: dict[str, str], **order: Any) -> StopForHuman:
        before = len(self.given)
        with pytest.raises(StopForHuman) as caught:
            self.start(parameters, **order)
        assert len(self.given) == before
        return caught.value

    def pay(self, state: EffectState = EffectState.DONE) -> None:
        """Let the run have an effect."""
        one = EffectRecord("etl-1", "a", "pay", "", "a.pay-1", state, 1, 1, 1, 1)
        with changing(self.path.parent / ".nbckpt") as store:
            key = f"effect/etl-1/a/{one.key}"
            store.transact(lambda tx: tx.put(key, one.to_json()))


@pytest.fixture
def etl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Etl:
    monkeypatch.chdir(tmp_path)
    found = Etl(tmp_path)

    def run(through: passes.Pass) -> passes.End:
        first = through._document.cells[0].source
        found.given.append(first.partition("\n")[2] if "DAY" in first else "nothing")
        return passes.End("completed")

    monkeypatch.setattr(passes.Pass, "run", run)
    return found


FIRST, SECOND = "etl-1: DAY = '2026-11-29'", "DAY = '2026-11-30'"


@pytest.mark.parametrize("state", [EffectState.DONE, EffectState.INTENT])
def test_other_parameters_stop_a_run_that_has_effects(
    etl: Etl, state: EffectState
) -> None:
    assert etl.start(DAY_1) == FIRST
    etl.pay(state)
    error = etl.stopped(DAY_2)
    assert "run etl-1 has other parameters than last: DAY" in error.what
    assert "(pay) would count as done for these, too" in error.what
    for way in ("--run-id NEW", "--fresh", "--run-id etl-1", "without -p"):
        assert way in error.remedy
    with looking(etl.path.parent / ".nbckpt") as reader:
        _, line = reader.history("etl-1")[-1]
    assert (line.kind, line.reason) == ("stopped", "other parameters than last: DAY")
    assert etl.start(DAY_1) == FIRST


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ({"run_id": "etl-2026-11-30"}, f"etl-2026-11-30: {SECOND}"),
        ({"fresh": True}, f"etl-2: {SECOND}"),
        ({"run_id": "etl-1"}, f"etl-1: {SECOND}"),
        ({"overlap": "concurrent"}, f"etl-2: {SECOND}"),
    ],
)
def test_each_way_on_from_that_stop_leads_on(
    etl: Etl, order: dict[str, Any], expected: str
) -> None:
    etl.start(DAY_1)
    etl.pay()
    etl.stopped(DAY_2)
    assert etl.start(DAY_2, **order) == expected
    assert etl.start({}) == expected


def test_without_parameters_a_run_goes_on_with_its_own(etl: Etl) -> None:
    """So the command that every page shows goes on with the right ones."""
    etl.start(DAY_1)
    etl.pay()
    assert etl.start({}) == FIRST
    assert etl.said[0] == "parameters of run etl-1: DAY"
    assert etl.start({}, run_id="etl-1") == FIRST


@pytest.mark.parametrize("other", [DAY_1 | {"N": "3"}, {"N": "3"}])
def test_more_or_fewer_parameters_are_others_too(
    etl: Etl, other: dict[str, str]
) -> None:
    etl.start(DAY_1)
    etl.pay()
    assert "N" in etl.stopped(other).what


def test_run_that_had_none_stops_as_well(etl: Etl) -> None:
    assert etl.start({}) == "etl-1: nothing"
    etl.pay()
    etl.stopped(DAY_1)


def test_run_without_effects_goes_on_with_other_parameters(etl: Etl) -> None:
    etl.start(DAY_1)
    assert etl.start(DAY_2) == f"etl-1: {SECOND}"
    etl.pay(EffectState.FAILED)
    assert etl.start(DAY_1) == FIRST


def test_without_that_look_both_days_share_their_effects(
    etl: Etl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the tests above can fail."""
    monkeypatch.setattr(placing, "settled", lambda _reader, _run, given, **_: given)
    etl.start(DAY_1)
    etl.pay()
    assert etl.start(DAY_2) == f"etl-1: {SECOND}"


def test_credential_among_the_parameters_is_not_stored_and_must_be_given_again(
    etl: Etl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-4711-secret")
    given = DAY_1 | {"TOKEN": "tok-4711-secret"}
    etl.start(given)
    etl.pay()
    with looking(etl.path.parent / ".nbckpt") as reader:
        placement = reader.placement("etl-1")
    assert placement is not None
    assert "tok-4711-secret" not in str(placement.to_json())
    with pytest.raises(BadStep, match="TOKEN of run etl-1 holds a credential"):
        etl.start({})
    assert etl.start(given).startswith(FIRST)


def test_command_stops_with_3(etl: Etl, capsys: pytest.CaptureFixture[str]) -> None:
    etl.start(DAY_1)
    etl.pay()
    with pytest.raises(SystemExit) as left:
        cli.main(["run", "etl.ipynb", "-p", "DAY", "2026-11-30"])
    assert left.value.code == 3
    assert "--fresh" in capsys.readouterr().err


class Days:
    """A notebook that papermill runs, with one effect; each start is another kernel."""

    def __init__(self, notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
        self.notebook, self.monkeypatch = notebook, monkeypatch
        self.paid: list[str] = []

    def pay(self, given: dict[str, str] | None, run_id: str = "") -> list[str]:
        """Run the step with parameters; return the keys under which was paid."""
        text = json.dumps(given) if given is not None else ""
        self.monkeypatch.setenv("NBCKPT_PARAMETERS", text)
        self.monkeypatch.setenv("NBCKPT_RUN_ID", run_id)
        self.notebook.restart()
        self.notebook.names["paid"] = self.paid
        self.notebook.run(f"import nbckpt\nday = {(given or {}).get('DAY', '0')!r}")
        self.notebook.run(
            "%%step pay --ignore paid\nlen(day)\n"
            "nbckpt.effect('pay', lambda key: paid.append(key), dedup='7d')"
        )
        return self.paid


@pytest.fixture
def days(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> Days:
    return Days(notebook, monkeypatch)


def test_other_parameters_from_papermill_stop_a_run_that_has_effects(
    days: Days,
) -> None:
    days.pay(DAY_1)
    with pytest.raises(
        StopForHuman, match="has other parameters than last: DAY"
    ) as told:
        days.pay(DAY_2)
    for way in ("another output", "NBCKPT_RUN_ID=notebook-1 papermill"):
        assert way in told.value.remedy
    days.pay(DAY_1)
    assert len(days.paid) == 1


@pytest.mark.parametrize(("run_id", "paid"), [("notebook-1", 1), ("etl-2026-11-30", 2)])
def test_run_that_is_named_for_them_goes_on_with_other_parameters(
    days: Days, run_id: str, paid: int
) -> None:
    days.pay(DAY_1)
    assert len(days.pay(DAY_2, run_id)) == paid
    assert len(days.pay(DAY_2, run_id)) == paid


def test_papermill_without_parameters_means_those_of_the_notebook(days: Days) -> None:
    days.pay({})
    days.pay({})
    with pytest.raises(StopForHuman):
        days.pay(DAY_1)


def test_what_is_not_papermill_is_asked_for_no_parameters(days: Days) -> None:
    days.pay(DAY_1)
    assert len(days.pay(None)) == 1


def test_without_that_look_papermill_shares_the_effects_of_both_days(
    days: Days, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the day of the second start is paid by nobody."""
    monkeypatch.setattr(parameters, "check_given", lambda *_: None)
    days.pay(DAY_1)
    assert len(days.pay(DAY_2)) == 1
