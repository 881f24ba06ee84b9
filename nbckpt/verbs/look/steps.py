"""``nbckpt show``: one step, and all that it left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt.records import (
    Event,
    Record,
    RunRecord,
    dumps,
    loads,
)
from nbckpt.verbs.finding.opening import require_step
from nbckpt.verbs.forms.pages import (
    Page,
    Table,
    Tree,
    duration,
    listed,
    moment,
    size,
)
from nbckpt.verbs.standing.looping import LoopStatus, loop_tree, loops

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.runs.history import Reader

MANY = 12
"""Names that are written out."""


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
    decisions: list[dict[str, Any]]
    """Those that it made: name, value, reason, by, at."""
    history: list[dict[str, Any]]
    """Lines of the history that are about the step, oldest first."""


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
        decisions=[
            _plain(made) for made in reader.decisions(run.run_id) if made.step == step
        ],
        history=list(map(_plain, events_by_step(reader, run.run_id).get(step, []))),
    )


def _plain(record: Record) -> dict[str, Any]:
    """Return a record as JSON gives it back: lists, no tuples."""
    found: dict[str, Any] = loads(dumps(record.to_json()))
    return found


def events_by_step(reader: Reader, run_id: str) -> dict[str, list[Event]]:
    """Return the lines of a run's history by the step that they are about, oldest first."""
    found: dict[str, list[Event]] = {}
    for _, event in reader.history(run_id):
        found.setdefault(event.step, []).append(event)
    return found


def show_page(data: StepRecordView) -> Page:
    """Return a step's record for people.

    Parameters
    ----------
    data : StepRecordView
        From `show`.

    Returns
    -------
    Page
        A tree: the last attempt, what was recorded, its evidence and its history.
    """
    record = data["record"]
    branches = [
        *_attempt_lines(data["attempt"]),
        _record_tree(record) if record else "record: none, it was never completed",
        *_evidence_trees(record["evidence"] if record else {}),
        *_mark_lines(data["mark"]),
        *map(loop_tree, data["loops"]),
        *_sections(data),
    ]
    return [Tree(f"step {data['step']} of run {data['run']}", branches)]


def _attempt_lines(attempt: dict[str, Any] | None) -> list[str]:
    """Return the last attempt for people."""
    if attempt is None:
        return []
    error = f": {attempt['error']}" if attempt["error"] else ""
    return [f"attempt {attempt['attempt']}: {attempt['state']}{error}"]


def _record_tree(record: dict[str, Any]) -> Tree:
    """Return what a step took and left, for people."""
    contents, found = record["contents"], record["fingerprint"]
    kept = f"{listed(contents['bound'], MANY)} ({size(contents['size'])})"
    lines = {
        "values": kept if contents["bound"] else "",
        "deleted": _names(contents["deleted"]),
        "inputs": _names(found["inputs"]),
        "modules": _names(found["modules"]),
        "files read": _names(found["files"]),
        "folders listed": _names({*found["folders"], *found["globs"]}),
        "environment": _names(found["environment"]),
        "versions": _pairs(found["versions"]),
        "runs again": record["runs_again"],
    }
    when = f"{moment(record['completed_at'])}, took {duration(record['seconds'])}"
    said = [f"{label}: {text}" for label, text in lines.items() if text]
    return Tree(f"record: completed {when}", said)


def _evidence_trees(evidence: dict[str, Any]) -> list[Tree]:
    """Return what speaks for a completed step, for people."""
    lines = [f"check: {check}" for check in evidence.get("checks", ())]
    lines += [f"confirmed: {name}" for name in evidence.get("confirmed", ())]
    for name, value in sorted(evidence.get("learned", {}).items()):
        lines.append(f"learned: {name} = {dumps(value).decode()}")
    if evidence.get("note"):
        lines.append(f"note: {evidence['note']}")
    files = sorted(evidence.get("files", {}).items())
    rows = [(name, digest or "must not exist") for name, digest in files]
    tables = [Table(("file", "digest"), rows)] if rows else []
    return [Tree("evidence", [*lines, *tables])] if lines or rows else []


def _mark_lines(mark: dict[str, Any]) -> list[str]:
    """Return what a person said of a step."""
    lines = [f"to run again: {mark['rerun']}"] if mark["rerun"] else []
    return lines + ["accepted: its code as it is now"] * bool(mark["accepted"])


def _sections(data: StepRecordView) -> list[Tree]:
    """Return effects, decisions and history of a step for people, as far as it has them."""
    effects = sorted(data["effects"], key=lambda effect: effect["first_at"])
    tables = {
        "effects": Table(("effect", "state", "when", "key"), list(map(_done, effects))),
        "decisions": Table(
            ("decision", "value", "reason"), list(map(_decided, data["decisions"]))
        ),
        "history": Table(
            ("when", "what", "time", "because"), list(map(_happened, data["history"]))
        ),
    }
    return [Tree(title, [table]) for title, table in tables.items() if table.rows]


def _done(effect: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of an effect."""
    at = moment(effect["settled_at"] or effect["at"])
    return effect["name"], _state(effect), at, effect["key"]


def _decided(decision: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of a decision."""
    value = dumps(decision["value"]).decode()
    kept = "kept, no JSON" if decision["encoded"] else value
    return decision["name"], kept, decision["reason"] or "-"


def _happened(event: dict[str, Any]) -> tuple[str, ...]:
    """Return the row of a line of the history."""
    detail = event["detail"]
    name = detail.get("effect") or detail.get("name")
    said = filter(None, (name, event["reason"]))
    took = duration(event["seconds"])
    return moment(event["at"]), event["kind"], took, ": ".join(said) or "-"


def _state(effect: dict[str, Any]) -> str:
    """Return where an effect stands."""
    words = {"intent": "not known", "failed": "did not happen"}
    return words.get(effect["state"]) or f"done ({effect['how']})"


def _pairs(versions: dict[str, str]) -> str:
    """Return packages with their versions."""
    return _names(f"{name} {version}" for name, version in versions.items())


def _names(names: Iterable[str]) -> str:
    """Return names in one line; nothing if there are none."""
    found = sorted(names)
    return listed(found, MANY) if found else ""
