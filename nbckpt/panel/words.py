"""The words that all forms of a panel share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.panel.view import State
from nbckpt.runs.moments import local
from nbckpt.verbs.forms.pages import MINUTE, duration

if TYPE_CHECKING:
    from nbckpt.panel.view import Fold, LoopView, RunView, StepView

WAY_ON = "To go on after a crash: run all cells, or"


def whole(seconds: float) -> str:
    """Return a length of time that goes on: its words change once a second at most.

    Parameters
    ----------
    seconds : float
        Its length.

    Returns
    -------
    str
        In whole seconds.
    """
    return f"{int(seconds)} s" if seconds < MINUTE else duration(int(seconds))


def head_words(view: RunView, *, dated: bool = True) -> list[str]:
    """Return how far a run is.

    Parameters
    ----------
    view : RunView
        The run.
    dated : bool, optional
        Whether to say when this was so: what is shown can be out of date later.

    Returns
    -------
    list of str
        Parts, the most important first.
    """
    count = f"{view.done} of {len(view.steps)} steps done"
    words = [count if view.steps else "no step has run yet"]
    if view.began:
        words.append(f"elapsed {whole(view.elapsed)}")
    left = view.left
    if left is not None:
        words.append(f"about {whole(left)} left")
    if view.saved:
        words.append(f"saved {duration(view.saved)}")
    if view.at and dated:
        words.append(f"as of {local(view.at)}")
    return words


def items_words(loop: LoopView) -> str:
    """Return how far a loop is.

    Parameters
    ----------
    loop : LoopView
        The loop.

    Returns
    -------
    str
        Count, and how many failed.
    """
    total = "" if loop.total is None else f" of {loop.total}"
    failed = f", {loop.failed} failed" if loop.failed else ""
    return f"{loop.done}{total} items{failed}"


def running_words(step: StepView, at: float) -> str:
    """Return how long a step has been running, and how long it took last time.

    Parameters
    ----------
    step : StepView
        A step that runs.
    at : float
        Now.

    Returns
    -------
    str
        Without its name.
    """
    last = f", last time {duration(step.expected)}" if step.expected else ""
    return f"running for {whole(max(at - step.started_at, 0.0))}{last}"


def time_words(step: StepView) -> str:
    """Return the time that a step took, or is expected to take.

    Parameters
    ----------
    step : StepView
        The step.

    Returns
    -------
    str
        Empty if nothing is known.
    """
    if step.state is State.SKIPPED:
        return f"saved {duration(step.saved)}"
    if step.seconds and step.state is not State.RUNNING:
        return duration(step.seconds)
    return f"last time {duration(step.expected)}" if step.expected else ""


def time_words_of(fold: Fold) -> str:
    """Return the time that the steps of a stretch took, or saved.

    Parameters
    ----------
    fold : Fold
        Steps of one state.

    Returns
    -------
    str
        Empty if nothing is known.
    """
    seconds = fold.seconds
    if not seconds:
        return ""
    return f"{'saved ' if fold.state is State.SKIPPED else ''}{duration(seconds)}"
