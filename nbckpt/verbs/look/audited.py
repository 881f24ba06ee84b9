"""An audit for people: sections of lines and tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nbckpt.records import Event
from nbckpt.verbs.forms.documents import Section
from nbckpt.verbs.forms.pages import Table, duration, listed, moment, slim
from nbckpt.verbs.look.timeline import timeline_picture, told

if TYPE_CHECKING:
    from nbckpt.verbs.look.audit import Audit, AuditedStep, Line

TITLES = {
    "effect": "Effects", "loop": "Items", "decision": "Decisions",
    "unknown": "Unknowns", "question": "Questions", "advance": "Answers in advance",
    "pings": "Pings", "placement": "Placement", "note": "Notes",
}  # fmt: skip
LONG = 200
LEFT_OUT = {"name", "run_id", "schema_version", "contents"}


def title_of(data: Audit) -> str:
    """Return the title of an audit."""
    return f"Audit of run {data['run']}"


def sections(data: Audit) -> list[Section]:
    """Return an audit for people.

    Parameters
    ----------
    data : Audit
        From `nbckpt.verbs.look.audit.audit`.

    Returns
    -------
    list of Section
        For `nbckpt.verbs.forms.documents`.
    """
    return [
        Section("Run", [_run(data)]),
        Section("Steps", _steps(data["steps"])),
        _timeline(data),
        Section("Evidence", _evidence(data["steps"])),
        Section("Idempotency keys sent", data["keys"]),
        *(Section(TITLES.get(k, k), [records_table(v)]) for k, v in _kinds(data)),
        Section("Stops, take-overs, refusals and words", _lines(data["events"])),
        Section("History", _lines(data["history"])),
    ]


def _kinds(data: Audit) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the other records by kind, in the order in which they are shown."""
    order = [*TITLES, *(kind for kind in data["records"] if kind not in TITLES)]
    return [(k, data["records"][k]) for k in order if data["records"].get(k)]


def _run(data: Audit) -> Table:
    """Return what is told of the run as a whole."""
    versions = ", ".join(f"{k} {v or 'none'}" for k, v in data["versions"].items())
    chain = data["chain"]
    verdict = "not read again (--verify does)"
    if chain["verified"]:
        verdict = f"BROKEN: {chain['broken']}" if chain["broken"] else "whole"
    told = f"{chain['lines']} lines, {verdict}, head {chain['head'] or '-'}"
    rows = [
        ("state", data["state"]),
        ("notebook", data["notebook"] or "unknown"),
        ("begun", moment(data["created_at"])),
        ("audited", moment(data["audited_at"])),
        ("versions", versions),
        ("history", told),
    ]
    return Table(("run", data["run"]), rows)


def _steps(steps: list[AuditedStep]) -> list[str | Table]:
    """Return the outcome of each step, and below what ended those that failed.

    Columns are few and narrow: they fit a terminal of 80. Why a body ran is told by the
    history.
    """
    rows = [
        (
            step["name"],
            step["outcome"],
            str(step["attempts"]),
            str(step["skipped"]),
            duration(step["seconds"]) if step["attempts"] else "-",
            moment(step["completed_at"]) if step["completed_at"] else "-",
            listed(step["effects"]),
        )
        for step in steps
    ]
    head = ("step", "outcome", "ran", "skipped", "time", "completed", "effects")
    errors = [f"{step['name']}: {step['error']}" for step in steps if step["error"]]
    return [slim(Table(head, rows), "effects"), *errors] if steps else []


def _timeline(data: Audit) -> Section:
    """Return who ran and who was skipped, as a picture where one can be shown."""
    events = [
        Event(one["at"], one["kind"], one["step"], one["reason"], one["seconds"],
              detail=one["detail"])
        for one in data["history"]
    ]  # fmt: skip
    names = [step["name"] for step in data["steps"]]
    seen = data["audited_at"] if data["state"] == "running" else 0.0
    found = told(data["run"], data["state"], names, events, seen)
    if not found["entries"]:
        return Section("Timeline", [])
    picture = timeline_picture(found)
    return Section("Timeline", [picture.told], picture.svg())


def _evidence(steps: list[AuditedStep]) -> list[str | Table]:
    """Return the evidence of all steps."""
    rows: list[tuple[str, ...]] = []
    for step in steps:
        name = step["name"]
        rows += [(name, "file", f, d or "absent") for f, d in step["files"].items()]
        rows += [(name, "check", text, "true") for text in step["checks"]]
        rows += [(name, "note", step["note"], "-")] if step["note"] else []
    return [Table(("step", "kind", "what", "digest"), rows)] if rows else []


def records_table(found: list[dict[str, Any]]) -> Table:
    """Return records of any kind as a table: name, state, and what else they hold.

    Parameters
    ----------
    found : list of dict
        The records.

    Returns
    -------
    Table
        Empty fields are left out.
    """
    rows = [(str(one["name"]), str(one.get("state", "-")), _said(one)) for one in found]
    return Table(("name", "state", "record"), rows)


def _said(record: dict[str, Any]) -> str:
    """Return the fields of a record in one line."""
    kept = {k: v for k, v in record.items() if v not in (None, "", [], {}, 0.0)}
    parts = (
        f"{name}: {_short(name, value)}"
        for name, value in kept.items()
        if name not in LEFT_OUT | {"state"}
    )
    return "; ".join(parts)


def _short(name: str, value: Any) -> str:
    """Return a value as short text."""
    if isinstance(value, float) and name.endswith(("at", "deadline")):
        return moment(value)
    if isinstance(value, dict) and "at" in value:
        value = {**value, "at": _short("at", value["at"])}
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return told if len(told) <= LONG else f"{told[:LONG]}…"


def _lines(found: list[Line]) -> list[str | Table]:
    """Return lines of the history as a table."""
    rows = [
        (
            str(one["number"]),
            moment(one["at"]),
            one["kind"],
            one["step"] or "-",
            _why(one),
        )
        for one in found
    ]
    return [Table(("#", "when", "what", "step", "why"), rows)] if rows else []


def _why(line: Line) -> str:
    """Return what a line says besides its kind."""
    detail = _said({k: v for k, v in line["detail"].items() if k != "before"})
    return "; ".join(part for part in (line["reason"], detail) if part)
