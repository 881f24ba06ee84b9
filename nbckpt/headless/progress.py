"""What a person sees of a run while it goes on, and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from nbckpt.verbs.forms.pages import duration, listed

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from nbckpt.records import Event
    from nbckpt.runs.history import Reader

Say = Callable[[str], None]
Watch = Callable[["Path", str, "Tally"], "AbstractContextManager[None]"]
"""From a store's folder, a run and its tally to a context in which it is looked at."""


@dataclass(slots=True)
class Tally:
    """What happened in this call, over all of its kernels."""

    ran: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    saved: float = 0.0
    """Seconds that the bodies of the skipped steps had taken."""


class StepLine(str):
    """A line that tells how a step ended.

    Parameters
    ----------
    text : str
        The line.
    kind : str
        Of the event.
    """

    __slots__ = ("kind",)
    kind: str

    def __new__(cls, text: str, kind: str) -> Self:
        """Return the line, with what it is about."""
        line = super().__new__(cls, text)
        line.kind = kind
        return line


class Progress:
    """Tells each step's end as the run's history tells it.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run_id : str
        The run.
    say : callable
        Takes a line.
    """

    def __init__(self, reader: Reader, run_id: str, say: Say) -> None:
        self.tally = Tally()
        self._reader = reader
        self._run_id = run_id
        self._say = say
        lines = reader.history(run_id)
        self._last = lines[-1][0] if lines else ""

    def tell(self) -> None:
        """Tell what is new in the history."""
        for key, event in self._reader.history(self._run_id, self._last):
            self._last = key
            self._count(event)
            text = describe(event)
            if event.step and text:
                line = f"{self._label(event.step)} {text}"
                self._say(StepLine(line, event.kind))
            elif text:
                self._say(text)

    def _count(self, event: Event) -> None:
        """Count a step that ended."""
        if event.kind == "completed" and event.step not in self.tally.ran:
            self.tally.ran.append(event.step)
        elif event.kind == "skipped":
            self.tally.saved += event.seconds
            if event.step not in self.tally.skipped:
                self.tally.skipped.append(event.step)

    def _label(self, step: str) -> str:
        """Return a step's place and name, aligned with the others."""
        names = [planned.name for planned in self._reader.plan(self._run_id).steps]
        width = max(map(len, names), default=0)
        place = names.index(step) + 1 if step in names else 0
        return f"[{place}/{len(names)}] {step.ljust(width)}"

    def verified(self) -> int:
        """Return how many files stood as evidence of the steps that were skipped."""
        records = self._reader.steps(self._run_id)
        found = [records[name] for name in self.tally.skipped if name in records]
        return sum(len(record.evidence.files) for record in found)

    def summary(self) -> list[str]:
        """Return what was skipped, what ran, what was verified, and the time saved.

        Returns
        -------
        list of str
            Lines. A step that ran before its kernel died and was then skipped counts as
            both.
        """
        tally = self.tally
        return [
            f"ran       {len(tally.ran)}: {listed(tally.ran, 20)}",
            f"skipped   {len(tally.skipped)}: {listed(tally.skipped, 20)}",
            f"verified  files of the skipped steps: {self.verified()}",
            f"saved     {duration(tally.saved)}",
        ]


def describe(event: Event) -> str:
    """Return how a step ended, for its line; empty if it did not end.

    Parameters
    ----------
    event : Event
        From the history.

    Returns
    -------
    str
        One line.
    """
    reason = event.reason.partition("\n")[0].rstrip(": ")
    match event.kind:
        case "skipped":
            return f"skipped ({reason}, saved {duration(event.seconds)})"
        case "completed":
            return f"ran {duration(event.seconds)} ({reason})"
        case "failed" | "interrupted":
            return f"{event.kind} {reason}"
        case "waiting":
            # What to do about it follows at the end, whole.
            return f"waits for a human ({reason.partition('. ')[0]})"
        case "plan" if event.reason:
            return f"the list of steps changed: {event.reason}"
        case _:
            return ""
