"""``nbckpt timeline``: who ran and who was skipped, over all attempts of a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypedDict

from nbckpt.pictures import Bar, Chart, Lane, Picture, chart_picture
from nbckpt.pictures.lanes import round_length
from nbckpt.verbs.finding.opening import step_names
from nbckpt.verbs.forms.pages import (
    Page,
    Table,
    Tree,
    duration,
    first_sentence,
    moment,
)
from nbckpt.verbs.standing.status import line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.records import Event, RunRecord
    from nbckpt.runs.history import Reader

ENDS = {"completed", "failed", "interrupted", "waiting", "cancelled"}
POINTS = {"skipped", "stopped"}
"""Kinds of lines that tell of a step whose body did not begin."""
KINDS = {
    "completed": "good", "skipped": "kept", "running": "now", "failed": "bad",
    "interrupted": "lost", "died": "lost", "waiting": "warn", "stopped": "warn",
    "cancelled": "pending",
}  # fmt: skip
LEGEND = (
    ("good", "ran"),
    ("kept", "verified and skipped"),
    ("now", "runs"),
    ("bad", "failed"),
    ("lost", "interrupted or killed"),
    ("warn", "waits for a human"),
    ("pending", "cancelled"),
)
SHOWN = 12
"""Sessions in the picture; all are in the table."""


class TimelineEntry(TypedDict):
    """What became of a step in one session."""

    session: int
    """From 1; a kernel that takes the run begins the next one."""
    step: str
    what: str
    """``completed skipped failed interrupted died waiting stopped cancelled running``;
    died: its process ended without a word."""
    begin: float
    """Seconds since the epoch."""
    end: float
    """Of one that died: the last sign of life, or its begin if none was seen."""
    seconds: float
    """Time that the body took; of a skipped step: that it saved."""
    reason: str
    """Why it ran, was skipped or stopped; or its error."""


class Timeline(TypedDict):
    """What ``nbckpt timeline --json`` prints."""

    run: str
    state: str
    """As `Status.state`."""
    sessions: int
    steps: list[str]
    entries: list[TimelineEntry]
    """In the order of the history."""


def timeline(reader: Reader, run: RunRecord, now: float | None = None) -> Timeline:
    """Return what became of each step in each session of a run.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.
    now : float, optional
        Wall clock in seconds since the epoch.

    Returns
    -------
    Timeline
        JSON values.

    Notes
    -----
    How long a step took that was killed is known from the beats of its process only.
    """
    at = time.time() if now is None else now
    standing, lease = line(reader, run, at), reader.lease(run.run_id)
    is_running = standing["state"] == "running"
    seen = at if is_running else lease.beat_at if lease else 0.0
    events = [event for _, event in reader.history(run.run_id)]
    names = step_names(reader, run.run_id)
    return told(run.run_id, standing["state"], names, events, seen)


def told(
    run_id: str, state: str, names: Iterable[str], events: Iterable[Event], seen: float
) -> Timeline:
    """Return the timeline that a history tells.

    Parameters
    ----------
    run_id, state : str
        The run, and where it stands.
    names : iterable of str
        Its steps in order.
    events : iterable of Event
        The lines of its history.
    seen : float
        Until when its last holder lived, as far as is known; 0: not known.

    Returns
    -------
    Timeline
        JSON values.
    """
    story = _Story()
    for event in events:
        story.take(event)
    story.close("running" if state == "running" else "died", seen)
    steps = [*names, *(entry["step"] for entry in story.entries)]
    return Timeline(
        run=run_id,
        state=state,
        sessions=story.session if story.entries else 0,
        steps=list(dict.fromkeys(steps)),
        entries=story.entries,
    )


class _Story:
    """Reads a history line by line."""

    def __init__(self) -> None:
        self.entries: list[TimelineEntry] = []
        self.session = 1
        self._open: dict[str, TimelineEntry] = {}

    def take(self, event: Event) -> None:
        """Take the next line."""
        if event.kind == "taken":
            self._begin_session(float(event.detail.get("seen_at") or 0.0))
        elif not event.step:
            return
        elif event.kind == "started":
            self._add(event, "running")
            self._open[event.step] = self.entries[-1]
        elif event.kind in POINTS:
            self._add(event, event.kind)
        elif event.kind in ENDS:
            self._end(event)

    def _begin_session(self, seen: float) -> None:
        """Begin another session, unless no step was met in this one."""
        self.close("died", seen)
        if self.entries and self.entries[-1]["session"] == self.session:
            self.session += 1

    def _add(self, event: Event, what: str) -> None:
        """Add an entry."""
        entry = TimelineEntry(
            session=self.session,
            step=event.step,
            what=what,
            begin=event.at,
            end=event.at,
            seconds=event.seconds,
            reason=event.reason,
        )
        self.entries.append(entry)

    def _end(self, event: Event) -> None:
        """Take the end of an attempt."""
        entry = self._open.pop(event.step, None)
        if entry is None:
            return
        entry["what"] = event.kind
        entry["end"] = max(event.at, entry["begin"])
        entry["seconds"] = event.seconds or entry["end"] - entry["begin"]
        entry["reason"] = event.reason or entry["reason"]

    def close(self, what: str, seen: float) -> None:
        """End the attempts whose end no line tells of."""
        for entry in self._open.values():
            entry["what"] = what
            entry["end"] = max(seen, entry["begin"])
            entry["seconds"] = entry["end"] - entry["begin"]
        self._open.clear()


def timeline_page(data: Timeline) -> Page:
    """Return a timeline for people.

    Parameters
    ----------
    data : Timeline
        From `timeline`.

    Returns
    -------
    Page
        A table for each session.
    """
    head = f"run {data['run']}: {data['state']}, sessions: {data['sessions']}"
    sessions: dict[int, list[TimelineEntry]] = {}
    for entry in data["entries"]:
        sessions.setdefault(entry["session"], []).append(entry)
    branches = [_session(*session) for session in sessions.items()]
    return [Tree(head, branches or ["no step was begun yet"])]


def _session(number: int, entries: list[TimelineEntry]) -> Tree:
    """Return the entries of a session; the date stands where it is another."""
    begin = moment(entries[0]["begin"])
    day = begin.partition(" ")[0]
    rows = [
        (
            moment(entry["begin"]).removeprefix(f"{day} "),
            entry["step"],
            entry["what"],
            _time(entry),
            first_sentence(entry["reason"]) or "-",
        )
        for entry in entries
    ]
    table = Table(("when", "step", "what", "time", "why"), rows)
    return Tree(f"session {number}, {begin}", [table])


def _time(entry: TimelineEntry) -> str:
    """Return how long a body took, or what its skipping saved."""
    if entry["what"] == "skipped":
        return f"saved {duration(entry['seconds'])}"
    if entry["what"] == "stopped" or (entry["what"] == "died" and not entry["seconds"]):
        return "-"
    return duration(entry["seconds"])


def timeline_picture(data: Timeline) -> Picture:
    """Return a timeline as a picture.

    Parameters
    ----------
    data : Timeline
        From `timeline`.

    Returns
    -------
    Picture
        A lane for each step; the time between sessions, and other long pauses, are left
        out.
    """
    first = data["sessions"] - SHOWN + 1
    shown = [entry for entry in data["entries"] if entry["session"] >= first]
    starts: dict[int, float] = {}
    for entry in shown:
        starts.setdefault(entry["session"], entry["begin"])
    busy = max(sum(entry["end"] - entry["begin"] for entry in shown) / 5, 0.01)
    mark = round_length(busy)
    total = f", the last {SHOWN} of {data['sessions']} sessions" if first > 1 else ""
    chart = Chart(
        title=f"Timeline of run {data['run']}{total}",
        told=_counted(shown),
        lanes=tuple(_lane(name, shown) for name in data["steps"]),
        legend=LEGEND,
        starts=tuple((at, _clock(at, starts)) for at in starts.values()),
        mark=(mark, duration(mark)),
    )
    return chart_picture(chart)


def _clock(at: float, starts: dict[int, float]) -> str:
    """Return the time of day; with the date where it is another than before."""
    days = [moment(start).partition(" ")[0] for start in starts.values()]
    text = moment(at)
    return text if len(set(days)) > 1 else text.partition(" ")[2]


def _counted(entries: list[TimelineEntry]) -> str:
    """Return how many steps ran, were skipped and so on, in a sentence."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry["what"]] = counts.get(entry["what"], 0) + 1
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "nothing"


def _lane(name: str, entries: Iterable[TimelineEntry]) -> Lane:
    """Return the lane of a step."""
    mine = [entry for entry in entries if entry["step"] == name]
    bars = tuple(
        Bar(
            entry["begin"],
            entry["end"],
            KINDS[entry["what"]],
            f"{name}: {entry['what']} {_time(entry)}, session {entry['session']}, "
            f"{moment(entry['begin'])}. {entry['reason']}",
        )
        for entry in mine
    )
    note = f"{mine[-1]['what']}, {_time(mine[-1])}" if mine else "pending"
    return Lane(name, bars, note.removesuffix(", -"))
