"""The panel as plain text, for front ends without HTML."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nbckpt.panel.view import Fold, blocks
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
    from nbckpt.panel.view import Block, RunView, StepView


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
    page = list(map(_block, blocks(view.steps)))
    if view.way_on:
        page.append(printable(f"{WAY_ON} {view.way_on}"))
    return "\n".join(page)


@lru_cache(maxsize=64)
def _block(block: Block) -> str:
    """Return some lines."""
    return "\n".join(map(_line, block))


@lru_cache(maxsize=1024)
def _line(line: StepView | Fold) -> str:
    """Return the line of a step or a stretch; most are as they were at the last look."""
    if isinstance(line, Fold):
        head = f"{line.steps[0].number} to {line.steps[-1].number}"
        words = [f"{len(line.steps)} steps", line.state.word, time_words_of(line)]
    else:
        head, loops = f"{line.number} {line.name}", map(items_words, line.loops)
        words = [line.state.word, time_words(line), *loops, line.why]
    said = f"{head}: " + ", ".join(filter(None, words))
    # Whatever the line breaks in the words, it is one line.
    return printable(" ".join(said.split()))
