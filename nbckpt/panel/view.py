"""What a panel shows of a run, as values: no disk, no clock, no kernel."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from nbckpt.verbs.forms.pages import state_word

MANY_STEPS = 12
"""Up to so many steps each has a line of its own, whatever its state."""
BLOCK = 16
"""Lines that each form keeps as one: of 200, most blocks are as they were."""
LONG = 4
"""So many quiet steps in a row fold into one line, where there are many steps."""


class State(enum.StrEnum):
    """Where a step stands, as people see it."""

    __hash__ = str.__hash__
    """Each look asks it of all steps, and that of an enum is no C."""

    SKIPPED = "skipped"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"
    ANSWERED = "answered"
    STALE = "stale"
    AGAIN = "again"
    PENDING = "pending"

    @property
    def icon(self) -> str:
        """A sign that is no colour."""
        return LOOKS[self][0]

    @property
    def word(self) -> str:
        """The state in words."""
        return LOOKS[self][1]


LOOKS = {
    State.SKIPPED: ("\N{CLOCKWISE TOP SEMICIRCLE ARROW}", "verified, skipped"),
    State.RUNNING: ("\N{BLACK RIGHT-POINTING SMALL TRIANGLE}", "running"),
    State.DONE: ("\N{CHECK MARK}", "done"),
    State.FAILED: ("\N{MULTIPLICATION X}", "failed"),
    State.INTERRUPTED: ("!", "interrupted"),
    State.WAITING: ("?", state_word("waiting")),
    State.ANSWERED: ("\N{RIGHTWARDS ARROW}", state_word("answered")),
    State.STALE: ("\N{NOT EQUAL TO}", "stale"),
    State.AGAIN: ("\N{CLOCKWISE OPEN CIRCLE ARROW}", "runs again"),
    State.PENDING: ("\N{WHITE CIRCLE}", "pending"),
}
PASSED = frozenset({State.SKIPPED, State.DONE, State.AGAIN})
"""States of a step that this pass need not come to any more, if it came to it."""
OPEN = frozenset({State.RUNNING, State.PENDING})
"""States that this pass goes on from."""
QUIET = frozenset({State.SKIPPED, State.DONE, State.PENDING})
"""States that need nobody's eye."""


@dataclass(frozen=True, slots=True)
class LoopView:
    """How far a loop over items is."""

    name: str
    done: int
    total: int | None = None
    """None: the number of items is not known."""
    failed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StepView:
    """One step; where nothing of it has changed it is the same object.

    So what was made of it once (its line, the sums of all steps) is found again at no cost.
    """

    number: int
    name: str
    state: State = State.PENDING
    seconds: float = 0.0
    """Time that its body took."""
    started_at: float = 0.0
    expected: float = 0.0
    """Time that its body took last; 0: it never completed."""
    saved: float = 0.0
    why: str = ""
    """Why it ran, failed, waits or runs again."""
    evidence: tuple[str, ...] = ()
    loops: tuple[LoopView, ...] = ()


@dataclass(frozen=True)
class RunView:
    """A run."""

    run_id: str = ""
    steps: tuple[StepView, ...] = ()
    began: float = 0.0
    """When this kernel came to its first step; 0: not yet."""
    at: float = 0.0
    """When this was so, in seconds since the epoch."""
    resume: str = ""
    """Command that goes on with the run after a crash."""
    items: tuple[LoopView, ...] = ()
    """How far the loops of the running step are at this moment."""

    @cached_property
    def _sums(self) -> _Sums:
        """What all steps come to."""
        return _sums(self.steps)

    @property
    def done(self) -> int:
        """Number of steps with a checkpoint that stands."""
        return self._sums.done

    @property
    def is_done(self) -> bool:
        """Whether every step has a checkpoint that stands."""
        return bool(self.steps) and self.done == len(self.steps)

    @property
    def is_open(self) -> bool:
        """Whether a step runs, or was not come to yet."""
        return self._sums.is_open

    @property
    def way_on(self) -> str:
        """`resume`, unless there is nothing left to go on with."""
        return "" if self.is_done else self.resume

    @property
    def saved(self) -> float:
        """Seconds that the bodies of the skipped steps had taken."""
        return self._sums.saved

    @property
    def elapsed(self) -> float:
        """Seconds since this kernel came to its first step."""
        return max(self.at - self.began, 0.0) if self.began else 0.0

    @property
    def running(self) -> StepView | None:
        """The step whose body runs."""
        return self._sums.running

    @property
    def left(self) -> float | None:
        """Seconds that are still expected; None where history does not tell."""
        sums, step = self._sums, self.running
        if sums.is_new:
            return None
        ran = min(self.at - step.started_at, step.expected) if step else 0.0
        return sums.expected - ran or None

    def step(self, name: str) -> StepView:
        """Return a step; one that is not known yet comes after all others."""
        found = [step for step in self.steps if step.name == name]
        return found[0] if found else StepView(len(self.steps) + 1, name)

    def put(self, step: StepView) -> RunView:
        """Return the run with a step as it is now."""
        if all(step.name != other.name for other in self.steps):
            return replace(self, steps=(*self.steps, step))
        changed = (step if step.name == other.name else other for other in self.steps)
        return replace(self, steps=tuple(changed))


@dataclass(frozen=True, slots=True)
class _Sums:
    """What all steps of a run come to."""

    done: int
    saved: float
    running: StepView | None
    expected: float
    """Seconds that the steps ahead took last, the running one as well."""
    is_new: bool
    """Whether one of these never completed."""
    is_open: bool
    """Whether one of these runs, or was not come to yet."""


@lru_cache(maxsize=8)
def _sums(steps: tuple[StepView, ...]) -> _Sums:
    """Return what all steps come to; most updates change none of them."""
    ahead = [step for step in steps if step.state not in PASSED]
    running = [step for step in ahead if step.state is State.RUNNING]
    return _Sums(
        done=len(steps) - len(ahead),
        saved=sum([step.saved for step in steps]),
        running=running[0] if running else None,
        expected=sum([step.expected for step in ahead]),
        is_new=not all(step.expected for step in ahead),
        is_open=any(step.state in OPEN for step in ahead),
    )


@dataclass(frozen=True, slots=True)
class Fold:
    """Steps in a row that share a quiet state."""

    steps: tuple[StepView, ...]

    @property
    def state(self) -> State:
        """The state that they share."""
        return self.steps[0].state

    @property
    def seconds(self) -> float:
        """Time that their bodies took, or that was saved where they were skipped."""
        if self.state is State.SKIPPED:
            return sum(step.saved for step in self.steps)
        return sum(step.seconds for step in self.steps)


Block = tuple[StepView | Fold, ...]


@lru_cache(maxsize=8)
def blocks(steps: tuple[StepView, ...]) -> list[Block]:
    """Return the lines of a list of steps; long quiet stretches are one line.

    Parameters
    ----------
    steps : tuple of StepView
        All steps of a run.

    Returns
    -------
    list of tuple of StepView or Fold
        In order; each block is the same as before if none of its steps has changed.
    """
    lines = steps if len(steps) <= MANY_STEPS else tuple(_folded(steps))
    return [lines[begin : begin + BLOCK] for begin in range(0, len(lines), BLOCK)]


def _folded(steps: tuple[StepView, ...]) -> list[StepView | Fold]:
    """Return the lines of many steps."""
    found: list[StepView | Fold] = []
    begin, states = 0, [*(step.state for step in steps), None]
    for end in range(1, len(states)):
        if states[end] is not states[begin]:
            stretch = steps[begin:end]
            is_folded = len(stretch) >= LONG and stretch[0].state in QUIET
            found += [Fold(stretch)] if is_folded else stretch
            begin = end
    return found
