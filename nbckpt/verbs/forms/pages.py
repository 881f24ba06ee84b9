"""What a verb shows: lines, tables and trees, as plain text.

A verb answers with JSON values; a page is their form for people. The terminal draws the
same page with colours and boxes.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbckpt.runs.moments import local

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
KILO = 1000
JSON_VERSION = 1
"""Raised when a key of an answer goes away or gets another meaning."""


class Diff(str):
    """Lines that come, go or stay, as a unified diff has them."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a head."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Tree:
    """A line, and what belongs to it."""

    text: str
    branches: Page = ()


Part = str | Table | Tree
Page = Sequence[Part]

PERSON = {"waiting": "waiting for a human", "answered": "answered, ready to go on"}


def state_word(state: str) -> str:
    """Return the state of a run or step for people, in every form of it.

    Parameters
    ----------
    state : str
        As ``nbckpt status --json`` has it.
    """
    return PERSON.get(state, state)


def printable(text: str) -> str:
    """Return text without what steers a terminal; a foreign store may hold such.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Line breaks and tabs stay.
    """
    return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def as_json(data: Any, indent: int | None = 2) -> str:
    """Return an answer as JSON, with the version of its shape.

    Parameters
    ----------
    data : dict or list of dict
        What a verb found.
    indent : int or None, optional
        None: in one line.

    Returns
    -------
    str
        Each of the dicts begins with ``schema_version``.
    """
    parts = data if isinstance(data, list) else [data]
    told = [{"schema_version": JSON_VERSION, **part} for part in parts]
    return json.dumps(told if isinstance(data, list) else told[0], indent=indent)


def as_html(text: str) -> str:
    """Return any text as HTML that shows it and does nothing.

    Parameters
    ----------
    text : str
        Any text; half a surrogate, which can't be written, is replaced.

    Returns
    -------
    str
        Safe between tags and in an attribute; without marks that turn the reading order.
    """
    return html.escape(printable(text).encode("utf-8", "replace").decode("utf-8"))


def plain(page: Page) -> str:
    """Return a page as text.

    Parameters
    ----------
    page : Page
        Lines, tables and trees.

    Returns
    -------
    str
        Columns are aligned by spaces, branches stand two letters to the right of their
        line; no line break at the end.
    """
    return printable("\n".join(map(_text, page)))


def _text(part: Part) -> str:
    """Return a part of a page as text."""
    if isinstance(part, str):
        return part
    if isinstance(part, Table):
        return _aligned(part)
    return "\n".join([part.text, textwrap.indent(plain(part.branches), "  ")]).rstrip()


def _aligned(table: Table) -> str:
    """Return a table with its columns under each other."""
    rows = [table.head, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def slim(table: Table, *optional: str) -> Table:
    """Return a table without those columns that tell nothing.

    Parameters
    ----------
    table : Table
        An empty cell is ``-``.
    *optional : str
        Heads of the columns that go when each of their cells is empty.

    Returns
    -------
    Table
        The other columns, in order.
    """
    kept = [
        number
        for number, head in enumerate(table.head)
        if head not in optional or any(row[number] != "-" for row in table.rows)
    ]
    rows = [tuple(row[number] for number in kept) for row in table.rows]
    return Table(tuple(table.head[number] for number in kept), rows)


def duration(seconds: float) -> str:
    """Return a length of time for people.

    Parameters
    ----------
    seconds : float
        Its length.

    Returns
    -------
    str
        Two units at most.

    Examples
    --------
    >>> duration(0.25), duration(75), duration(7260)
    ('0.25 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 1:
        return f"{max(seconds, 0):.2f} s"
    if seconds < MINUTE:
        return f"{seconds:.1f} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE:.0f} min {seconds % MINUTE:.0f} s"
    if seconds < DAY:
        return f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:.0f} min"
    return f"{seconds // DAY:.0f} d {seconds % DAY // HOUR:.0f} h"


def size(count: int) -> str:
    """Return a number of bytes for people.

    Parameters
    ----------
    count : int
        Bytes.

    Returns
    -------
    str
        In the largest unit that fits.

    Examples
    --------
    >>> size(12), size(1_500_000)
    ('12 B', '1.5 MB')
    """
    if count < KILO:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB", "GB"):
        amount /= KILO
        if amount < KILO:
            return f"{amount:.1f} {unit}"
    return f"{amount / KILO:.1f} TB"


def moment(at: float) -> str:
    """Return a time of the wall clock, in the reader's own zone.

    Parameters
    ----------
    at : float
        Seconds since the epoch; 0 if it is not known.

    Returns
    -------
    str
        Date and time.
    """
    return local(at) if at else "unknown"


def first_sentence(text: str) -> str:
    """Return what is wrong without what to do, which ``nbckpt explain`` tells.

    Parameters
    ----------
    text : str
        Of an error.

    Examples
    --------
    >>> first_sentence("no such card: C. Ask the customer")
    'no such card: C'
    """
    return re.split(r"\.\s|\n", text, maxsplit=1)[0]


def listed(names: Sequence[str], limit: int = 6) -> str:
    """Return a list of names in one line.

    Parameters
    ----------
    names : sequence of str
        The names.
    limit : int, optional
        How many to write out.

    Returns
    -------
    str
        ``-`` if there are none.
    """
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return ", ".join(names) or "-"
