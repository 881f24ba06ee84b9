"""Transactions in the user's database: with their completion, or not at all."""

from __future__ import annotations

import builtins
import itertools
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy
from sqlalchemy import orm

from nbckpt.effects import transactions
from nbckpt.effects.transactions import receive, relay
from nbckpt.errors import BadStep, Fenced, StopForHuman
from nbckpt.inputs.connections import target_of
from nbckpt.records import EffectState, Lease
from nbckpt.session import Session
from tests.former import a_process, displace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.notebook import Notebook

KINDS = (
    "sqlite", "sqlite immediate", "sqlite autocommit", "sqlite rows",
    "psycopg", "psycopg autocommit", "psycopg dicts",
    "alchemy sqlite", "alchemy postgres", "alchemy autocommit", "session",
)  # fmt: skip
fresh = itertools.count(1)


class Bank:
    """A database with a table of charges, used through one kind of connection."""

    def __init__(self, kind: str, file: Path, postgres: Callable[[], str]) -> None:
        self.kind, self.file = kind, file
        self.is_postgres = "psycopg" in kind or "postgres" in kind
        self.address = postgres() if self.is_postgres else ""
        self.connection = self.connect()
        with closing(self.look()) as look:
            look.execute("CREATE TABLE charges (card TEXT)")
            look.commit()

    def look(self, **options: Any) -> Any:
        """Return a connection of its own."""
        if self.is_postgres:
            return __import__("psycopg").connect(self.address, **options)
        return sqlite3.connect(self.file, **options)

    def connect(self) -> Any:
        options: dict[str, dict[str, Any]] = {
            "sqlite immediate": {"isolation_level": "IMMEDIATE"},
            "sqlite autocommit": {"isolation_level": None},
            "psycopg autocommit": {"autocommit": True},
        }
        if "alchemy" in self.kind or self.kind == "session":
            return self._alchemy()
        found = self.look(**options.get(self.kind, {}))
        if self.kind == "sqlite rows":
            found.row_factory = lambda cursor, row: {"row": row, "of": cursor}
        if self.kind == "psycopg dicts":
            found.row_factory = __import__("psycopg.rows").rows.dict_row
        return found

    def _alchemy(self) -> Any:
        if self.is_postgres:
            url = "postgresql+psycopg://"
            make = {"creator": self.look}
        else:
            url, make = f"sqlite:///{self.file}", {}
        more = {"isolation_level": "AUTOCOMMIT"} if "auto" in self.kind else {}
        self.engine = sqlalchemy.create_engine(url, **make, **more)  # type: ignore[arg-type]
        if self.kind == "session":
            return orm.Session(self.engine)
        return self.engine.connect()

    def charge(self, card: str) -> None:
        sql = f"INSERT INTO charges VALUES ('{card}')"  # noqa: S608
        if "alchemy" in self.kind or self.kind == "session":
            self.connection.execute(sqlalchemy.text(sql))
        else:
            self.connection.execute(sql)

    def rows(self, sql: str = "SELECT card FROM charges") -> list[Any]:
        with closing(self.look()) as look:
            return [row[0] if len(row) == 1 else row for row in look.execute(sql)]

    def commit(self) -> None:
        self.connection.commit()

    def close(self) -> None:
        self.connection.close()
        if hasattr(self, "engine"):
            self.engine.dispose()


@pytest.fixture
def make(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Bank]]:
    made = []

    def database() -> str:
        address: str = request.getfixturevalue("postgres")
        name = f"bank{next(fresh)}"
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(address, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
        return address.replace("dbname=postgres", f"dbname={name}")

    def build(kind: str) -> Bank:
        made.append(Bank(kind, tmp_path / f"bank{next(fresh)}.db", database))
        monkeypatch.setattr(builtins, "bank", made[-1], raising=False)
        return made[-1]

    yield build
    for bank in made:
        bank.close()


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    notebook.run("import nbckpt")
    return notebook


BOOKING = """%%step a --effects bank
with nbckpt.transaction(bank.connection, "pay") as paying:
    pending = paying.pending
    if pending:
        bank.charge("4711")
        paying.emit({"charged": "4711"})
"""


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_committed_once_with_their_completion_and_message(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    bank = make(kind)
    notebook.run(BOOKING)
    assert notebook.names["pending"] is True
    notebook.run("%nbckpt rerun a")
    notebook.run(BOOKING)
    assert notebook.names["pending"] is False
    assert bank.rows() == ["4711"]
    assert bank.rows("SELECT name FROM nbckpt_completed") == ["pay"]
    (effect,) = notebook.journal.effects(notebook.session.run_id)
    assert (effect.state, effect.how) == (EffectState.DONE, "performed")
    (sent,) = bank.rows("SELECT message_id, body FROM nbckpt_outbox")
    assert sent == (f"{effect.key}-1", '{"charged": "4711"}')


def test_transaction_that_is_over_holds_no_connection_and_takes_no_message(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    """Its step is kept and skipped, though the connection is of a plain cell."""
    bank = make("sqlite")
    notebook.run(BOOKING)
    error = notebook.error('%%step b\npaying.emit({"late": 1})')
    assert isinstance(error, BadStep)
    assert "is over; nothing was put in the outbox" in error.what
    assert len(bank.rows("SELECT 1 FROM nbckpt_outbox")) == 1
    notebook.restart()
    notebook.run("import nbckpt")
    notebook.run(BOOKING)
    assert notebook.decision("a") == "Skip"
    assert notebook.names["paying"].pending is True


@pytest.mark.parametrize("kind", KINDS)
def test_error_in_the_body_leaves_nothing(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    bank = make(kind)
    error = notebook.error(f"{BOOKING}    1 / 0")
    assert isinstance(error, ZeroDivisionError)
    for table in ("charges", "nbckpt_completed", "nbckpt_outbox"):
        assert bank.rows(f"SELECT 1 FROM {table}") == []  # noqa: S608
    notebook.run(BOOKING)
    assert bank.rows() == ["4711"]


@pytest.mark.parametrize("kind", KINDS)
def test_row_in_the_database_counts_where_our_record_is_missing(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    """As after a kill between the commit and our record."""
    bank = make(kind)
    notebook.run(BOOKING)
    session = notebook.session
    (key,) = session.store.keys("effect/")
    session.store.transact(lambda tx: tx.delete(key))
    notebook.run("%nbckpt rerun a")
    notebook.run(BOOKING)
    assert bank.rows() == ["4711"]
    (effect,) = notebook.journal.effects(session.run_id)
    assert (effect.state, effect.how) == (EffectState.DONE, "row")


def test_row_that_is_gone_counts_too(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    """A database that was put back from a copy: its rows are the truth."""
    bank = make("sqlite")
    notebook.run(BOOKING)
    with closing(bank.look()) as look:
        look.execute("DELETE FROM nbckpt_completed")
        look.execute("DELETE FROM charges")
        look.execute("DELETE FROM nbckpt_outbox")
        look.commit()
    notebook.run("%nbckpt rerun a")
    notebook.run(BOOKING)
    assert bank.rows() == ["4711"]


@pytest.mark.parametrize("kind", KINDS)
def test_body_that_ignores_pending_still_writes_once(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    bank = make(kind)
    careless = BOOKING.replace("if pending", "if True")
    notebook.run(careless)
    notebook.run("%nbckpt rerun a")
    notebook.run(careless)
    assert bank.rows() == ["4711"]
    assert len(bank.rows("SELECT 1 FROM nbckpt_outbox")) == 1


@pytest.mark.parametrize("kind", [k for k in KINDS if "autocommit" not in k])
def test_open_transaction_with_changes_is_refused_and_left_alone(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    bank = make(kind)
    bank.charge("mine")
    error = notebook.error(BOOKING)
    assert isinstance(error, BadStep)
    assert "holds changes" in str(error)
    bank.commit()
    assert bank.rows() == ["mine"]
    notebook.run(BOOKING)
    assert bank.rows() == ["mine", "4711"]


@pytest.mark.parametrize(
    "kind", ["psycopg", "alchemy sqlite", "alchemy postgres", "session"]
)
def test_open_transaction_that_only_read_is_no_hindrance(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    bank = make(kind)
    sql: Any = "SELECT card FROM charges"
    bank.connection.execute(sql if kind == "psycopg" else sqlalchemy.text(sql))
    notebook.run(BOOKING)
    assert bank.rows() == ["4711"]


def test_session_with_unwritten_objects_and_begin_blocks_are_refused(
    make: Callable[[str], Bank],
) -> None:
    bank = make("session")
    base = type("Base", (orm.DeclarativeBase,), {})
    fields = {
        "__tablename__": "charges",
        "card": orm.mapped_column(sqlalchemy.Text, primary_key=True),
    }
    bank.connection.add(type("Charge", (base,), fields)(card="x"))
    with pytest.raises(BadStep, match="not committed"):
        target_of(bank.connection)
    bank.connection.rollback()
    with bank.engine.begin() as connection, pytest.raises(BadStep, match="begin"):
        target_of(connection)
    bank = make("psycopg")
    with bank.connection.transaction(), pytest.raises(BadStep, match="not ours"):
        target_of(bank.connection).begin()


@pytest.mark.parametrize("connection", [None, object(), "bank.db"])
def test_anything_else_is_refused(connection: Any) -> None:
    with pytest.raises(BadStep, match="can't be used"):
        target_of(connection)


def test_body_that_commits_by_itself_stops_the_run(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    make("sqlite")
    source = f"{BOOKING}    bank.commit()"
    assert isinstance(notebook.error(source), StopForHuman)


def test_psycopg_refuses_a_commit_in_the_body(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    bank = make("psycopg")
    error = notebook.error(f"{BOOKING}    bank.commit()")
    assert type(error).__name__ == "ProgrammingError"
    assert bank.rows() == []


def test_process_that_lost_the_run_begins_nothing(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    bank = make("sqlite")
    notebook.run("%%step z\nz = 1")
    store, run_id = notebook.session.store, notebook.session.run_id

    def lose() -> None:
        lease = Lease.from_json(store.get(f"lease/{run_id}"))
        raised = {**lease.to_json(), "token": lease.token + 1}
        store.transact(lambda tx: tx.put(f"lease/{run_id}", raised))

    bank.lose = lose  # type: ignore[attr-defined]
    error = notebook.error(BOOKING.replace("bank\n", "bank\nbank.lose()\n", 1))
    assert isinstance(error, Fenced)
    assert bank.rows() == []


@pytest.mark.parametrize("kind", ["sqlite", "psycopg"])
def test_two_at_once_complete_it_once(make: Callable[[str], Bank], kind: str) -> None:
    bank = make(kind)
    transactions._make_tables(target_of(bank.connection), transactions.RECEIVED)
    inside, results = threading.Barrier(2), []

    def take() -> None:
        with closing(bank.look()) as look:
            inside.wait(60)
            with receive(look, "m-1") as message:
                if message.pending:
                    look.execute("INSERT INTO charges VALUES ('x')")
                results.append(message.pending)

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [False, True]
    assert bank.rows() == ["x"]


def outbox(notebook: Notebook, kind: str, make: Callable[[str], Bank]) -> Bank:
    """Return a bank whose outbox holds three messages."""
    bank = make(kind)
    emits = "\n".join(f"    if pending: paying.emit({n})" for n in (1, 2))
    notebook.run(BOOKING + emits)
    return bank


@pytest.mark.parametrize("kind", KINDS)
def test_messages_are_sent_in_order_and_once_if_nothing_fails(
    notebook: Notebook, make: Callable[[str], Bank], kind: str
) -> None:
    bank, sent = outbox(notebook, kind, make), []
    assert relay(bank.connection, lambda mid, body: sent.append((mid[-2:], body))) == 3
    assert sent == [("-1", {"charged": "4711"}), ("-2", 1), ("-3", 2)]
    assert relay(bank.connection, lambda *_: sent.append(())) == 0
    assert len(sent) == 3


def test_relay_stops_at_the_first_failure_and_goes_on_there(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    bank = outbox(notebook, "sqlite", make)
    sent: list[Any] = []

    def send(message_id: str, body: Any) -> None:
        sent.append(body)
        if sent == [{"charged": "4711"}, 1]:
            raise TimeoutError(message_id)

    with pytest.raises(TimeoutError):
        relay(bank.connection, send)
    assert relay(bank.connection, send) == 2
    assert sent == [{"charged": "4711"}, 1, 1, 2]


def test_receiver_takes_a_message_once(make: Callable[[str], Bank]) -> None:
    bank = make("sqlite")
    for expected in (True, False):
        with receive(bank.connection, "m-1") as message:
            assert message.pending is expected
            bank.charge("4711")
    assert bank.rows() == ["4711"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs Python 3.12")
def test_connection_that_is_always_in_a_transaction_is_used_if_it_holds_nothing(
    make: Callable[[str], Bank],
) -> None:
    bank = make("sqlite")
    with closing(bank.look(autocommit=False)) as always:
        with receive(always, "m-1"):
            always.execute("INSERT INTO charges VALUES ('x')")
        always.execute("INSERT INTO charges VALUES ('mine')")
        with pytest.raises(BadStep, match="holds changes"), receive(always, "m-2"):
            pass
        always.commit()
        with receive(always, "m-2"):
            pass
    assert bank.rows() == ["x", "mine"]


def test_transaction_and_effect_of_one_name_are_refused(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    make("sqlite")
    notebook.run(BOOKING)
    error = notebook.error("%%step a\nnbckpt.effect('pay', lambda: 1)")
    assert isinstance(error, BadStep)
    assert "another name" in str(error)


FORMER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO charges VALUES ('former')")
print("up", flush=True)
time.sleep(600)
"""


def test_replaced_holder_keeps_no_row_from_its_heir(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    """It was in the middle of the same transaction, and would never have ended it."""
    bank = make("sqlite")
    with a_process(FORMER, str(bank.file)) as process:
        displace(notebook, process)
        notebook.run(BOOKING)
        assert process.poll() is not None
    assert bank.rows() == ["4711"]


def test_without_that_wait_its_heir_finds_the_database_locked(
    notebook: Notebook, make: Callable[[str], Bank], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the test above can fail."""
    monkeypatch.setattr(Session, "alone", lambda _: None)
    bank = make("sqlite")
    bank.connection.execute("PRAGMA busy_timeout = 10")
    with a_process(FORMER, str(bank.file)) as process:
        displace(notebook, process)
        assert "locked" in str(notebook.error(BOOKING))
    assert bank.rows() == []


def test_relay_in_a_step_waits_for_the_replaced_holder_too(
    notebook: Notebook, make: Callable[[str], Bank]
) -> None:
    ends: list[int | None] = []
    make("sqlite")
    notebook.run(BOOKING)
    with a_process() as process:
        displace(notebook, process)
        notebook.session._hold._is_alone = False  # type: ignore[union-attr]
        notebook.names["send"] = lambda *_: ends.append(process.poll())
        notebook.run("%%step b\nsent = nbckpt.relay(bank.connection, send)")
    assert ends == [-signal.SIGINT]
