"""What a ``%nbckpt VERB`` line was called with, and the store that is meant."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt.runs.history import Reader
from nbckpt.verbs.finding.opening import choose_run
from nbckpt.verbs.finding.starting import LineParser
from nbckpt.verbs.forms.pages import Page, as_json, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.records import RunRecord
    from nbckpt.session import Session
    from nbckpt.store import Store


BEGIN = "Begin one: run a cell with %%step"


@dataclass(slots=True)
class Call:
    """What a verb was called with."""

    store: Store
    reader: Reader
    run_id: str
    stem: str
    told: argparse.Namespace
    """All options of the line."""

    @property
    def step(self) -> str:
        """The step that is named."""
        return str(self.told.step)

    def run(self) -> RunRecord:
        """Return the run that is meant."""
        return choose_run(self.reader, self.run_id, self.stem, begin=BEGIN)

    def answer(self, data: Any, page: Callable[[Any], Page]) -> str:
        """Return data as the user asked for it."""
        return as_json(data) if self.told.json else plain(page(data))


@contextmanager
def calling(
    session: Session, verb: str, words: list[str], named: str, *flags: str
) -> Iterator[Call]:
    """Read the options of a verb and open the notebook's store for it.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.
    verb : str
        The verb, for messages.
    words : list of str
        What follows it.
    named : {"step", "run", ""}
        What its first word names.
    *flags : str
        Its own options without a value.

    Yields
    ------
    Call
        Its store is closed afterwards, unless the kernel holds its run.

    Raises
    ------
    BadStep
        If an option is wrong.
    """
    told = _read(verb, words, named, flags)
    named_run = str(getattr(told, "run", ""))
    with opening(session, named_run) as call:
        call.told = told
        yield call


def _read(
    verb: str, words: list[str], named: str, flags: tuple[str, ...]
) -> argparse.Namespace:
    """Read the options of a line."""
    example = f"%nbckpt {verb}" + (" clean" if named == "step" else "")
    parser = LineParser(verb, f"Write for example: {example}")
    if named == "step":
        parser.add_argument("step")
        parser.add_argument("--run", default="")
    elif named == "run":
        parser.add_argument("run", nargs="?", default="")
    for flag in ("--json", *flags):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args(words)


@contextmanager
def opening(session: Session, run_id: str = "") -> Iterator[Call]:
    """Open the notebook's store for a line that was read.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.
    run_id : str, optional
        The run; without it, the notebook's current one.

    Yields
    ------
    Call
        Without options.
    """
    held = session.is_held
    store = session.store if held else session.open_store()
    wanted = run_id or (session.run_id if held else session.wish.run_id)
    stem = "" if wanted else session.identity.stem
    try:
        yield Call(store, Reader(store), wanted, stem, argparse.Namespace())
    finally:
        if not held:
            store.close()
