"""Connections to the user's own databases: when a transaction begins, and how it ends.

A transaction that another one is part of can't be ended by us, and one that holds changes
of the user's must not be: both are refused.
"""

from __future__ import annotations

import sqlite3
import sys
from abc import ABC, abstractmethod
from contextlib import closing
from typing import Any

from nbckpt.errors import BadStep

REMEDY = "Commit or roll back first: what is recorded as done commits with its own rows"


class Target(ABC):
    """A connection, whatever it is made with."""

    postgres = False

    @abstractmethod
    def execute(self, sql: str, *values: Any) -> Any:
        """Execute one statement with ``?`` for values; return the cursor."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction that is all ours.

        Raises
        ------
        BadStep
            If one is open that holds changes, or that a block of the user's will end.
        """

    @abstractmethod
    def commit(self) -> None:
        """End the transaction; what it wrote stays."""

    @abstractmethod
    def rollback(self) -> None:
        """End the transaction; nothing of it stays."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether a transaction is open."""


class Sqlite(Target):
    """A connection of sqlite3, in each of its modes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection: Any = connection

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self.connection.in_transaction)

    @property
    def _always_open(self) -> bool:
        """Whether the connection opens a transaction by itself (Python 3.12 and later)."""
        return getattr(self.connection, "autocommit", None) is False

    def execute(self, sql: str, *values: Any) -> Any:
        """Execute one statement; return the cursor."""
        cursor = self.connection.cursor()
        cursor.row_factory = None  # rows as we expect them, whatever the user set
        return cursor.execute(sql, values)

    def begin(self) -> None:
        """Begin, and take the lock at once: nothing can come between."""
        self.require_unchanged()
        if self._always_open:
            self.connection.rollback()
        if begin := self.begins_with:
            self.connection.execute(begin)

    @property
    def begins_with(self) -> str:
        """The statement that begins a transaction; empty if one is open by itself."""
        return "" if self.is_open else "BEGIN IMMEDIATE"

    def require_unchanged(self) -> None:
        """Refuse an open transaction, unless it was opened by itself and holds nothing."""
        if not self.is_open:
            return
        changed = self.connection.total_changes and _is_locked(self.connection)
        if changed or not self._always_open:
            raise BadStep(
                "the connection's open transaction holds changes, or another process "
                "keeps the database locked",
                REMEDY,
            )

    def commit(self) -> None:
        """End the transaction; what it wrote stays."""
        self._end("COMMIT", self.connection.commit)

    def rollback(self) -> None:
        """End the transaction; nothing of it stays."""
        if self.is_open:
            self._end("ROLLBACK", self.connection.rollback)

    def _end(self, verb: str, method: Any) -> None:
        """End it; what Python's own method does depends on the mode."""
        if self._always_open:
            method()
        else:
            self.connection.execute(verb)


def _is_locked(connection: Any) -> bool:
    """Tell whether somebody, maybe this connection, is writing to its database."""
    cursor = connection.cursor()
    cursor.row_factory = None
    file = cursor.execute("PRAGMA database_list").fetchone()[2]
    if not file:  # in memory: only this connection can be
        return True
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        other.execute("ROLLBACK")
        return False


class Postgres(Target):
    """A connection of psycopg 3."""

    postgres = True

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._block: Any = None

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self.connection.info.transaction_status.name != "IDLE")

    def execute(self, sql: str, *values: Any) -> Any:
        """Execute one statement; return the cursor."""
        rows = sys.modules["psycopg"].rows.tuple_row
        cursor = self.connection.cursor(row_factory=rows)
        return cursor.execute(sql.replace("?", "%s"), values)

    @property
    def begins_with(self) -> str:
        """The statement that begins a transaction; empty if any statement does."""
        return "BEGIN" if self.connection.autocommit else ""

    def begin(self) -> None:
        """Begin; inside, psycopg itself refuses the body's own commit."""
        self.require_unchanged()
        if self.is_open:
            try:
                self.connection.commit()
            except Exception as error:  # inside `with connection.transaction()`
                raise BadStep(f"the transaction is not ours: {error}", REMEDY) from None
        block = self.connection.transaction()
        block.__enter__()
        self._block = block

    def require_unchanged(self) -> None:
        """Refuse a transaction in which anything was written, or that failed."""
        state = self.connection.info.transaction_status.name
        if state == "IDLE":
            return
        sql = "SELECT pg_current_xact_id_if_assigned()"
        if state == "INTRANS" and self.execute(sql).fetchone() == (None,):
            return
        raise BadStep("the connection's open transaction holds changes", REMEDY)

    def commit(self) -> None:
        """End the transaction; what it wrote stays."""
        block, self._block = self._block, None
        block.__exit__(None, None, None)

    def rollback(self) -> None:
        """End the transaction; nothing of it stays."""
        block, self._block = self._block, None
        if block is not None:
            undo = sys.modules["psycopg"].Rollback(block)
            block.__exit__(type(undo), undo, None)


class Alchemy(Target):
    """A connection or session of SQLAlchemy 2, to SQLite or PostgreSQL."""

    def __init__(self, outer: Any) -> None:
        self.outer = outer
        if getattr(outer, "_trans_context_manager", None) is not None:
            raise BadStep(
                "the connection stands inside a begin() block, which ends its "
                "transaction later",
                "Give one without: with engine.connect() as connection",
            )
        self._refuse_pending()
        self.driver = _driver(self._connection().connection.driver_connection)
        self.postgres = self.driver.postgres

    def _connection(self) -> Any:
        """Return the connection; a session has one."""
        is_session = hasattr(self.outer, "no_autoflush")
        return self.outer.connection() if is_session else self.outer

    def _refuse_pending(self) -> None:
        """Refuse a session that holds objects which are not written yet."""
        if any(getattr(self.outer, part, ()) for part in ("new", "dirty", "deleted")):
            raise BadStep("the session holds changes that are not committed", REMEDY)

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open."""
        return bool(self.outer.in_transaction() and self.driver.is_open)

    def execute(self, sql: str, *values: Any) -> Any:
        """Execute one statement; return the result."""
        text = sql.replace("?", "%s") if self.postgres else sql
        return self._connection().exec_driver_sql(text, values)

    def begin(self) -> None:
        """Begin; one that only reads were made in is ended first."""
        self.driver.require_unchanged()
        self.outer.commit()
        connection = self._connection()
        # A session may have another one now.
        self.driver = _driver(connection.connection.driver_connection)
        if begin := self.driver.begins_with:
            connection.exec_driver_sql(begin)

    def commit(self) -> None:
        """End the transaction; what it wrote stays."""
        self.outer.commit()

    def rollback(self) -> None:
        """End the transaction; nothing of it stays."""
        self.outer.rollback()


def _driver(connection: Any) -> Sqlite | Postgres:
    """Return the target of a driver's own connection."""
    if isinstance(connection, sqlite3.Connection):
        return Sqlite(connection)
    psycopg = sys.modules.get("psycopg")
    if psycopg is not None and isinstance(connection, psycopg.Connection):
        return Postgres(connection)
    kind = type(connection)
    raise BadStep(
        f"a {kind.__module__}.{kind.__qualname__} can't be used for this",
        "Give a connection of sqlite3, psycopg 3, or SQLAlchemy 2 on one of these",
    )


def target_of(connection: Any) -> Target:
    """Return how to use a connection.

    Parameters
    ----------
    connection : object
        Of sqlite3, psycopg 3, or SQLAlchemy 2 (`Connection` or `Session`) on one of these.

    Returns
    -------
    Target
        Nothing was executed yet.

    Raises
    ------
    BadStep
        If it is anything else.
    """
    for name in ("sqlalchemy.engine", "sqlalchemy.orm"):
        module = sys.modules.get(name)
        for kind in ("Connection", "Session"):
            found = getattr(module, kind, None)
            if found is not None and isinstance(connection, found):
                return Alchemy(connection)
    return _driver(connection)
