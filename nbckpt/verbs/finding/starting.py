"""The ``%nbckpt start`` line: which run a notebook asks for."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, NoReturn

from nbckpt.errors import BadStep
from nbckpt.runs.identity import Wish

if TYPE_CHECKING:
    from collections.abc import Iterable


START = re.compile(r"^%nbckpt[ \t]+start\b(.*)$", re.MULTILINE)
EXAMPLE = "Write for example: %nbckpt start orders-2026-11 --version 3"


class LineParser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving the process.

    Parameters
    ----------
    verb : str
        What the line begins with, for the message.
    example : str
        A line that is right.
    """

    def __init__(self, verb: str, example: str) -> None:
        super().__init__(prog=f"%nbckpt {verb}", add_help=False, allow_abbrev=False)
        self._example = example

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong, with an example."""
        raise BadStep(f"{self.prog}: {message}", self._example)


def words_of(line: str) -> list[str]:
    """Split a line as a shell does.

    Parameters
    ----------
    line : str
        What follows the magic.

    Returns
    -------
    list of str
        Without a comment at its end.

    Raises
    ------
    BadStep
        If a quote is left open.
    """
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise BadStep(f"%nbckpt {line}: {error}", EXAMPLE) from None


def read_start(words: list[str]) -> Wish:
    """Return what a ``%nbckpt start`` line asks for.

    Parameters
    ----------
    words : list of str
        What follows ``start``.

    Returns
    -------
    Wish
        Its options.

    Raises
    ------
    BadStep
        If an option is unknown or has no such value.
    """
    parser = LineParser("start", EXAMPLE)
    parser.add_argument("run_id", nargs="?", default="")
    parser.add_argument("--version", default="")
    parser.add_argument(
        "--overlap", default="skip", choices=("skip", "replace", "concurrent")
    )
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--store", default="")
    parser.add_argument("--stop-on-redo", action="store_true")
    return Wish(**vars(parser.parse_args(words)))


def find_start(sources: Iterable[str]) -> Wish:
    """Return what the first ``%nbckpt start`` line of a notebook asks for.

    Parameters
    ----------
    sources : iterable of str
        The text of each code cell.

    Returns
    -------
    Wish
        Empty if there is no such line.

    Raises
    ------
    BadStep
        If the line is wrong.
    """
    for source in sources:
        found = START.search(source)
        if found:
            return read_start(words_of(found[1]))
    return Wish()
