"""What a step made under a former name: it stops for a person, who says what counts."""

from __future__ import annotations

import builtins
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.effects import calls, transactions
from nbckpt.errors import BadStep, StopForHuman
from nbckpt.records import EffectState
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.verbs.prepare.planning import plan_notebook
from tests.notebook import Notebook, write_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL = """%%step {name} --effects bank
import nbckpt
paid = nbckpt.effect("charge", lambda key: pay(key), request=1)
"""
ROWS = """%%step {name} --effects bank
import nbckpt
with nbckpt.transaction(bank, "charge") as charge:
    if charge.pending:
        pay(charge.key)
del charge
"""
KINDS = {"call": CALL, "transaction": ROWS}


@pytest.fixture
def payments(monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Let steps pay: once per key, in a database of their own."""
    with closing(sqlite3.connect("bank.db", isolation_level=None)) as bank:
        bank.execute("CREATE TABLE payments (key TEXT)")

        def pay(key: str) -> int:
            bank.execute("INSERT INTO payments VALUES (?)", (key,))
            return len(keys(bank))

        monkeypatch.setattr(builtins, "pay", pay, raising=False)
        monkeypatch.setattr(builtins, "bank", bank, raising=False)
        yield bank


def keys(bank: sqlite3.Connection) -> list[str]:
    return [row[0] for row in bank.execute("SELECT key FROM payments")]


@pytest.fixture(params=KINDS)
def pays(request: pytest.FixtureRequest) -> str:
    """Return the source of a step that pays, through a call or in a transaction."""
    return KINDS[request.param]


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Notebook
) -> Notebook:
    """Return a kernel that knows its notebook ``etl.ipynb``."""
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(tmp_path / "etl.ipynb"))
    write_cells()
    notebook.restart()
    return notebook


@pytest.fixture
def charged(notebook: Notebook, payments: sqlite3.Connection, pays: str) -> str:
    """Return the key under which a step paid, which bears another name then."""
    write_cells(pays.format(name="pay"))
    notebook.restart()
    notebook.run(pays.format(name="pay"))
    write_cells(pays.format(name="bill"))
    notebook.restart()
    (key,) = keys(payments)
    return key


@pytest.mark.parametrize(("said", "payments_made"), [("--done", 1), ("--redo", 2)])
@pytest.mark.usefixtures("charged")
def test_renamed_step_stops_until_a_person_says_what_counts(
    notebook: Notebook,
    payments: sqlite3.Connection,
    pays: str,
    said: str,
    payments_made: int,
) -> None:
    (key,), bill = keys(payments), pays.format(name="bill")
    stopped: Any = notebook.error(bill)
    assert isinstance(stopped, StopForHuman)
    assert "step pay, which the notebook has no more, made" in stopped.what
    assert f"nbckpt resolve etl-1 {key} --done" in stopped.remedy
    assert keys(payments) == [key]
    notebook.run(f"%nbckpt resolve {key} {said}")
    notebook.run(bill)
    assert len(keys(payments)) == payments_made
    assert notebook.names.get("paid", payments_made) == payments_made
    notebook.restart()
    notebook.run(bill)
    assert notebook.decision("bill") == "Skip"
    notebook.run("%nbckpt rerun bill")
    notebook.run(bill)
    assert len(keys(payments)) == payments_made


def test_effect_that_moved_to_another_step_stops_as_well(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    whole, rest = pays.format(name="load") + "x = 1", "%%step load\nx = 1"
    bill = pays.format(name="bill")
    write_cells(whole)
    notebook.restart()
    notebook.run(whole)
    write_cells(rest, bill)
    notebook.restart()
    notebook.run(rest)
    stopped: Any = notebook.error(bill)
    assert isinstance(stopped, StopForHuman)
    assert "step load, which asks for it no more, made" in stopped.what
    assert len(keys(payments)) == 1


def test_effect_that_its_step_still_asks_for_stops_no_other_of_its_name(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    load, bill = pays.format(name="load"), pays.format(name="bill")
    write_cells(load)
    notebook.restart()
    notebook.run(load)
    write_cells(load + "x = 1", bill)
    notebook.restart()
    notebook.run(load + "x = 1")
    notebook.run(bill)
    assert len(keys(payments)) == 2


@pytest.mark.usefixtures("charged")
def test_step_that_gets_its_old_name_again_is_skipped(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    assert isinstance(notebook.error(pays.format(name="bill")), StopForHuman)
    write_cells(pays.format(name="pay"))
    notebook.restart()
    notebook.run(pays.format(name="pay"))
    assert (len(keys(payments)), notebook.decision("pay")) == (1, "Skip")


@pytest.mark.usefixtures("charged")
def test_other_effect_of_a_new_step_is_performed(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    notebook.run(pays.format(name="bill").replace('"charge"', '"other"'))
    assert len(keys(payments)) == 2


@pytest.mark.parametrize("pays", [CALL])
@pytest.mark.usefixtures("charged")
def test_other_request_of_a_new_step_is_performed(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    notebook.run(pays.format(name="bill").replace("est=1", "est=2"))
    assert len(keys(payments)) == 2


@pytest.mark.parametrize("pays", [ROWS])
def test_rows_that_are_gone_from_the_database_stop_nothing(
    notebook: Notebook, payments: sqlite3.Connection, pays: str, charged: str
) -> None:
    """A database that was put back from a copy: its rows are the truth."""
    payments.execute("DELETE FROM payments")
    payments.execute("DELETE FROM nbckpt_completed")
    notebook.run(pays.format(name="bill"))
    (key,) = keys(payments)
    assert key != charged


@pytest.mark.parametrize("pays", [ROWS])
def test_rows_stop_a_renamed_step_where_our_record_is_missing(
    notebook: Notebook, payments: sqlite3.Connection, pays: str, charged: str
) -> None:
    """As after a kill between the commit and our record; then the name was changed."""
    bill = pays.format(name="bill")
    notebook.run("%nbckpt start")
    store = notebook.session.store
    store.transact(lambda tx: tx.delete(f"effect/etl-1/pay/{charged}"))
    assert isinstance(notebook.error(bill), StopForHuman)
    (effect,) = notebook.journal.effects("etl-1", "pay")
    assert (effect.state, effect.how) == (EffectState.DONE, "row")
    notebook.run(f"%nbckpt resolve {charged} --done")
    notebook.run(bill)
    assert keys(payments) == [charged]


@pytest.mark.parametrize("pays", [ROWS])
def test_rows_count_again_where_the_record_of_that_was_lost(
    notebook: Notebook, payments: sqlite3.Connection, pays: str, charged: str
) -> None:
    """As after a kill between the two writes of taking over."""
    bill = pays.format(name="bill")
    notebook.error(bill)
    notebook.run(f"%nbckpt resolve {charged} --done")
    notebook.run(bill)
    payments.execute("DELETE FROM nbckpt_completed WHERE key <> ?", (charged,))
    notebook.run("%nbckpt rerun bill")
    notebook.run(bill)
    assert keys(payments) == [charged]


def test_effect_that_became_a_transaction_is_refused_under_its_name(
    notebook: Notebook, payments: sqlite3.Connection
) -> None:
    write_cells(CALL.format(name="pay"))
    notebook.restart()
    notebook.run(CALL.format(name="pay"))
    write_cells(ROWS.format(name="bill"))
    notebook.restart()
    assert isinstance(notebook.error(ROWS.format(name="bill")), BadStep)
    assert len(keys(payments)) == 1


@pytest.mark.usefixtures("charged")
def test_without_that_look_it_happens_once_more(
    notebook: Notebook,
    payments: sqlite3.Connection,
    pays: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: the tests above can fail."""
    for module in (calls, transactions):
        monkeypatch.setattr(module, "takes_over", lambda *_: False)
    notebook.run(pays.format(name="bill"))
    assert len(keys(payments)) == 2


def test_plan_foretells_the_stop_until_a_person_has_spoken(
    notebook: Notebook, pays: str, charged: str
) -> None:
    write_cells(pays.format(name="bill"), "%%step c\nx = 1")
    assert foretold(notebook) == {"bill": "stop", "c": "unknown"}
    (line, _) = foreseen(notebook)["steps"]
    assert "step pay, which the notebook has no more" in line["reason"]
    assert f"nbckpt resolve etl-1 {charged} --done" in line["reason"]
    notebook.error(pays.format(name="bill"))
    assert foretold(notebook)["bill"] == "stop"
    notebook.run(f"%nbckpt resolve {charged} --done")
    assert foretold(notebook)["bill"] == "run"


@pytest.mark.usefixtures("charged")
def test_plan_foretells_no_stop_of_other_code_or_the_old_name(
    notebook: Notebook, pays: str
) -> None:
    write_cells(pays.format(name="bill") + "more = 1")
    assert foretold(notebook) == {"bill": "run"}
    write_cells(pays.format(name="pay"))
    assert foretold(notebook) == {"pay": "skip"}


def test_plan_knows_the_code_of_a_step_that_never_completed(
    notebook: Notebook, payments: sqlite3.Connection
) -> None:
    body = CALL + "1 / paid_twice"
    write_cells(body.format(name="pay"))
    notebook.restart()
    notebook.error(body.format(name="pay"))
    write_cells(body.format(name="bill"))
    assert len(keys(payments)) == 1
    assert foretold(notebook) == {"bill": "stop"}


def foreseen(notebook: Notebook) -> Any:
    store = notebook.session.open_store()
    try:
        return plan_notebook(Reader(store), Path("etl.ipynb"))
    finally:
        store.close()


def foretold(notebook: Notebook) -> dict[str, str]:
    return {s["name"]: s["prediction"] for s in foreseen(notebook)["steps"]}


@pytest.fixture
def paying(notebook: Notebook, payments: sqlite3.Connection, pays: str) -> str:
    """Return the key under which a step paid, in the first cell of this kernel."""
    write_cells(pays.format(name="pay"))
    notebook.restart()
    notebook.show_cell("one")
    notebook.run(pays.format(name="pay"))
    (key,) = keys(payments)
    return key


def test_cell_that_is_renamed_and_run_again_in_one_kernel_stops_as_well(
    notebook: Notebook, payments: sqlite3.Connection, pays: str, paying: str
) -> None:
    assert isinstance(notebook.error(pays.format(name="bill")), StopForHuman)
    notebook.run(pays.format(name="pay"))
    assert (keys(payments), notebook.decision("pay")) == ([paying], "Skip")


@pytest.mark.usefixtures("paying")
def test_same_effect_of_another_cell_is_performed(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    notebook.show_cell("two")
    notebook.run(pays.format(name="bill"))
    assert len(keys(payments)) == 2


def test_steps_that_may_have_made_it_are_looked_for_once_in_a_body(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, read = [0], Journal.attempts

    def attempts(journal: Journal, run_id: str) -> Any:
        looks[0] += 1
        return read(journal, run_id)

    monkeypatch.setattr(Journal, "attempts", attempts)
    body = "ask = nbckpt.effect\nn = [ask(str(i), lambda: seen()) for i in range(3)]"
    write_cells(f"%%step pay\n{body}")
    notebook.restart()
    monkeypatch.setattr(builtins, "seen", lambda: looks[0], raising=False)
    notebook.run("import nbckpt")
    notebook.run(f"%%step pay\n{body}")
    assert len({*notebook.names["n"]}) == 1


def test_effect_stands_unless_it_did_not_happen_or_is_to_be_redone(
    notebook: Notebook, pays: str, charged: str
) -> None:
    notebook.error(pays.format(name="bill"))
    (effect,) = notebook.journal.effects("etl-1", "pay")
    assert effect.stands
    assert effect.is_in_doubt
    assert not replace(effect, state=EffectState.FAILED).stands
    notebook.run(f"%nbckpt resolve {charged} --redo")
    (effect,) = notebook.journal.effects("etl-1", "pay")
    assert not effect.stands


SHARED = "counts as done by run notebook-1, which all kernels of this folder share"


@pytest.mark.parametrize(
    ("start", "is_told"), [("", True), ("%nbckpt start orders", False)]
)
def test_kernel_without_a_notebook_tells_whose_effects_count_once(
    notebook: Notebook,
    payments: sqlite3.Connection,
    pays: str,
    monkeypatch: pytest.MonkeyPatch,
    start: str,
    is_told: bool,
) -> None:
    """Another program in this folder may have made them, in a step of the same name."""
    monkeypatch.delenv("NBCKPT_NOTEBOOK")
    mine, other = (pays.format(name="pay") + f"n = {n}" for n in (1, 2))
    for source in (mine, other):
        notebook.restart()
        notebook.run(start)
        notebook.told()
        notebook.run(source)
        told = notebook.told()
        notebook.run("%nbckpt rerun pay")
        notebook.run(source)
        assert (SHARED in told) is (is_told and source is other)
        assert SHARED not in notebook.told()
    assert len(keys(payments)) == 1


def test_kernel_that_knows_its_notebook_tells_nothing_of_it(
    notebook: Notebook, payments: sqlite3.Connection, pays: str
) -> None:
    write_cells(pays.format(name="pay"))
    for _ in range(2):
        notebook.restart()
        notebook.run(pays.format(name="pay"))
        notebook.run("%nbckpt rerun pay")
        notebook.told()
    notebook.run(pays.format(name="pay"))
    assert "counts as done by run" not in notebook.told()
    assert len(keys(payments)) == 1
