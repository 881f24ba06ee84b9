"""An answer on standard output: JSON, tables on a terminal, or plain text."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from nbckpt.verbs.forms import pages
from nbckpt.verbs.forms.pages import Page, plain, printable

if TYPE_CHECKING:
    from collections.abc import Callable

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
    from rich import box
    from rich.console import Console
    from rich.table import Column
    from rich.table import Table as Drawn
    from rich.text import Text

    console = Console(highlight=False)
    for part in page:
        if isinstance(part, str):
            console.print(Text(printable(part)), soft_wrap=True)
            continue
        # A path or an error that is too long goes on in the next line, whole.
        columns = (Column(name, overflow="fold") for name in part.head)
        drawn = Drawn(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
        for row in part.rows:
            cells = map(printable, row)
            drawn.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in cells))
        console.print(drawn)
