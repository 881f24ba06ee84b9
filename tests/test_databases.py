"""Databases: equal rows are equal, whatever happened to the pages in between."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy

from nbckpt.inputs import databases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = (
    "create table t(id integer primary key, name text, size real)",
    "create table k(name text primary key) without rowid",
    "create view v as select name from t",
    "insert into t(name, size) values ('a', 1.5), ('b', null), (x'ff', 3)",
    "insert into k values ('z'), ('y')",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    change(tmp_path / "x.db", *SCHEMA)
    return tmp_path / "x.db"


def change(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


EQUAL = {
    "nothing": (),
    "vacuum": ("vacuum",),
    "the same value": ("update t set size = size",),
    "a row that comes and goes": (
        "insert into k values ('q')",
        "delete from k where name = 'q'",
    ),
    "a table that comes and goes": ("create table w(v)", "drop table w"),
    "statistics": ("analyze",),
    "rows made again": (
        "create temp table s as select * from t",
        "delete from t",
        "insert into t select * from s",
    ),
    "write-ahead log": ("pragma journal_mode = wal",),
}


@pytest.mark.parametrize("what", EQUAL)
def test_equal_rows_have_equal_digests(path: Path, what: str) -> None:
    before = databases.digest(path)
    change(path, *EQUAL[what])
    assert databases.digest(path) == before


OTHER = {
    "a row more": "insert into t(name) values ('c')",
    "a row less": "delete from k where name = 'y'",
    "another value": "update t set size = 2.5 where name = 'a'",
    "another type": "update t set name = cast(name as blob) where name = 'a'",
    "a null": "update t set size = null",
    "another order": "update t set id = id + 10 where name = 'a'",
    "a new table": "create table w(v)",
    "a new index": "create index i on t(name)",
    "a new column": "alter table t add column w",
    "another name": "alter table t rename to u",
    "a version": "pragma user_version = 2",
}


@pytest.mark.parametrize("limit", [databases.ROWS_LIMIT, 0])
@pytest.mark.parametrize("what", OTHER)
def test_other_rows_have_another_digest(
    path: Path, what: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "ROWS_LIMIT", limit)
    before = databases.digest(path)
    change(path, OTHER[what])
    assert databases.digest(path) != before


def test_big_database_counts_by_its_pages_without_counters(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "ROWS_LIMIT", 0)
    before, content = databases.digest(path), path.read_bytes()
    change(path, "update t set size = size + 1", "update t set size = size - 1")
    assert path.read_bytes() != content
    assert databases.digest(path) == before


def test_look_leaves_nothing_beside_the_file(path: Path) -> None:
    change(path, "pragma journal_mode = wal")
    content = path.read_bytes()
    databases.digest(path)
    assert [p.name for p in path.parent.iterdir()] == ["x.db"]
    assert path.read_bytes() == content


def test_rows_in_the_log_of_an_open_connection_count(path: Path) -> None:
    change(path, "pragma journal_mode = wal")
    before = databases.digest(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("insert into k values ('new')")
        assert databases.digest(path) == before
        connection.commit()
        assert databases.digest(path) != before


def test_database_in_the_middle_of_a_transaction_counts_as_committed(
    path: Path,
) -> None:
    before = databases.digest(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("insert into k values ('new')")
        assert databases.digest(path) == before


def test_shadow_tables_of_a_virtual_table_count(path: Path) -> None:
    change(path, "create virtual table f using fts5(text)")
    before = databases.digest(path)
    change(path, "insert into f values ('some words')")
    assert databases.digest(path) != before


def test_damaged_database_counts_by_its_pages(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:3000])
    short = databases.digest(path)
    path.write_bytes(content[:2000])
    assert databases.digest(path) != short


def test_database_is_told_by_its_beginning(path: Path) -> None:
    assert databases.is_database(path)
    (path.parent / "x.txt").write_text("SQLite format 4")
    (path.parent / "empty").touch()
    assert not databases.is_database(path.parent / "x.txt")
    assert not databases.is_database(path.parent / "empty")


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("x.db", ("x.db", False)),
        (b"x.db", ("x.db", False)),
        (Path("a/x.db"), ("a/x.db", False)),
        (":memory:", ("", False)),
        ("", ("", False)),
        ("file:x.db", ("x.db", False)),
        ("file:x.db?mode=ro", ("x.db", True)),
        ("file:x.db?mode=rw&cache=shared", ("x.db", False)),
        ("file:/a/x%20y.db?immutable=1", ("/a/x y.db", True)),
        ("file:///a/x.db", ("/a/x.db", False)),
        ("file::memory:?cache=shared", ("", False)),
        ("file:name?mode=memory", ("", False)),
        (5, ("", False)),
    ],
)
def test_target_of_a_connection_names_a_file(
    target: object, found: tuple[str, bool]
) -> None:
    assert databases.opened(target)[0] == found[0]
    if found[0]:
        assert databases.opened(target) == found


@pytest.fixture
def engine(path: Path) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    yield engine
    engine.dispose()


def test_engine_names_its_file(path: Path, engine: sqlalchemy.Engine) -> None:
    assert databases.files_of(engine) == [str(path)]
    with engine.connect() as connection:
        assert databases.files_of(connection) == [str(path)]
    assert databases.files_of(sqlalchemy.create_engine("sqlite://")) == []
    assert databases.files_of(sqlalchemy.text("select 1")) == []


ODD: dict[str, Callable[[sqlite3.Connection], object]] = {
    "rows": lambda c: setattr(c, "row_factory", lambda _, row: {"row": row}),
    "text": lambda c: setattr(c, "text_factory", bytes),
}


@pytest.mark.parametrize("how", ODD)
def test_connection_with_factories_names_its_file(path: Path, how: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ODD[how](connection)
        assert databases.files_of(connection) == [os.path.realpath(path)]


def test_closed_connection_and_other_values_name_no_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.close()
    assert databases.files_of(connection) == []
    assert databases.files_of(str(path)) == []
