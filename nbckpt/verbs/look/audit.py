"""``nbckpt audit``: what a run did, step by step, from the records alone."""

from __future__ import annotations

import platform
import time
from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt import __version__
from nbckpt.records import Evidence
from nbckpt.runs.lines import broken
from nbckpt.verbs.standing.dossier import Dossier, damaged, read

if TYPE_CHECKING:
    from nbckpt.records import Event, RunRecord
    from nbckpt.runs.history import Reader
    from nbckpt.verbs.standing.status import StepStatus

OF_STEPS = {"started", "completed", "skipped", "plan", "surveyed", "failed"}
"""Kinds of lines that tell of the ordinary course of steps."""
SENDING = {"intent", "done"}
"""Kinds of lines that tell of an effect."""
KEYS = ("key", "idempotency_key")


class AuditedStep(TypedDict):
    """What a run did with a step."""

    number: int
    name: str
    outcome: str
    """As `StepStatus.state`."""
    attempts: int
    seconds: float
    started_at: float
    completed_at: float
    reason: str
    """Why its body ran last."""
    error: str
    files: dict[str, str]
    """Evidence: path → digest; an empty digest: the file must not exist."""
    checks: list[str]
    note: str
    effects: list[str]
    """Effects that the plan names."""
    versions: dict[str, str]
    skipped: int
    """How often it was verified and skipped."""


class Chain(TypedDict):
    """How the lines of a history hold together."""

    lines: int
    head: str
    """Digest of the last line, which rests on all before; kept elsewhere, it proves them."""
    verified: bool
    """Whether every line was read again."""
    broken: str
    """The first line that is missing, changed or out of order, else a damaged record."""


class Line(TypedDict):
    """One line of a history."""

    number: int
    at: float
    kind: str
    step: str
    reason: str
    seconds: float
    token: int
    detail: dict[str, Any]


class Audit(TypedDict):
    """What ``nbckpt audit --format json`` prints."""

    run: str
    notebook: str
    state: str
    created_at: float
    audited_at: float
    versions: dict[str, str]
    """``workflow``, and ``nbckpt`` and ``python`` as the run was begun and audited."""
    steps: list[AuditedStep]
    keys: list[str]
    """Every idempotency key that was sent, or was about to be."""
    records: dict[str, list[dict[str, Any]]]
    """Kind → records: effects, loops, decisions, unknowns, questions, pings."""
    events: list[Line]
    """Take-overs, refusals, stops, notes, a person's words: all but the course of steps."""
    history: list[Line]
    chain: Chain


def audit(
    reader: Reader, run: RunRecord, *, verify: bool = False, state: str = ""
) -> Audit:
    """Return what a run did.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.
    verify : bool, optional
        Whether to read every line again and compare the digests.
    state : str, optional
        The final state, if it is about to be another than recorded.

    Returns
    -------
    Audit
        JSON values.
    """
    dossier = read(reader, run)
    history = [_line(key, event) for key, event in dossier.lines]
    return Audit(
        run=run.run_id,
        notebook=run.notebook,
        state=state or dossier.status["state"],
        created_at=run.created_at,
        audited_at=time.time(),
        versions=_versions(run),
        steps=_steps(dossier, history),
        keys=_keys(dossier),
        records=dossier.others,
        events=[line for line in history if line["kind"] not in OF_STEPS],
        history=history,
        chain=Chain(
            lines=dossier.head.number,
            head=dossier.head.chain,
            verified=verify,
            broken=_broken(reader, run.run_id) if verify else "",
        ),
    )


def key_of(effect: dict[str, Any]) -> str:
    """Return the idempotency key of an effect.

    Parameters
    ----------
    effect : dict
        Its record.

    Returns
    -------
    str
        Empty if it has none.
    """
    return next((str(effect[name]) for name in KEYS if effect.get(name)), "")


def _keys(dossier: Dossier) -> list[str]:
    """Return all idempotency keys; lines tell of those whose record is gone."""
    told = (event.detail for _, event in dossier.lines if event.kind in SENDING)
    found = {key_of(one) for one in (*dossier.other("effect"), *told)}
    return sorted(found - {""})


def _broken(reader: Reader, run_id: str) -> str:
    """Return what is not as it was written."""
    return broken(reader.store, run_id) or damaged(reader, run_id)


def _versions(run: RunRecord) -> dict[str, str]:
    """Return the versions that a run was begun and is audited with."""
    begun = {f"{name} at first": text for name, text in run.made_with.items()}
    now = {"nbckpt": __version__, "python": platform.python_version()}
    return {"workflow": run.version, **begun, **now}


def _line(key: str, event: Event) -> Line:
    """Return a line of the history as JSON values."""
    return Line(
        number=int(key.rsplit("/", 1)[-1]),
        at=event.at,
        kind=event.kind,
        step=event.step,
        reason=event.reason,
        seconds=event.seconds,
        token=event.token,
        detail=event.detail,
    )


def _steps(dossier: Dossier, history: list[Line]) -> list[AuditedStep]:
    """Return what a run did with each step."""
    lines: dict[str, list[Line]] = {}
    for line in history:
        lines.setdefault(line["step"], []).append(line)
    steps = dossier.status["steps"]
    return [_step(dossier, step, lines.get(step["name"], [])) for step in steps]


def _step(dossier: Dossier, step: StepStatus, lines: list[Line]) -> AuditedStep:
    """Return what a run did with a step, of which the history has some lines."""
    record = dossier.records.get(step["name"])
    began = [line["reason"] for line in lines if line["kind"] == "started"]
    planned = (p.effects for p in dossier.plan.steps if p.name == step["name"])
    evidence = record.evidence if record else Evidence()
    return AuditedStep(
        number=step["number"],
        name=step["name"],
        outcome=step["state"],
        attempts=step["attempt"],
        seconds=step["seconds"],
        started_at=step["started_at"],
        completed_at=record.completed_at if record else 0.0,
        reason=began[-1] if began else "",
        error=step["error"],
        files=dict(evidence.files),
        checks=list(evidence.checks),
        note=evidence.note,
        effects=list(next(planned, ())),
        versions=step["environment"],
        skipped=sum(line["kind"] == "skipped" for line in lines),
    )
