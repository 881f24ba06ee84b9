"""The panel as plain text, for front ends without HTML."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nbckpt.panel.view import Fold, lines
from nbckpt.panel.words import (
    WAY_ON,
    head_words,
    items_words,
    running_words,
    time_words,
    time_words_of,
)
from nbckpt.verbs.forms.pages import plain, printable

if TYPE_CHECKING:
    from nbckpt.panel.view import RunView, StepView


def head_text(view: RunView) -> str:
    """Return how far a run is, and which step runs.

    Parameters
    ----------
    view : RunView
        The run.

    Returns
    -------
    str
        One or two lines.
    """
    name = f"run {view.run_id}: " if view.run_id else ""
    page = [name + ", ".join(head_words(view))]
    step = view.running
    if step is not None:
        counts = [items_words(loop) for loop in view.items]
        page.append(
            f"{step.state.icon} {step.name}: "
            + ", ".join([running_words(step, view.at), *counts])
        )
    return plain(page)


def steps_text(view: RunView) -> str:
    """Return the steps of a run, and the command that goes on with it.

    Parameters
    ----------
    view : RunView
        The run.

    Returns
    -------
    str
        A line for each, or for a stretch of them; letters beyond ASCII, such as icons,
        would make the whole message slow to pack.
    """
    page = [
        _fold(line) if isinstance(line, Fold) else _line(line)
        for line in lines(view.steps)
    ]
    if view.way_on:
        page.append(printable(f"{WAY_ON} {view.way_on}"))
    return "\n".join(page)


@lru_cache(maxsize=1024)
def _line(step: StepView) -> str:
    """Return the line of a step; most are as they were at the last look."""
    words = [step.state.word, time_words(step), *map(items_words, step.loops), step.why]
    return _joined(f"{step.number} {step.name}", words)


@lru_cache(maxsize=64)
def _fold(fold: Fold) -> str:
    """Return the line of a stretch of steps."""
    first, last = fold.steps[0].number, fold.steps[-1].number
    words = [f"{len(fold.steps)} steps", fold.state.word, time_words_of(fold)]
    return _joined(f"{first} to {last}", words)


def _joined(head: str, words: list[str]) -> str:
    """Return one line, whatever the line breaks in the words."""
    said = f"{head}: " + ", ".join(filter(None, words))
    return printable(" ".join(said.split()))
