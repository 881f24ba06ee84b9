"""SQLite files, which their library opens out of the interpreter's sight.

The rows count, not the pages: a counter in the file's head grows with each transaction,
and a step that deletes its rows and inserts equal ones moves pages about.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = b"SQLite format 3\0"
HEAD = 100

ROWS_LIMIT = 8 << 20
"""Bytes up to which rows are digested; it takes a hundred times as long as pages."""

CHANGING = ((18, 20), (24, 28), (92, 100))
"""Where in the head stand journal mode, change counter, version of the last writer."""


def is_database(path: Path) -> bool:
    """Tell whether a file is a SQLite database.

    Parameters
    ----------
    path : Path
        A regular file.

    Returns
    -------
    bool
        Whether it begins as one.
    """
    with path.open("rb", buffering=0) as file:
        return file.read(len(MAGIC)) == MAGIC


def digest(path: Path) -> str:
    """Return the digest of a database's content.

    Parameters
    ----------
    path : Path
        A SQLite database; its write-ahead log counts too.

    Returns
    -------
    str
        Equal for equal schemas and rows; above `ROWS_LIMIT` for equal pages.

    Notes
    -----
    Nothing is written, not even a log beside the file. What a connection has not
    committed does not count. A database that can't be read so, such as one whose writer
    was killed within a transaction, counts by its pages and its journals.
    """
    total = blake3(max_threads=blake3.AUTO)
    if path.stat().st_size <= ROWS_LIMIT:
        try:
            with contextlib.closing(_look(path)) as connection:
                for part in _parts(connection):
                    total.update(part)
            return str(total.hexdigest()[:32])
        except (sqlite3.Error, ValueError):
            total = blake3(max_threads=blake3.AUTO)
    for piece in _pages(path):
        total.update(piece)
    return str(total.hexdigest()[:32])


def _look(path: Path) -> sqlite3.Connection:
    """Open a database for reading only."""
    # Without a journal nobody has it open for writing, and nothing is left beside it.
    steady = not any(_beside(path, kind).exists() for kind in ("-wal", "-journal"))
    mode = "immutable=1" if steady else "mode=ro"
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
    # Text that is no UTF-8 is read as it is, and text is told from blobs.
    connection.text_factory = bytearray
    return connection


def _beside(path: Path, kind: str) -> Path:
    """Return a journal's path."""
    return path.with_name(path.name + kind)


def _parts(connection: sqlite3.Connection) -> Iterator[bytes]:
    """Yield the schema and all rows of a database."""
    (version,) = connection.execute("pragma user_version").fetchone()
    schema = connection.execute(
        "select type, name, tbl_name, sql from sqlite_master "
        "where name not like 'sqlite_stat%' order by type, name"
    ).fetchall()
    yield repr((version, schema)).encode()
    for kind, name, _, sql in schema:
        is_virtual = sql is not None and sql.lstrip()[:14].upper() == b"CREATE VIRTUAL"
        # The rows of a virtual table stand in tables of its own, or elsewhere.
        if kind != b"table" or is_virtual:
            continue
        quoted = name.decode().replace('"', '""')
        every = f'select * from "{quoted}" not indexed'  # noqa: S608 - its own name
        rows = connection.execute(every)
        yield name
        while found := rows.fetchmany(1000):
            yield "\n".join(map(repr, found)).encode()


def _pages(path: Path) -> Iterator[bytes]:
    """Yield a database as it lies on disk, without its counters, and its journals."""
    with path.open("rb") as file:
        head = bytearray(file.read(HEAD))
        for start, end in CHANGING:
            head[start:end] = bytes(end - start)
        yield bytes(head)
        while part := file.read(1 << 22):
            yield part
    for kind in ("-wal", "-journal"):
        if (beside := _beside(path, kind)).is_file():
            yield beside.read_bytes()


def opened(target: object) -> tuple[str, bool]:
    """Return which file a call of ``sqlite3.connect`` opens, and whether to read only.

    Parameters
    ----------
    target : object
        Its first argument.

    Returns
    -------
    tuple of str and bool
        An empty path for a database that is no file.
    """
    if not isinstance(target, (str, bytes, os.PathLike)):
        return "", False
    path = os.fsdecode(target)
    if not path.startswith("file:"):
        return "" if path == ":memory:" else path, False
    parts = urlsplit(path)
    options = parse_qs(parts.query)
    mode = options.get("mode", [""])[0]
    file = unquote(parts.path)
    is_file = mode != "memory" and file not in {"", ":memory:"}
    return file if is_file else "", mode == "ro" or "immutable" in options


def files_of(value: object) -> list[str]:
    """Return the database files behind a connection or engine that is open already.

    Parameters
    ----------
    value : object
        Any value of the notebook.

    Returns
    -------
    list of str
        Paths; attached databases too. Empty for all other values.
    """
    if isinstance(value, sqlite3.Connection):
        return _attached(value)
    if "sqlalchemy" not in sys.modules or not _is_of(value, "sqlalchemy"):
        return []
    url = getattr(getattr(value, "engine", None), "url", None)
    if url is None or not str(url.drivername).startswith("sqlite"):
        return []
    path, _ = opened(url.database)
    return [path] if path else []


def _attached(connection: sqlite3.Connection) -> list[str]:
    """Return the files of an open connection; none of one that can't be asked."""
    try:
        cursor = connection.cursor()
        cursor.row_factory = None
        found = cursor.execute("pragma database_list").fetchall()
    except sqlite3.Error:
        return []
    return [os.fsdecode(row[2]) for row in found if row[2]]


def _is_of(value: Any, package: str) -> bool:
    """Tell whether a value's type comes from a package."""
    return str(type(value).__module__).partition(".")[0] == package
