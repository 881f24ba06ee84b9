"""The panel as HTML: no script, readable without its style, all text escaped.

An untrusted notebook loses the style; the table, its words and the details stay.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nbckpt.panel.style import CSS
from nbckpt.panel.view import Fold, lines
from nbckpt.panel.words import (
    WAY_ON,
    head_words,
    items_words,
    running_words,
    time_words,
    time_words_of,
)
from nbckpt.verbs.forms.pages import as_html

if TYPE_CHECKING:
    from nbckpt.panel.view import LoopView, RunView, StepView

COLUMNS = ("Step", "State", "What is known of it", "Time")


def head_html(view: RunView) -> str:
    """Return how far a run is, and which step runs.

    Parameters
    ----------
    view : RunView
        The run.

    Returns
    -------
    str
        A section that tells nothing of the other steps, whose style they bring along.
    """
    name = as_html(view.run_id or "nbckpt")
    words = " \N{MIDDLE DOT} ".join(map(as_html, head_words(view)))
    return (
        f'<section class="nbckpt" aria-label="nbckpt, run {name}">'
        f"<p><b>{name}</b> \N{MIDDLE DOT} {words}</p>{_now(view)}</section>"
    )


def _now(view: RunView) -> str:
    """Return the step that runs."""
    step = view.running
    if step is None:
        return ""
    words = as_html(running_words(step, view.at))
    counts = "".join(f" \N{MIDDLE DOT} {_items(loop, step)}" for loop in view.items)
    return (
        f'<p class="now running">{_icon(step)} <b>{as_html(step.name)}</b> '
        f"{words}{counts}</p>"
    )


def _items(loop: LoopView, step: StepView) -> str:
    """Return how far a loop is, with a bar if its end is known."""
    words = as_html(items_words(loop))
    if not loop.total:
        return words
    label = f"items of {as_html(step.name)}, loop {as_html(loop.name)}"
    return (
        f'<progress max="{loop.total}" value="{min(loop.done, loop.total)}" '
        f'aria-label="{label}"></progress> {words}'
    )


def steps_html(view: RunView) -> str:
    """Return the steps of a run, and the command that goes on with it.

    Parameters
    ----------
    view : RunView
        The run.

    Returns
    -------
    str
        The style, and a section with a table.
    """
    name = as_html(view.run_id or "nbckpt")
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    made = [
        _fold(line) if isinstance(line, Fold) else _row(line)
        for line in lines(view.steps)
    ]
    bar = "".join([part for part, _ in made])
    rows = "".join([row for _, row in made])
    return (
        f"<style>{CSS}</style>"
        f'<section class="nbckpt" aria-label="steps of run {name}">'
        f'<div class="bar" aria-hidden="true">{bar}</div><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"{_foot(view)}</section>"
    )


def _foot(view: RunView) -> str:
    """Return how to go on."""
    if not view.way_on:
        return ""
    return f"<p>{WAY_ON} <code>{as_html(view.way_on)}</code></p>"


def _icon(line: StepView | Fold) -> str:
    """Return the icon of a state; its word stands beside it."""
    return f'<span class="icon" aria-hidden="true">{line.state.icon}</span>'


@lru_cache(maxsize=1024)
def _row(step: StepView) -> tuple[str, str]:
    """Return the line of a step; most are as they were at the last look."""
    return f'<i class="{step.state}"></i>', _ascii(
        f'<tr class="{step.state}">'
        f'<th scope="row">{step.number} {as_html(step.name)}</th>'
        f"<td>{_icon(step)} {step.state.word}</td>"
        f"<td>{_known(step)}</td>"
        f"<td>{as_html(time_words(step))}</td></tr>"
    )


def _ascii(page: str) -> str:
    """Return HTML with all other letters written out: it is packed in half the time."""
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _known(step: StepView) -> str:
    """Return why a step ran or stopped, its items, and its evidence to open."""
    parts = [as_html(items_words(loop)) for loop in step.loops]
    if step.why:
        parts.append(as_html(step.why))
    found = "<br>".join(parts)
    if step.evidence:
        pieces = len(step.evidence)
        title = "evidence" if pieces == 1 else f"evidence: {pieces} pieces"
        each = "".join(f"<li><code>{as_html(one)}</code></li>" for one in step.evidence)
        found += f"<details><summary>{title}</summary><ul>{each}</ul></details>"
    return found


@lru_cache(maxsize=1024)
def _in_short(step: StepView) -> str:
    """Return a step of a stretch."""
    return f"<li>{step.number} {as_html(step.name)} {as_html(time_words(step))}</li>"


@lru_cache(maxsize=64)
def _fold(fold: Fold) -> tuple[str, str]:
    """Return the line of a stretch of steps, which opens into their names."""
    steps = fold.steps
    each = "".join(map(_in_short, steps))
    return f'<i class="{fold.state}" style="flex:{len(steps)}"></i>', (
        f'<tr class="{fold.state}">'
        f'<th scope="row">{steps[0].number} to {steps[-1].number}</th>'
        f"<td>{_icon(fold)} {fold.state.word}</td>"
        f"<td><details><summary>{len(steps)} steps</summary><ul>{each}</ul></details>"
        f"</td><td>{time_words_of(fold)}</td></tr>"
    )
