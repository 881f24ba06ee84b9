"""Effects inside the user's own database: the completion commits with the user's rows.

The row in `nbckpt_completed` of that database is the truth about whether a transaction
happened; the record in our store follows it. Messages that others are to get lie in
`nbckpt_outbox`, in the same transaction, and are sent by `relay` afterwards.

An error in the body rolls everything back. Two processes can't both complete a transaction:
the second waits for the first one's row, even if it does not know yet that it lost its run.
The tables are made on first use, in a transaction of their own.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nbckpt import current
from nbckpt.effects.intents import Intent
from nbckpt.effects.renamed import takes_over
from nbckpt.errors import BadStep, StopForHuman
from nbckpt.inputs.connections import target_of
from nbckpt.records import EffectState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.inputs.connections import Target
    from nbckpt.records import Attempt

COMPLETED, OUTBOX, RECEIVED = "nbckpt_completed", "nbckpt_outbox", "nbckpt_received"
COLUMNS = {
    COMPLETED: "key TEXT PRIMARY KEY, run_id TEXT NOT NULL, step TEXT NOT NULL, "
    "name TEXT NOT NULL, completed_at TEXT NOT NULL",
    OUTBOX: "position {serial}, message_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, "
    "made_at TEXT NOT NULL, sent_at TEXT",
    RECEIVED: "message_id TEXT PRIMARY KEY, received_at TEXT NOT NULL",
}
SERIAL = {
    False: "INTEGER PRIMARY KEY AUTOINCREMENT",
    True: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
}
BATCH = 100


@dataclass(slots=True)
class Transaction:
    """An open transaction in the user's database.

    Attributes
    ----------
    pending : bool
        Whether the body must run. If not, it happened before, and whatever the body
        writes is rolled back.
    key : str
        Its key in `nbckpt_completed`.
    """

    key: str
    pending: bool
    _target: Target | None
    """None once it is over: the name that is left of it holds no connection."""
    _emitted: int = 0

    def emit(self, message: Any) -> str:
        """Put a message in the outbox; it is there if and only if the rows are.

        Parameters
        ----------
        message : object
            JSON values.

        Returns
        -------
        str
            The message's id: the same in every attempt.

        Raises
        ------
        BadStep
            If the transaction is over: the message would not commit with its rows.
        """
        if self._target is None:
            raise BadStep(
                f"the transaction {self.key} is over; nothing was put in the outbox",
                "Call emit inside the with block",
            )
        self._emitted += 1
        message_id = f"{self.key}-{self._emitted}"
        body = json.dumps(message, allow_nan=False)
        if self.pending:
            sql = f"INSERT INTO {OUTBOX} (message_id, body, made_at) VALUES (?, ?, ?)"  # noqa: S608
            self._target.execute(sql, message_id, body, _now())
        return message_id


@contextmanager
def transaction(connection: Any, name: str) -> Iterator[Transaction]:
    """Commit rows in the user's database once in a run, together with their completion.

    Parameters
    ----------
    connection : object
        Of sqlite3, psycopg 3, or SQLAlchemy 2 (`Connection` or `Session`) on one of
        these, without a transaction that holds changes.
    name : str
        What happens; unique in its step (and item).

    Yields
    ------
    Transaction
        Run the body if it is ``pending``; don't commit inside.

    Raises
    ------
    BadStep
        If the connection can't be used for it; nothing was written.
    StopForHuman
        If the body itself ended the transaction, or a step that is gone has made it.

    Examples
    --------
    ::

        with nbckpt.transaction(connection, "import-2026-11") as booking:
            if booking.pending:
                connection.executemany("INSERT INTO orders VALUES (?, ?)", rows)
    """
    place = current.place("transaction")
    # A holder that was replaced may hold the row, and would never let it go.
    place.session.alone()
    intent = Intent(place, name, "transaction")
    place.session.journal.write(lambda _: None, durable=False)
    target, row = target_of(connection), _row(place.attempt, intent)
    _make_tables(target, COMPLETED, OUTBOX)
    _settle_former(target, intent, row)
    with _once(target, COMPLETED, row, name) as pending:
        opened = Transaction(intent.key, pending, target)
        try:
            yield opened
        finally:
            opened._target = None
    # Killed before this line, the row tells the next run that it happened.
    _record(intent, is_new=pending)


def _record(intent: Intent, *, is_new: bool) -> None:
    """Let our record follow the row, which is there."""
    known = intent.record is not None and intent.record.state is EffectState.DONE
    if known and not is_new:
        intent.tell_shared()
        intent.ask()
    else:
        intent.write_done(None, "performed" if is_new else "row")


def _settle_former(target: Target, intent: Intent, row: dict[str, str]) -> None:
    """Stop where a step that is gone committed the same rows, or let them count here."""
    if takes_over(intent, lambda former: _is_former(target, former, intent.key)):
        with _once(target, COMPLETED, row, intent.name):
            pass


def _is_former(target: Target, former: Intent, key: str) -> bool:
    """Tell whether the rows of another step are there, and none under this key."""
    sql = f"SELECT key FROM {COMPLETED} WHERE key IN (?, ?)"  # noqa: S608
    with _own(target):
        found = [row[0] for row in target.execute(sql, former.key, key).fetchall()]
    if found != [former.key]:
        return False
    if former.record is None:  # it was killed between its commit and our record
        former.write_done(None, "row")
    return True


def _row(attempt: Attempt, intent: Intent) -> dict[str, str]:
    """Return the row that tells of a completion."""
    return {
        "key": intent.key, "run_id": attempt.run_id, "step": attempt.step, "name": intent.name,
        "completed_at": _now(),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Receipt:
    """A message as its receiver knows it."""

    message_id: str
    pending: bool
    """Whether it came for the first time; if not, what the body writes is rolled back."""


@contextmanager
def receive(connection: Any, message_id: str) -> Iterator[Receipt]:
    """Take a message once: its id commits with the rows that it leads to.

    Parameters
    ----------
    connection : object
        As for `transaction`, of the receiver's database.
    message_id : str
        From the sender.

    Yields
    ------
    Receipt
        Run the body if it is ``pending``; don't commit inside.

    Raises
    ------
    BadStep
        If the connection can't be used for it; nothing was written.
    StopForHuman
        If the body itself ended the transaction.

    Notes
    -----
    For the consumer, in any process, with or without a notebook: the ids stay in
    `nbckpt_received` of its database. What the body does elsewhere is not undone when
    it raises, and the message then counts as not received.

    Examples
    --------
    ::

        with nbckpt.receive(connection, message["id"]) as receipt:
            if receipt.pending:
                connection.execute("INSERT INTO told VALUES (?)", (message["batch"],))
    """
    target = target_of(connection)
    _make_tables(target, RECEIVED)
    row = {"message_id": message_id, "received_at": _now()}
    with _once(target, RECEIVED, row, message_id) as pending:
        yield Receipt(message_id, pending)


def relay(connection: Any, send: Callable[[str, Any], Any]) -> int:
    """Send the messages of the outbox that were not sent yet, in their order.

    Parameters
    ----------
    connection : object
        As for `transaction`.
    send : callable
        Takes the message's id and the message. When it returns, the message counts as
        sent; what it raises ends the relay, and the message is the next one's first.

    Returns
    -------
    int
        How many were sent.

    Notes
    -----
    Each message is sent at least once: killed after `send`, it is sent again under the
    same id, which `nbckpt.receive` recognises. No transaction is open
    while `send` runs. The order is that in which messages were emitted; among
    transactions that run at the same time it is not defined.
    """
    target, sent = target_of(connection), 0
    if (place := current.running()) is not None:
        place.session.alone()
    _make_tables(target, OUTBOX)
    while messages := _unsent(target):
        for position, message_id, body in messages:
            send(message_id, json.loads(body))
            sql = f"UPDATE {OUTBOX} SET sent_at = ? WHERE position = ?"  # noqa: S608
            with _own(target):
                target.execute(sql, _now(), position)
            sent += 1
    return sent


def _unsent(target: Target) -> list[tuple[int, str, str]]:
    """Return the next messages that were not sent."""
    columns = "position, message_id, body"
    sql = (
        f"SELECT {columns} FROM {OUTBOX} WHERE sent_at IS NULL "  # noqa: S608
        f"ORDER BY position LIMIT {BATCH}"
    )
    with _own(target):
        return [tuple(row) for row in target.execute(sql).fetchall()]


@contextmanager
def _once(target: Target, table: str, row: dict[str, str], name: str) -> Iterator[bool]:
    """Commit a row together with what is written inside, unless it is there already."""
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    sql = f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608
    with _own(target) as end:
        # First: whoever comes second waits here, and finds that it happened.
        pending = target.execute(sql, *row.values()).rowcount == 1
        end.append(pending)
        yield pending
        if not target.is_open:
            raise StopForHuman(
                f"{name}: its body ended the transaction itself, so that its rows were "
                f"not committed as one, and {table} counts it as done",
                "Don't commit inside. Look at the rows; to have it run again, delete "
                f"its row from {table}",
            )


@contextmanager
def _own(target: Target) -> Iterator[list[bool]]:
    """Open a transaction and end it; rolled back on errors, and where False is noted."""
    target.begin()
    keeps: list[bool] = []
    try:
        yield keeps
        if all(keeps):
            target.commit()
    except BaseException:
        target.rollback()
        raise
    if not all(keeps):
        target.rollback()


def _make_tables(target: Target, *tables: str) -> None:
    """Make tables that are not there; another process may be making them too."""
    with _own(target):
        missing = [table for table in tables if not _has(target, table)]
    for table in missing:
        columns = COLUMNS[table].format(serial=SERIAL[target.postgres])
        try:
            with _own(target):
                target.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        except Exception:
            with _own(target):
                if not _has(target, table):
                    raise


def _has(target: Target, table: str) -> bool:
    """Tell whether a table is there."""
    if target.postgres:
        return target.execute("SELECT to_regclass(?)", table).fetchone()[0] is not None
    sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return target.execute(sql, table).fetchone() is not None


def _now() -> str:
    """Return the time for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")
