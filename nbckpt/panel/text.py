"""The panel as plain text, for front ends without HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.panel.view import Fold, lines
from nbckpt.panel.words import head_words, items_words, running_words, time_words
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
    rows = [_row(line) for line in lines(view.steps)]
    page: list[str | Table] = [Table(("", "#", "step", "state", "time", "why"), rows)]
    if view.resume and not view.is_done:
        page.append(f"To go on after a crash: run all cells, or {view.resume}")
    return plain(page)


def _row(line: StepView | Fold) -> tuple[str, ...]:
    """Return one line of the table."""
    state = line.state
    if isinstance(line, Fold):
        first, last = line.steps[0].number, line.steps[-1].number
        saved = f"saved {duration(line.saved)}" if line.saved else ""
        steps = f"{len(line.steps)} steps"
        return state.icon, f"{first}-{last}", steps, state.word, saved, ""
    counts = [items_words(loop) for loop in line.loops]
    why = "; ".join([*counts, *([_one_line(line.why)] if line.why else [])])
    name = _one_line(line.name)
    return state.icon, str(line.number), name, state.word, time_words(line), why


def _one_line(text: str) -> str:
    """Return a text without line breaks, which would break the table."""
    return " ".join(text.split())
