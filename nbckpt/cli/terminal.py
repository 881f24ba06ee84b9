"""A run on a terminal: a line for each step that ended, and below what is at hand.

What was said stays, also when the process is killed; only what is at hand is drawn over.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from nbckpt.headless.progress import StepLine
from nbckpt.panel.looking import look, look_at_file
from nbckpt.panel.view import OPEN, PASSED, RunView, State, StepView
from nbckpt.panel.words import head_words, items_words, running_words, time_words
from nbckpt.verbs.finding.opening import looking
from nbckpt.verbs.forms.drawing import STYLES
from nbckpt.verbs.forms.pages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.headless.progress import Tally
    from nbckpt.runs.history import Reader

INTERVAL = 0.25
"""Seconds between two looks, at least."""
SHARE = 20
"""Between two looks at the store lies this many times what a look takes."""
NEXT = 3
"""Steps that are still to come which are shown."""
BAR, SIXTH = 24, 6
"""Letters of a bar at most, and its share of the terminal."""
STATES = {"completed": State.DONE}
log = logging.getLogger("nbckpt")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of what is at hand."""

    icon: str
    text: str
    style: str = ""
    bar: tuple[int, int] = (0, 0)
    """How many are done, of how many; of 0: no bar."""


class Terminal:
    """Shows a run on a terminal.

    Parameters
    ----------
    console : Console, optional
        Without it, standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)

    def say(self, line: str) -> None:
        """Write a line that stays.

        Parameters
        ----------
        line : str
            A `StepLine` gets the sign and the colour of how the step ended.
        """
        text = Text(printable(line))
        if isinstance(line, StepLine):
            state = STATES.get(line.kind) or State(line.kind)
            style = STYLES.get(line.kind, "yellow")
            text = Text.assemble((f"{state.icon} ", style), text)
        self._console.print(text, soft_wrap=True)

    @contextmanager
    def watch(self, folder: Path, run_id: str, tally: Tally) -> Iterator[None]:
        """Show what is at hand, below all lines, while the run goes on.

        Parameters
        ----------
        folder : Path
            The run's store.
        run_id : str
            The run.
        tally : Tally
            What happened in this call so far.
        """
        # What goes into a file of its own must not come here instead.
        redirect = sys.stderr.isatty()
        live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stderr=redirect,
        )
        over = threading.Event()
        thread = threading.Thread(
            target=_follow, args=(live, over, folder, run_id, tally), daemon=True
        )
        with live:
            # A process that is killed could not give the cursor back.
            self._console.show_cursor(show=True)
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()


def _follow(
    live: Live, over: threading.Event, folder: Path, run_id: str, tally: Tally
) -> None:
    """Draw what is at hand again and again; what fails here is no failure of the run."""
    try:
        with looking(folder) as reader:
            _draw(live, over, reader, run_id, tally)
    except Exception:
        log.debug("the terminal could not be kept up to date", exc_info=True)


def _draw(
    live: Live, over: threading.Event, reader: Reader, run_id: str, tally: Tally
) -> None:
    """Draw what is new until it is over."""
    view, due, drawn = RunView(began=time.time()), 0.0, None
    while not over.wait(INTERVAL):
        began = time.monotonic()
        if began >= due:
            view = at_hand(_look(reader, run_id), view.began, tally)
            due = began + SHARE * (time.monotonic() - began)
        found = rows(replace(view, at=time.time()))
        if found != drawn:
            drawn = found
            live.update(picture(found, live.console.width), refresh=True)


def _look(reader: Reader, run_id: str) -> RunView:
    """Return what the records tell, or the notebook's file as long as they tell nothing."""
    run = reader.run(run_id)
    found = look(reader, run)
    return found if found.steps else look_at_file(Path(run.notebook))


def at_hand(view: RunView, began: float, tally: Tally) -> RunView:
    """Return a run as this call of `nbckpt run` has come to know it.

    Parameters
    ----------
    view : RunView
        From the records.
    began : float
        When this call began.
    tally : Tally
        What happened in it.

    Returns
    -------
    RunView
        Steps that failed before it are still to come; those that it verified are skipped.
    """

    def known(step: StepView) -> StepView:
        if step.name in tally.skipped and step.state is State.DONE:
            return replace(step, state=State.SKIPPED, saved=step.seconds)
        is_old = step.started_at < began and step.state not in PASSED | OPEN
        return replace(step, state=State.PENDING, seconds=0.0) if is_old else step

    return replace(view, steps=tuple(map(known, view.steps)), began=began)


def rows(view: RunView) -> list[Row]:
    """Return the lines of what is at hand.

    Parameters
    ----------
    view : RunView
        From `at_hand`.

    Returns
    -------
    list of Row
        How far the run is, the step that runs with its items, and the next ones.
    """
    head = ", ".join(head_words(view, dated=False))
    found = [Row(" ", head, "bold", (view.done, len(view.steps)))]
    step = view.running
    if step is not None:
        words = f"{step.name}  {running_words(step, view.at)}"
        found.append(Row(step.state.icon, words, STYLES["running"]))
        found += [
            Row(" ", f"  {items_words(loop)}", "", (loop.done, loop.total or 0))
            for loop in step.loops
        ]
    coming = [step for step in view.steps if step.state not in PASSED | {State.RUNNING}]
    found += [_coming(step) for step in coming[:NEXT]]
    if len(coming) > NEXT:
        found.append(Row(" ", f"and {len(coming) - NEXT} more", "dim"))
    return found


def _coming(step: StepView) -> Row:
    """Return the line of a step that is still to come."""
    words = (step.name, step.state.word, time_words(step))
    return Row(step.state.icon, "  ".join(filter(None, words)), "dim")


def picture(found: list[Row], width: int) -> Table:
    """Return lines as a terminal draws them, none of them wrapped.

    Parameters
    ----------
    found : list of Row
        From `rows`.
    width : int
        Of the terminal; words come before bars.

    Returns
    -------
    Table
        Signs, texts and bars.
    """
    table = Table.grid(padding=(0, 1))
    table.add_column(width=1)
    table.add_column()
    table.add_column(width=min(BAR, width // SIXTH))
    for row in found:
        done, total = row.bar
        bar: ProgressBar | Text = Text()
        if total:
            bar = ProgressBar(total, done, complete_style="cyan")
        words = " ".join(printable(row.text).split("\n"))
        text = Text(words, row.style, no_wrap=True, overflow="ellipsis")
        table.add_row(Text(row.icon, row.style), text, bar)
    return table
