"""``nbckpt monitor``: what another process sees of runs, and what it says of them."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

from nbckpt.errors import NbckptError, NotFound
from nbckpt.runs import absence
from nbckpt.runs.absence import UNSEEN, WELL, Seen, Watched
from nbckpt.runs.leases import standing
from nbckpt.runs.processes import is_here
from nbckpt.verbs.finding.opening import looking, require
from nbckpt.verbs.finding.targets import notebook_named, run_named
from nbckpt.verbs.forms.pages import duration, state_word
from nbckpt.verbs.standing import status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nbckpt.records import RunRecord
    from nbckpt.runs.absence import News
    from nbckpt.runs.history import Reader
    from nbckpt.verbs.serve.remembering import Memory
    from nbckpt.verbs.standing.status import Status

HELD = {"alive", "late", "unknown"}
UNDER_WAY = {"running", "interrupted", "failed", "waiting", "answered"}
LOOKS = 5
"""Looks within one grace period, at least."""
MOST_SECONDS = 10.0


class Report(TypedDict):
    """What a monitor says of a run; one line of ``nbckpt monitor --json``."""

    target: str
    """As it is watched: a run id, or a notebook whose current run is meant."""
    run: str
    """Empty if there is none yet."""
    word: str
    """``alive finished late dead stopped failed waiting answered``, ``never started`` or
    ``can't tell``."""
    news: str
    """``alert``, ``recovered`` or empty."""
    text: str
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at a run, with what there is to say of it."""

    seen: Seen
    run: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Watching:
    """What is watched, and how long it may be silent."""

    folder: Path
    targets: Sequence[str]
    """Run ids and notebooks; empty: all runs that are current or held."""
    grace: float


class Monitor:
    """Looks at runs again and again, and tells what is new.

    Parameters
    ----------
    watching : Watching
        What is watched.
    memory : Memory
        What was known; brought up to date.
    deliver : callable
        Tells somebody; what could not be told is news at the next look again.
    tell : callable
        Takes what is shown here: each run once, and all news.
    """

    def __init__(
        self,
        watching: Watching,
        memory: Memory,
        deliver: Callable[[Report], bool],
        tell: Callable[[Report], None],
    ) -> None:
        self._watching = watching
        self._memory = memory
        self._deliver = deliver
        self._tell = tell
        self._shown: set[str] = set()

    def once(self) -> int:
        """Look once; return 0 if nobody needs to look, else 1."""
        well = [report["word"] in WELL for report in self.look(time.monotonic())]
        return 0 if all(well) else 1

    def go_on(self) -> int:
        """Look until all runs that were named by their ids are finished."""
        targets, pause = self._watching.targets, threading.Event()
        # A notebook begins new runs, and so does a store.
        ends = bool(targets) and not any(map(notebook_named, targets))
        while True:
            reports = self.look(time.monotonic())
            if ends and all(report["word"] == "finished" for report in reports):
                return 0
            pause.wait(min(self._watching.grace / LOOKS, MOST_SECONDS))

    def look(self, now: float) -> list[Report]:
        """Look at each run once, and tell what is new.

        Parameters
        ----------
        now : float
            The monotonic clock.

        Returns
        -------
        list of Report
            One for each run.

        Raises
        ------
        NotFound
            If no run is named and there is no store.
        """
        known, watched, reports = self._memory.watched, {}, []
        for target, sight in _sights(self._watching, known).items():
            before = known.get(target)
            after, news = absence.look(before, sight.seen, now, self._watching.grace)
            report = _report(target, sight, after, news)
            if news and not self._deliver(report):
                after = replace(after, told=before.told if before else ())
            if news or target not in self._shown:
                self._tell(report)
            self._shown.add(target)
            watched[target] = after
            reports.append(report)
        self._memory.keep(watched)
        return reports


def _sights(watching: Watching, known: dict[str, Watched]) -> dict[str, Sight]:
    """Look at each run; what can't be read is a sight, too."""
    try:
        with looking(watching.folder) as reader:
            if not watching.targets and not known:
                require(reader.store)
            targets = watching.targets or _watched_runs(reader, known)
            return {target: _sight(reader, target) for target in targets}
    except NotFound:
        raise
    except (NbckptError, OSError) as error:
        problem = error.what if isinstance(error, NbckptError) else str(error)
        sight = Sight(Seen(problem=problem), detail=problem)
        return dict.fromkeys(watching.targets or known, sight)


def _watched_runs(reader: Reader, known: dict[str, Watched]) -> list[str]:
    """Return the runs that are current or held, and those that are known in trouble."""
    current = {str(row["run_id"]) for _, row in reader.store.scan("current/")}
    troubled = {name for name, watched in known.items() if watched.word not in WELL}
    ids = [run.run_id for run in reader.runs()]
    held = {run_id for run_id in ids if standing(reader.lease(run_id)) in HELD}
    kept = {name for name in known if name in held | troubled}
    return sorted(current | held | kept)


def _sight(reader: Reader, target: str) -> Sight:
    """Look at one run."""
    try:
        run = run_named(reader, target)
    except NotFound:
        return Sight(Seen(), detail="there is no such run yet")
    now, lease = time.time(), reader.lease(run.run_id)
    line = status.line(reader, run, now)
    beat, age = UNSEEN, 0.0
    if lease is not None:
        beat = (lease.token, lease.beat)
        age = max(now - lease.beat_at, 0.0) if is_here(lease.holder) else 0.0
    seen = Seen(line["state"], line["holder"], beat, age)
    return Sight(seen, run.run_id, _detail(reader, run))


def _detail(reader: Reader, run: RunRecord) -> str:
    """Return where a run is, and what to do about it."""
    data = status.status(reader, run)
    parts = [*_places(data), f"{data['done']} of {data['total']} steps done"]
    parts += [f"to answer: {q['commands'][0]}" for q in data["questions"][:1]]
    parts += [f"to settle: {one['command']}" for one in data["effects"][:1]]
    if data["resume"]:
        parts.append(f"to go on: {data['resume']}")
    return "; ".join(parts)


def _places(data: Status) -> list[str]:
    """Return who holds a run, and the steps that are under way or wait."""
    holder = data["holder"]
    parts = [f"process {holder['pid']} on {holder['host']}"] if holder else []
    for step in data["steps"]:
        if step["state"] in UNDER_WAY:
            error = step["error"].partition("\n")[0]
            parts.append(
                f"step {step['name']} {state_word(step['state'])}"
                f"{': ' if error else ''}{error}"
            )
    return parts


SAYS = {
    "alive": "is alive",
    "finished": "is finished",
    "late": "gives no sign of life, though its process runs: it hangs or is stopped",
    "dead": "is dead: its process is gone",
    "stopped": "was given back before its end, and nobody goes on with it",
    "failed": "failed",
    "waiting": "waits for a human",
    "answered": "has its answer, and nobody goes on with it",
    "never started": "was never started",
    "can't tell": "can't be watched: this monitor can't read its store",
}


def _report(target: str, sight: Sight, after: Watched, news: News) -> Report:
    """Return what is to be said of a run."""
    word = str(after.word)
    silent = word in absence.SILENT
    beat = f" (last beat {duration(after.still())} ago)" if silent else ""
    again = "recovered: " if news == "recovered" else ""
    detail = f"; {sight.detail}" if sight.detail else ""
    return Report(
        target=target,
        run=sight.run,
        word=word,
        news=news,
        text=f"{again}run {sight.run or target} {SAYS[word]}{beat}{detail}",
        at=time.time(),
    )
