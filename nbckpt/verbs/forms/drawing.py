"""An answer on standard output: JSON, tables and trees on a terminal, or plain text."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from nbckpt.verbs.forms import pages
from nbckpt.verbs.forms.pages import Page, Part, Table, plain, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table as DrawnTable
    from rich.text import Text
    from rich.tree import Tree as DrawnTree

STYLES = {
    "completed": "green", "skip": "green", "skipped": "green", "ok": "green", "alive": "green",
    "running": "cyan", "run": "cyan", "late": "yellow", "stale": "yellow",
    "unknown": "yellow", "interrupted": "yellow", "failed": "red", "dead": "red",
    "not ok": "red", "stop": "red",
}  # fmt: skip


def answer(data: Any, page: Callable[[Any], Page], *, as_json: bool) -> None:
    """Print an answer; plain text when `is_drawn` says so.

    Parameters
    ----------
    data : object
        JSON values.
    page : callable
        Gives their form for people.
    as_json : bool
        Whether JSON was asked for.
    """
    if as_json:
        click.echo(pages.as_json(data))
    elif is_drawn():
        _draw(page(data))
    else:
        click.echo(plain(page(data)))


def is_drawn() -> bool:
    """Tell whether standard output is a terminal that somebody looks at.

    Returns
    -------
    bool
        False when it is piped, under ``NO_COLOR``, ``TERM=dumb`` or ``CI``, and where
        the signs of a picture can't be encoded.
    """
    told = os.environ.get
    is_plain = told("NO_COLOR") or told("CI") or told("TERM") in {None, "", "dumb"}
    encoding = sys.stdout.encoding or ""
    return sys.stdout.isatty() and not is_plain and "utf" in encoding.lower()


def _draw(page: Page) -> None:
    """Draw a page on a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    for part in page:
        if isinstance(part, str):
            # The terminal wraps it: a long command is copied as one line.
            console.print(_written(part), soft_wrap=True)
        elif isinstance(part, Table):
            console.print(_boxed(part, edge=True))
        else:
            console.print(_node(part))


def _node(part: Part) -> DrawnTree:
    """Return a part of a page as a tree, or as a leaf of one."""
    from rich.tree import Tree as Drawn

    if isinstance(part, Table):
        return Drawn(_boxed(part, edge=False))
    if isinstance(part, str):
        return Drawn(_written(part))
    node = Drawn(_written(part.text), guide_style="dim")
    node.children += map(_node, part.branches)
    return node


def _written(text: str) -> Text:
    """Return a text, coloured if it is the name of a state."""
    from rich.text import Text

    return Text(printable(text), style=STYLES.get(text, ""), overflow="fold")


def _boxed(table: Table, *, edge: bool) -> DrawnTable:
    """Return a table as a terminal draws it."""
    from rich import box
    from rich.table import Column
    from rich.table import Table as Drawn

    # A path or an error that is too long goes on in the next line, whole.
    columns = (Column(name, overflow="fold") for name in table.head)
    drawn = Drawn(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=edge)
    for row in table.rows:
        drawn.add_row(*map(_written, row))
    return drawn
