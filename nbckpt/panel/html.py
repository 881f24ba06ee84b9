"""The panel as HTML: no script, readable without its style, all text escaped.

An untrusted notebook loses the style; the table, its words and the details stay.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nbckpt.panel.style import CSS
from nbckpt.panel.view import Fold, blocks
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
    from collections.abc import Iterable

    from nbckpt.panel.view import Block, LoopView, RunView, StepView

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
    made = list(map(_block, blocks(view.steps)))
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
    return f"<i aria-hidden=true>&#{ord(line.state.icon)};</i>"


@lru_cache(maxsize=64)
def _block(block: Block) -> tuple[str, str]:
    """Return the part of some lines in the bar, and their rows."""
    made = [_fold(line) if isinstance(line, Fold) else _row(line) for line in block]
    return "".join([part for part, _ in made]), "".join([row for _, row in made])


@lru_cache(maxsize=1024)
def _row(step: StepView) -> tuple[str, str]:
    """Return the line of a step; most are as they were at the last look."""
    known = "<br>".join(_told(step))
    if step.evidence:
        count = len(step.evidence)
        title = "evidence" if count == 1 else f"evidence: {count} pieces"
        known += _opens(title, _pieces(step))
    name = f"{step.number} {as_html(step.name)}"
    row = _cells(step, name, known, as_html(time_words(step)))
    return f"<i class={step.state}></i>", _ascii(row)


@lru_cache(maxsize=8)
def _fold(fold: Fold) -> tuple[str, str]:
    """Return the line of a stretch, which opens into its steps, and these into theirs."""
    steps = fold.steps
    known = _opens(f"{len(steps)} steps", map(_in_short, steps))
    name = f"{steps[0].number} to {steps[-1].number}"
    row = _cells(fold, name, known, time_words_of(fold))
    return f"<i class={fold.state} style=flex:{len(steps)}></i>", row


@lru_cache(maxsize=1024)
def _in_short(step: StepView) -> str:
    """Return a step of a stretch, which opens into all that is known of it."""
    name = f"{step.number} {as_html(step.name)} {as_html(time_words(step))}"
    known = [*_told(step), *_pieces(step)]
    return _ascii(_opens(name, known) if known else name)


def _cells(line: StepView | Fold, name: str, known: str, time: str) -> str:
    """Return a row of the table; what each of 200 may repeat is kept short."""
    state = line.state
    return (
        f"<tr class={state}><th scope=row>{name}</th><td>{_icon(line)} {state.word}</td>"
        f"<td>{known}</td><td>{time}</td></tr>"
    )


def _opens(title: str, parts: Iterable[str]) -> str:
    """Return a line that opens into a list, by keyboard and mouse."""
    listed = "</li><li>".join(parts)
    return f"<details><summary>{title}</summary><ul><li>{listed}</li></ul></details>"


def _told(step: StepView) -> list[str]:
    """Return the items of a step, and why it ran or stopped."""
    words = [*map(items_words, step.loops), step.why]
    return [as_html(each) for each in words if each]


def _pieces(step: StepView) -> list[str]:
    """Return the evidence of a step."""
    return [f"<code>{as_html(piece)}</code>" for piece in step.evidence]


def _ascii(page: str) -> str:
    """Return HTML with all other letters written out: it is packed in half the time."""
    return page.encode("ascii", "xmlcharrefreplace").decode("ascii")
