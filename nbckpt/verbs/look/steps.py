"""``nbckpt show`` and ``nbckpt explain``: one step, what it left and why it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt.plan import wrong_lines
from nbckpt.records import (
    Event,
    Fingerprint,
    Record,
    RunRecord,
    StepRecord,
    dumps,
    loads,
)
from nbckpt.resume import differences
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.finding.opening import require_step
from nbckpt.verbs.forms.pages import Page, Table, duration, listed, moment, size
from nbckpt.verbs.prepare.outline import outline
from nbckpt.verbs.prepare.planning import notebook_of, predictions
from nbckpt.verbs.prepare.prediction import Prediction
from nbckpt.verbs.standing.looping import LoopStatus, loop_page, loops

if TYPE_CHECKING:
    from nbckpt.runs.history import Reader

ENDS = {"completed", "skipped", "failed", "interrupted"}


class StepRecordView(TypedDict):
    """What ``nbckpt show --json`` prints."""

    run: str
    step: str
    record: dict[str, Any] | None
    """The record as it is stored; None if the step was never completed."""
    attempt: dict[str, Any] | None
    """The last attempt."""
    mark: dict[str, Any]
    """What a person said: ``accepted`` code, ``rerun``."""
    effects: list[dict[str, Any]]
    """Its effects: key, name, state, when, outcome."""
    loops: list[LoopStatus]
    """Its loops over items: how far each is, and which items failed."""
    history: list[dict[str, Any]]
    """Lines of the history that are about the step, oldest first."""


class LastTime(TypedDict):
    """What happened to a step last."""

    kind: str
    """``completed skipped failed interrupted started``."""
    at: float
    reason: str
    seconds: float


class Explanation(TypedDict):
    """What ``nbckpt explain --json`` prints."""

    run: str
    step: str
    last: LastTime | None
    ran: LastTime | None
    """The last time that its body was run to its end, and why."""
    changed: list[str]
    """What differed then from the record before, part by part."""
    now: str
    """``run skip unknown stop``; empty if the notebook is not known."""
    reason: str
    """Why that would happen now."""


def show(reader: Reader, run: RunRecord, step: str) -> StepRecordView:
    """Return all that is recorded of a step.

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
    StepRecordView
        JSON values.

    Raises
    ------
    NotFound
        If the run has no such step.
    """
    require_step(reader, run.run_id, step)
    record = reader.step(run.run_id, step)
    attempt = reader.attempts(run.run_id).get(step)
    return StepRecordView(
        run=run.run_id,
        step=step,
        record=_plain(record) if record else None,
        attempt=_plain(attempt) if attempt else None,
        mark=_plain(reader.mark(run.run_id, step)),
        effects=[_plain(effect) for effect in reader.effects(run.run_id, step)],
        loops=loops(reader, run.run_id, step),
        history=[_plain(event) for event in _events(reader, run.run_id, step)],
    )


def _plain(record: Record) -> dict[str, Any]:
    """Return a record as JSON gives it back: lists, no tuples."""
    found: dict[str, Any] = loads(dumps(record.to_json()))
    return found


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
    events = _events(reader, run.run_id, step)
    ran = next((e for e in reversed(events) if e.kind == "completed"), None)
    last = next((e for e in reversed(events) if e.kind in ENDS), None)
    now = _now(reader, run, step)
    return Explanation(
        run=run.run_id,
        step=step,
        last=_last(last or (events[-1] if events else None)),
        ran=_last(ran),
        changed=_changed(ran, reader.step(run.run_id, step)),
        now=now.word if now else "",
        reason=now.reason if now else "its notebook is not known here",
    )


def _events(reader: Reader, run_id: str, step: str) -> list[Event]:
    """Return the lines of the history that are about a step."""
    return [event for _, event in reader.history(run_id) if event.step == step]


def _last(event: Event | None) -> LastTime | None:
    """Return a line of the history in short."""
    if event is None:
        return None
    return LastTime(
        kind=event.kind, at=event.at, reason=event.reason, seconds=event.seconds
    )


def _changed(ran: Event | None, record: StepRecord | None) -> list[str]:
    """Return how a record differs from the one that it replaced."""
    before = ran.detail.get("before") if ran else None
    if record is None or before is None:
        return []
    return differences(Fingerprint.from_json(before["fingerprint"]), record.fingerprint)


def _now(reader: Reader, run: RunRecord, step: str) -> Prediction | None:
    """Return what would happen to a step now, if its notebook is known."""
    notebook = notebook_of(reader, run)
    if notebook is None:
        return None
    sources = read_sources(notebook)
    found = predictions(reader, notebook, run.run_id, outline(sources, parse_body))
    gone = ["the notebook has no such step any more"]
    reason = "; ".join(gone + [wrong.what for wrong in wrong_lines(sources)])
    return found.get(step, Prediction("unknown", reason))


def show_page(data: StepRecordView) -> Page:
    """Return a step's record for people.

    Parameters
    ----------
    data : StepRecordView
        From `show`.

    Returns
    -------
    Page
        Evidence, inputs and history.
    """
    page: list[str | Table] = [f"step {data['step']} of run {data['run']}"]
    attempt, record = data["attempt"], data["record"]
    if attempt:
        error = f": {attempt['error']}" if attempt["error"] else ""
        page.append(f"attempt   {attempt['attempt']}, {attempt['state']}{error}")
    if record:
        page += _record_lines(record)
    else:
        page.append("record    none: it was never completed")
    page += [*loop_page(data["loops"]), *_effect_lines(data["effects"])]
    rows = [
        (moment(e["at"]), e["kind"], duration(e["seconds"]), e["reason"] or "-")
        for e in data["history"]
    ]
    if rows:
        page += ["", Table(("when", "what", "time", "because"), rows)]
    return page


def _record_lines(record: dict[str, Any]) -> list[str | Table]:
    """Return a record for people."""
    contents, found = record["contents"], record["fingerprint"]
    lines: list[str | Table] = [
        f"completed {moment(record['completed_at'])}, took {duration(record['seconds'])}",
        f"names     {listed(contents['bound'], 12)} ({size(contents['size'])})",
        f"inputs    {listed(sorted(found['inputs']), 12)}",
        f"read      {listed(sorted(found['files']), 12)}",
        f"listed    {listed(sorted({*found['folders'], *found['globs']}), 12)}",
        f"checks    {listed(record['evidence']['checks'], 12)}",
        f"versions  {_pairs(found['versions'])}",
    ]
    if contents["deleted"]:
        lines.append(f"deleted   {listed(contents['deleted'], 12)}")
    lines += _told_lines(record["evidence"])
    if record["runs_again"]:
        lines.append(f"runs again: {record['runs_again']}")
    files = sorted(record["evidence"]["files"].items())
    if files:
        rows = [(name, digest or "must not exist") for name, digest in files]
        lines += ["", Table(("file as evidence", "digest"), rows)]
    return lines


def _told_lines(evidence: dict[str, Any]) -> list[str]:
    """Return what the body told of itself, for people."""
    lines = []
    if evidence["confirmed"]:
        lines.append(f"confirmed {listed(evidence['confirmed'], 12)}")
    for name, value in sorted(evidence["learned"].items()):
        lines.append(f"learned   {name}: {dumps(value).decode()}")
    if evidence["note"]:
        lines.append(f"note      {evidence['note']}")
    return lines


def _effect_lines(effects: list[dict[str, Any]]) -> list[str | Table]:
    """Return effects for people."""
    rows = [
        (e["name"], _state(e), moment(e["settled_at"] or e["at"]), e["key"])
        for e in sorted(effects, key=lambda effect: effect["first_at"])
    ]
    return ["", Table(("effect", "state", "when", "key"), rows)] if rows else []


def _state(effect: dict[str, Any]) -> str:
    """Return where an effect stands."""
    words = {"intent": "not known", "failed": "did not happen"}
    return words.get(effect["state"]) or f"done ({effect['how']})"


def _pairs(versions: dict[str, str]) -> str:
    """Return packages with their versions."""
    return listed(
        [f"{name} {version}" for name, version in sorted(versions.items())], 12
    )


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
    page = [f"step {data['step']} of run {data['run']}", *_ending(data["last"])]
    ran = data["ran"]
    if ran is not None:
        page.append(
            f"Its body ran on {moment(ran['at'])} ({duration(ran['seconds'])}), "
            f"because {ran['reason'] or 'of an unknown reason'}."
        )
    if data["changed"]:
        page.append(
            f"What differed from the record before: {'; '.join(data['changed'])}."
        )
    if data["now"]:
        page.append(f"If the notebook ran now: {data['now']} ({data['reason']}).")
    else:
        page.append(f"What would happen now can't be told: {data['reason']}.")
    return page


def _ending(last: LastTime | None) -> list[str]:
    """Return how a step ended last, unless its body ran to its end."""
    if last is None:
        return ["It has not run yet."]
    if last["kind"] == "completed":
        return []
    when = f"{_past(last['kind'])} on {moment(last['at'])}"
    return [f"It {when}: {last['reason']}." if last["reason"] else f"It {when}."]


def _past(kind: str) -> str:
    """Return what happened, as a verb."""
    words = {
        "skipped": "was skipped",
        "failed": "failed",
        "interrupted": "was interrupted",
    }
    return words.get(kind, "was begun, and no end of it is recorded,")
