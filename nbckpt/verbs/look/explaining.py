"""``nbckpt explain``: why a step ran last, and what would happen to it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from nbckpt.plan import wrong_lines
from nbckpt.records import Event, Fingerprint, RunRecord, StepRecord
from nbckpt.resume import differences
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.finding.opening import require_step, step_names
from nbckpt.verbs.forms.pages import Page, Part, Tree, duration, moment
from nbckpt.verbs.look.steps import events_by_step
from nbckpt.verbs.prepare.outline import outline
from nbckpt.verbs.prepare.planning import notebook_of, predictions
from nbckpt.verbs.prepare.prediction import Prediction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbckpt.runs.history import Reader

COURSE = {
    "started": "was begun, and no end of it is recorded,", "completed": "was completed",
    "skipped": "was skipped", "failed": "failed", "interrupted": "was interrupted",
    "waiting": "began to wait for a person", "stopped": "stopped for a person",
    "cancelled": "was cancelled",
}  # fmt: skip
"""What lines of the history say of a step itself, and not of its effects or its run."""


class LastTime(TypedDict):
    """What happened to a step last."""

    kind: str
    """``completed skipped failed interrupted waiting stopped cancelled started``."""
    at: float
    reason: str
    seconds: float


class Source(TypedDict):
    """Where an input came from."""

    input: str
    step: str
    """The step that made it."""
    at: float
    """When its body ran last."""
    reason: str
    """Why it ran."""


class Explanation(TypedDict):
    """What ``nbckpt explain --json`` prints."""

    run: str
    step: str
    last: LastTime | None
    ran: LastTime | None
    """The last time that its body was run to its end, and why."""
    changed: list[str]
    """What differed then from the record before, part by part."""
    sources: list[Source]
    """Of each input that differed: the step that made it, when, and why that ran."""
    now: str
    """``run skip unknown stop``; empty if the notebook is not known."""
    reason: str
    """Why that would happen now."""


def explain(reader: Reader, run: RunRecord, step: str) -> Explanation:
    """Return why a step ran last, and what would happen to it now.

    Parameters
    ----------
    reader : Reader
        The store.
    run : RunRecord
        The run.
    step : str
        The step's name.

    Returns
    -------
    Explanation
        JSON values.

    Raises
    ------
    NotFound
        If the run has no such step.
    """
    require_step(reader, run.run_id, step)
    history = events_by_step(reader, run.run_id)
    events = history.get(step, [])
    ran, last = _newest(events, {"completed"}), _newest(events, {*COURSE})
    now, record = _now(reader, run, step), reader.step(run.run_id, step)
    return Explanation(
        run=run.run_id,
        step=step,
        last=_last(last),
        ran=_last(ran),
        changed=_changed(ran, record),
        sources=[
            Source(input=name, step=maker, at=made.at, reason=made.reason)
            for name, maker in _makers(reader, run, step, _other_inputs(ran, record))
            if (made := _newest(history.get(maker, []), {"completed"})) is not None
        ],
        now=now.word if now else "",
        reason=now.reason if now else "its notebook is not known here",
    )


def _newest(events: Sequence[Event], kinds: set[str]) -> Event | None:
    """Return the last line of the history that is of some kinds."""
    return next((event for event in reversed(events) if event.kind in kinds), None)


def _last(event: Event | None) -> LastTime | None:
    """Return a line of the history in short."""
    if event is None:
        return None
    return LastTime(
        kind=event.kind, at=event.at, reason=event.reason, seconds=event.seconds
    )


def _changed(ran: Event | None, record: StepRecord | None) -> list[str]:
    """Return how a record differs from the one that it replaced."""
    before = _before(ran)
    if record is None or before is None:
        return []
    return differences(before, record.fingerprint)


def _before(ran: Event | None) -> Fingerprint | None:
    """Return the fingerprint of the record that a run of the body replaced."""
    found = ran.detail.get("before") if ran else None
    return Fingerprint.from_json(found["fingerprint"]) if found else None


def _other_inputs(ran: Event | None, record: StepRecord | None) -> set[str]:
    """Return the inputs that differ from those of the record before."""
    before = _before(ran)
    if record is None or before is None:
        return set()
    changed = before.inputs.items() ^ record.fingerprint.inputs.items()
    return {name for name, _ in changed}


def _makers(
    reader: Reader, run: RunRecord, step: str, inputs: set[str]
) -> list[tuple[str, str]]:
    """Return inputs, each with the last step above that made it."""
    order, records = step_names(reader, run.run_id), reader.steps(run.run_id)
    above = [records[name] for name in order[: order.index(step)] if name in records]
    found = {name: one.step for one in above for name in inputs & {*one.contents.bound}}
    return sorted(found.items())


def _now(reader: Reader, run: RunRecord, step: str) -> Prediction | None:
    """Return what would happen to a step now, if its notebook is known."""
    notebook = notebook_of(reader, run)
    if notebook is None:
        return None
    sources = read_sources(notebook)
    found = predictions(reader, notebook, run.run_id, outline(sources, parse_body))
    gone = ["the notebook, as it was saved last, has no such step"]
    reason = "; ".join(gone + [wrong.what for wrong in wrong_lines(sources)])
    return found.get(step, Prediction("unknown", reason))


def explain_page(data: Explanation) -> Page:
    """Return an explanation for people.

    Parameters
    ----------
    data : Explanation
        From `explain`.

    Returns
    -------
    Page
        What happened last, and what would happen now.
    """
    page: list[Part] = [f"step {data['step']} of run {data['run']}"]
    page += _ending(data["last"])
    page += _running(data)
    if data["now"]:
        page.append(_because(f"If the notebook ran now: {data['now']}", data["reason"]))
    else:
        page.append(f"What would happen now can't be told: {data['reason']}.")
    return page


def _running(data: Explanation) -> list[Part]:
    """Return why the body of a step ran last, part by part."""
    ran, changed = data["ran"], list(map(_causes(data), data["changed"]))
    if ran is None:
        return []
    when = f"Its body ran on {moment(ran['at'])} for {duration(ran['seconds'])}"
    # The reason in the history holds the first parts of what differed.
    if changed and set(_parts(ran["reason"])) <= set(data["changed"]):
        return [Tree(f"{when}, because", changed)]
    differed = [Tree("What differed from the record before", changed)]
    return [_because(when, ran["reason"]), *(differed if changed else [])]


def _because(what: str, reason: str) -> Part:
    """Return what happens and why; a reason of several parts as a tree."""
    parts = _parts(reason)
    if len(parts) > 1:
        return Tree(f"{what}, because", parts)
    return f"{what} ({reason or 'of an unknown reason'})."


def _parts(reason: str) -> list[str]:
    """Return the parts of a reason."""
    return reason.split("; ")


def _causes(data: Explanation) -> Callable[[str], Part]:
    """Return what tells of a part that differed which step it came from, and why."""
    sources = {f"input {source['input']!r} ": source for source in data["sources"]}

    def told(part: str) -> Part:
        for begin, source in sources.items():
            if part.startswith(begin):
                when = f"step {source['step']} made it on {moment(source['at'])}"
                return Tree(part, [_because(when, source["reason"])])
        return part

    return told


def _ending(last: LastTime | None) -> list[str]:
    """Return how a step ended last, unless its body ran to its end."""
    if last is None:
        return ["It has not run yet."]
    if last["kind"] == "completed":
        return []
    when = f"{COURSE[last['kind']]} on {moment(last['at'])}"
    return [f"It {when}: {last['reason']}." if last["reason"] else f"It {when}."]
