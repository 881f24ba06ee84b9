"""An answer on standard output: JSON, tables and trees on a terminal, or plain text."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nbckpt.verbs.forms import pages
from nbckpt.verbs.forms.pages import Diff, Page, Part, Table, plain, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.table import Table as DrawnTable
    from rich.text import Text
    from rich.tree import Tree as DrawnTree

T = TypeVar("T")

STYLES = {
    "completed": "green", "skip": "green", "skipped": "green", "ok": "green", "alive": "green",
    "running": "cyan", "run": "cyan", "late": "yellow", "stale": "yellow",
    "unknown": "yellow", "interrupted": "yellow", "failed": "red", "dead": "red",
    "not ok": "red", "stop": "red",
}  # fmt: skip

DIFF = {"+": "green", "-": "red", "@": "cyan"}
WHOLE = ((20, 12), (8, 12), (8, 8), (0, 4))
"""Letters of what stays in one line, and of words in what does not: the first that fit."""
GAP, GUIDE = 3, 4
"""Letters between two columns, and of a branch's guide."""


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
    # Closed by whoever started us, there is none.
    encoding = getattr(sys.stdout, "encoding", None) or ""
    return "utf" in encoding.lower() and not is_plain and sys.stdout.isatty()


def tracked(rows: Sequence[T]) -> Iterable[T]:
    """Yield rows; a terminal shows a bar meanwhile.

    Parameters
    ----------
    rows : sequence
        What takes a while, one by one.
    """
    if not is_drawn():
        return rows
    from rich.progress import track

    return track(rows, "", transient=True)


def _draw(page: Page) -> None:
    """Draw a page on a terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    for part in page:
        if isinstance(part, str):
            # The terminal wraps it: a long command is copied as one line.
            console.print(_written(part), soft_wrap=True)
        elif isinstance(part, Table):
            console.print(_boxed(part, console.width, edge=True))
        else:
            console.print(_node(part, console.width))


def _node(part: Part, width: int) -> DrawnTree:
    """Return a part of a page as a tree, or as a leaf of one."""
    from rich.tree import Tree as Drawn

    if isinstance(part, Table):
        return Drawn(_boxed(part, width, edge=False))
    if isinstance(part, str):
        return Drawn(_written(part))
    node = Drawn(_written(part.text), guide_style="dim")
    node.children += (_node(branch, width - GUIDE) for branch in part.branches)
    return node


def _written(text: str) -> Text:
    """Return a text, coloured if it is the name of a state."""
    from rich.text import Text

    if isinstance(text, Diff):
        lines = printable(text).split("\n")
        return Text("\n").join(Text(line, DIFF.get(line[:1], "")) for line in lines)
    return Text(printable(text), style=STYLES.get(text, ""), overflow="fold")


def _boxed(table: Table, width: int, *, edge: bool) -> DrawnTable:
    """Return a table as a terminal draws it."""
    from rich import box
    from rich.table import Column
    from rich.table import Table as Drawn

    # A path or an error that is too long goes on in the next line, whole.
    columns = [
        Column(name, overflow="fold", width=letters)
        for name, letters in zip(
            table.head, _widths(table, width - 2 * edge), strict=True
        )
    ]
    drawn = Drawn(*columns, box=box.SIMPLE_HEAD, pad_edge=False, show_edge=edge)
    for row in table.rows:
        drawn.add_row(*map(_written, row))
    return drawn


def _widths(table: Table, width: int) -> list[int]:
    """Return how wide columns are: the long ones give way, words last."""
    from rich.cells import cell_len

    columns = [
        [printable(cell) for cell in column]
        for column in zip(table.head, *table.rows, strict=True)
    ]
    found = [max(map(cell_len, column)) for column in columns]
    words = [max(map(cell_len, " ".join(column).split())) for column in columns]
    room = max(width - GAP * (len(found) - 1), len(found))
    least = _least(found, words, room)
    while sum(found) > room:
        beyond = [letters - few for letters, few in zip(found, least, strict=True)]
        found[beyond.index(max(beyond))] -= 1
    return found


def _least(whole: list[int], words: list[int], room: int) -> list[int]:
    """Return how narrow columns may become: times and names stay whole if they can."""
    for short, longest in WHOLE:
        least = [
            letters if letters <= short else min(word, longest)
            for letters, word in zip(whole, words, strict=True)
        ]
        if sum(least) <= room:
            return least
    return [1] * len(whole)
