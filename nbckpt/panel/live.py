"""The panel of a run: shown where the run is begun, and true while cells run.

It never stands in the way: what fails here is logged, and the step goes on.
"""

from __future__ import annotations

import functools
import logging
import time
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, ParamSpec

from nbckpt.credentials import masked
from nbckpt.errors import BadStep, NbckptError
from nbckpt.loops import begun
from nbckpt.panel.screen import Screen, Ticker, show_names
from nbckpt.panel.view import LoopView, RunView, State
from nbckpt.resume import Skip
from nbckpt.runner import state_of
from nbckpt.source.cells import read_sources
from nbckpt.verbs.finding.calling import opening
from nbckpt.verbs.finding.starting import START
from nbckpt.verbs.forms.late import late

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.panel import looking
    from nbckpt.panel.preference import NbCkpt
    from nbckpt.panel.widget import Progress
    from nbckpt.runner import Runner
    from nbckpt.session import Session
else:
    # Where nobody looks, nothing of it is needed.
    looking = late("nbckpt.panel.looking")

P = ParamSpec("P")
LETTERS = 500
"""Of an error that are shown."""
log = logging.getLogger("nbckpt")


def _harmless(method: Callable[P, None]) -> Callable[P, None]:
    """Return a method whose failure is no failure of the step."""

    @functools.wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception:
            log.debug("the panel could not be kept up to date", exc_info=True)

    return guarded


class Panel:
    """What a person sees of the run of a kernel.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.
    preference : NbCkpt
        What the user wants to see.

    Attributes
    ----------
    view : RunView
        The run as of the last step that began or ended.
    """

    def __init__(self, session: Session, preference: NbCkpt) -> None:
        self._session = session
        self._preference = preference
        self._screen: Screen | None = None
        self._ticker = Ticker(self._tick)
        self._widgets: weakref.WeakSet[Progress] = weakref.WeakSet()
        self._happened: dict[str, tuple[State, str]] = {}
        self._run_id = ""
        self._wanted = ""
        self._counts: tuple[LoopView, ...] = ()
        self.view = RunView()

    def ask(self, where: str) -> None:
        """Have the panel shown at the end of the cell that runs.

        Parameters
        ----------
        where : {"load", "start"}
            What the cell does. A cell that loads leaves it to one that starts, if the
            notebook has such.
        """
        self._wanted = where

    def join(self, widget: Progress) -> None:
        """Keep a widget of the user's up to date as well."""
        self._widgets.add(widget)
        if self.is_seen:
            self._look()
            widget.tell(self.now())
        else:
            widget.tell(looking.look_at_file(self._session.identity.notebook))

    @property
    def is_seen(self) -> bool:
        """Whether somebody sees what changes."""
        is_live = self._preference.mode(self._session.shell) == "live"
        return is_live and bool(self._screen or self._widgets)

    def now(self) -> RunView:
        """Return the run as it is at this moment, items of running loops included."""
        items = _loops() if self.view.running is not None else ()
        return replace(self.view, at=time.time(), items=items)

    @_harmless
    def begun(self, runner: Runner) -> None:
        """Take note of a step that runs, or was skipped."""
        decision = runner.last.get(runner.entered)
        if runner.running is not None:
            reason = getattr(decision, "reason", "")
            self._note(runner.entered, State.RUNNING, f"runs: {reason}")
        else:
            is_skipped = isinstance(decision, Skip)
            self._note(runner.entered, State.SKIPPED if is_skipped else State.DONE, "")

    def count(self) -> None:
        """Take note of how far the loops are: their end forgets them."""
        self._counts = _loops()

    @_harmless
    def committed(self, runner: Runner) -> None:
        """Take note of a step that completed."""
        decision = runner.last.get(runner.entered)
        self._note(
            runner.entered, State.DONE, f"ran: {getattr(decision, 'reason', '')}"
        )

    @_harmless
    def ended(self, step: str, error: BaseException | None) -> None:
        """Take note of the end of a cell; show the panel if the cell asked for it.

        Parameters
        ----------
        step : str
            The step that the cell began; empty for a plain cell.
        error : BaseException or None
            What it raised.
        """
        if step and error is not None:
            self._note(step, looking.STATES[str(state_of(error))], _why(error))
        wanted = self._wanted
        if self._session.silent or not wanted:
            return
        self._wanted = ""
        if error is None and (wanted == "start" or not self._starts_elsewhere()):
            self._show()

    def close(self) -> None:
        """Show nothing new any more."""
        self._ticker.stop()

    def _note(self, name: str, state: State, why: str) -> None:
        """Take note of what became of a step."""
        session = self._session
        if session.is_held and session.run_id != self._run_id:
            self._happened.clear()
            self._run_id = session.run_id
            self.view = replace(self.view, run_id="", began=0.0)
        self._happened[name] = state, why
        began = self.view.began or time.time()
        self.view = replace(self.view, began=began)
        if not self.is_seen:
            return
        if self.view.run_id != self._run_id:
            self._look()
        self.view = self._with(self.view, name)
        self._refresh(at_once=state not in {State.RUNNING, State.SKIPPED, State.DONE})

    def _with(self, view: RunView, name: str) -> RunView:
        """Return a run with what became of one of its steps in this kernel."""
        state, why = self._happened[name]
        step, session = view.step(name), self._session
        if state in {State.SKIPPED, State.DONE} and session.is_held:
            record = session.journal.steps(session.run_id).get(name)
            if record is not None:
                counted = replace(step, loops=self._counts)
                return view.put(looking.completed(counted, record, state, why))
        now = time.time()
        if state is State.RUNNING:
            changed = replace(step, started_at=now, seconds=0.0, saved=0.0)
        else:
            ran = now - step.started_at if step.state is State.RUNNING else 0.0
            changed = replace(step, seconds=ran, saved=0.0)
        return view.put(replace(changed, state=state, why=why, loops=self._counts))

    def _look(self) -> None:
        """Read the run from its records, and what this kernel knows besides."""
        began, view = self.view.began, self._read()
        for name in self._happened:
            view = self._with(view, name)
        self.view = replace(view, began=began)

    def _read(self) -> RunView:
        """Return what is recorded of the notebook's run; of none, what its file says."""
        session = self._session
        try:
            with opening(session) as call:
                if call.store.exists:
                    return looking.look(call.reader, call.run())
        except NbckptError:
            log.debug("the store tells nothing to the panel", exc_info=True)
        return looking.look_at_file(session.identity.notebook)

    def _starts_elsewhere(self) -> bool:
        """Tell whether another cell of the notebook has a line that starts the run."""
        notebook = self._session.identity.notebook
        if notebook is None or notebook.suffix != ".ipynb":
            return False
        try:
            return any(START.search(source) for source in read_sources(notebook))
        except NbckptError:
            return False

    def _show(self) -> None:
        """Show the panel below the cell that runs."""
        mode = self._preference.mode(self._session.shell)
        if mode == "static":
            show_names(looking.look_at_file(self._session.identity.notebook))
        if mode != "live":
            return
        if self._screen is not None:
            self._screen.seal("nbckpt: the panel of the run stands in another cell")
        self._look()
        screen = Screen(self._session.shell, self.now)
        screen.show()
        self._screen = screen

    def _refresh(self, *, at_once: bool) -> None:
        """Show what is new, now or in a moment."""
        is_over = at_once or not self.view.is_open
        if self._screen is not None:
            self._screen.follow()
        if not self._tell(at_once=is_over) or self.view.running is not None:
            self._ticker.wake()

    def _tell(self, *, at_once: bool = False) -> bool:
        """Tell all who look; return whether they know all that is new."""
        whole = self._screen is None or self._screen.refresh(at_once=at_once)
        if whole:
            for widget in list(self._widgets):
                widget.tell(self.now())
        return whole

    def _tick(self) -> bool:
        """Tell all who look, from the ticker's thread; return whether to go on."""
        try:
            whole = self._tell()
        except Exception:
            log.debug("the panel could not be kept up to date", exc_info=True)
            return False
        return self.is_seen and (not whole or self.view.running is not None)


panels: list[Panel] = []
"""The panel of this kernel, once nbckpt is loaded."""


def panel() -> Panel:
    """Return the panel of this kernel.

    Raises
    ------
    BadStep
        If nbckpt is not loaded here.
    """
    if not panels:
        raise BadStep("nbckpt is not loaded in this process", "First: %load_ext nbckpt")
    return panels[0]


def _why(error: BaseException) -> str:
    """Return an error in short; what nbckpt says needs no name of a class."""
    name = "" if isinstance(error, NbckptError) else type(error).__name__
    return ": ".join(part for part in (name, masked(str(error))) if part)[:LETTERS]


def _loops() -> tuple[LoopView, ...]:
    """Return how far the loops of the running body are, those inside items left out."""
    ledgers = [loop.ledger for loop in begun.running()]
    return tuple(
        LoopView(
            ledger.record.loop,
            len(ledger.done),
            ledger.record.total,
            len(ledger.errors),
        )
        for ledger in ledgers
        if ":" not in ledger.record.loop
    )
