"""Whether a run is absent, and when to say so: decided from what was seen of it alone.

An observer trusts its own monotonic clock: how long a beat has stood still is told from
when that observer saw it move. Only at the first sight of a beat does the wall clock
count, and only that of the host on which the holder runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from nbckpt.records import Record

Word = Literal[
    "alive", "finished", "late", "dead", "stopped", "failed", "waiting",
    "answered", "never started", "can't tell",
]  # fmt: skip
News = Literal["", "alert", "recovered"]

OVER = {"completed", "finished", "cancelled", "frozen"}
WELL = {"alive", "finished"}
SILENT = {"late", "dead", "stopped"}
"""Nobody works on the run: one absence, whichever of these it looks like."""
PERSON: dict[str, Word] = {
    "waiting": "waiting", "answered": "answered", "failed": "failed",
}  # fmt: skip
"""States in which a person is to act, whoever held the run."""
UNSEEN = (-1, -1)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look at a run showed."""

    state: str = ""
    """As ``nbckpt status`` says it; empty: there is no such run."""
    standing: str = "free"
    """Of the holder: ``free alive late dead unknown``."""
    beat: tuple[int, ...] = UNSEEN
    """Token and beat, which move as long as a holder lives."""
    age: float = 0.0
    """Seconds since the last beat by the wall clock; 0 where it is another host's."""
    problem: str = ""
    """Why nothing could be read."""


@dataclass(frozen=True, slots=True)
class Watched(Record):
    """What an observer knows of a run, by its own monotonic clock."""

    beat: tuple[int, ...] = UNSEEN
    moved: float = 0.0
    """When the beat moved last."""
    looked: float = 0.0
    word: Word | Literal[""] = ""
    since: float = 0.0
    """Since when the looks show this word."""
    told: tuple[str, ...] = ()
    """Kinds of trouble that were alerted since the run was well."""

    def still(self) -> float:
        """Return the seconds for which the beat has not moved."""
        return self.looked - self.moved


def word_of(seen: Seen, still: float, grace: float) -> Word:
    """Return what one look means.

    Parameters
    ----------
    seen : Seen
        The look.
    still : float
        Seconds for which the beat has not moved.
    grace : float
        Seconds without a beat after which a holder is late.

    Returns
    -------
    str
        Late: its process lives and does not beat. Dead: the process is gone, or on
        another host and silent. Stopped: the run was given back before its end.
    """
    if seen.problem:
        return "can't tell"
    if not seen.state:
        return "never started"
    if seen.state in OVER:
        return "finished"
    if seen.standing in {"alive", "late", "unknown"}:
        if still <= grace:
            return "alive"
        return "dead" if seen.standing == "unknown" else "late"
    return _unheld(seen)


def _unheld(seen: Seen) -> Word:
    """Return what a run is that no living process holds."""
    if seen.state in PERSON:
        return PERSON[seen.state]
    if seen.beat == UNSEEN:
        return "never started"
    return "dead" if seen.standing == "dead" else "stopped"


def look(
    before: Watched | None, seen: Seen, now: float, grace: float
) -> tuple[Watched, News]:
    """Return what is known after one more look, and whether somebody is to be told.

    Parameters
    ----------
    before : Watched or None
        Known before; None at the first look.
    seen : Seen
        The look.
    now : float
        The observer's monotonic clock.
    grace : float
        Seconds that a run may be silent, missing or unreadable.

    Returns
    -------
    tuple of Watched and str
        One alert for each absence, and for each other kind of trouble, until the run is
        well again; then ``recovered``.
    """
    known = before or Watched()
    after = _after(known, seen, now, grace)
    if after.word in WELL:
        return replace(after, told=()), "recovered" if known.told else ""
    kind = "silent" if after.word in SILENT else after.word
    if kind in known.told or not _stands(after, grace):
        return after, ""
    return replace(after, told=(*known.told, kind)), "alert"


def _after(known: Watched, seen: Seen, now: float, grace: float) -> Watched:
    """Return what is known after one more look, before anybody is told."""
    moved, beat = known.moved, known.beat
    if not seen.problem:
        moved, beat = _moved(known, seen, now), seen.beat
    word = word_of(seen, now - moved, grace)
    since = known.since if word == known.word else now
    return Watched(beat, moved, now, word, since, known.told)


def _moved(known: Watched, seen: Seen, now: float) -> float:
    """Return when the beat moved last, as exactly as this observer can know."""
    if seen.beat == known.beat:
        return known.moved
    # After the look before, whatever the wall clock says.
    earliest = known.looked if known.word else now - seen.age
    return min(max(now - seen.age, earliest), now)


def _stands(after: Watched, grace: float) -> bool:
    """Tell whether a word has stood long enough to be told."""
    if after.word in {"late", "dead", "stopped"}:
        return after.still() > grace
    # A person who is needed is told at once.
    return after.word in {"failed", "waiting"} or after.looked - after.since >= grace
