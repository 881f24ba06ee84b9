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
)
from nbckpt.verbs.pages import Table, duration, plain

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
        A table.
    """
    rows = [
        _fold(line) if isinstance(line, Fold) else _row(line)
        for line in lines(view.steps)
    ]
    page: list[str | Table] = [Table(("", "#", "step", "state", "time", "why"), rows)]
    if view.way_on:
        page.append(f"{WAY_ON} {view.way_on}")
    return plain(page)


@lru_cache(maxsize=1024)
def _row(step: StepView) -> tuple[str, ...]:
    """Return the line of a step; most are as they were at the last look."""
    state = step.state
    counts = [items_words(loop) for loop in step.loops]
    why = "; ".join([*counts, *([_one_line(step.why)] if step.why else [])])
    name = _one_line(step.name)
    return state.icon, str(step.number), name, state.word, time_words(step), why


def _fold(fold: Fold) -> tuple[str, ...]:
    """Return the line of a stretch of steps."""
    first, last = fold.steps[0].number, fold.steps[-1].number
    saved = f"saved {duration(fold.saved)}" if fold.saved else ""
    steps = f"{len(fold.steps)} steps"
    return fold.state.icon, f"{first}-{last}", steps, fold.state.word, saved, ""


def _one_line(text: str) -> str:
    """Return a text without line breaks, which would break the table."""
    return " ".join(text.split())
