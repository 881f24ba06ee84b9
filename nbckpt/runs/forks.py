"""How a run ends by a person's word, and how another begins from a part of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbckpt import keys
from nbckpt.errors import AlreadySettled, BadStep
from nbckpt.records import (
    Attempt,
    Event,
    Lease,
    RunRecord,
    RunState,
    StepRecord,
    StepState,
)
from nbckpt.runs.lines import add_line, head
from nbckpt.runs.opening import begin, taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.store import Transaction

UNDER_WAY = {StepState.RUNNING, StepState.WAITING}


def cancellation(run_id: str, by: str, at: float) -> Callable[[Transaction], bool]:
    """Return the change that cancels a run and fences its holder out.

    Parameters
    ----------
    run_id : str
        The run.
    by : str
        Who cancels it, and when.
    at : float
        Wall clock in seconds since the epoch.

    Returns
    -------
    callable
        Returns whether somebody held the run; raises `AlreadySettled` if it is over.
    """

    def change(transaction: Transaction) -> bool:
        run = RunRecord.from_json(transaction.get(f"run/{run_id}"))
        if run.is_ended:
            raise AlreadySettled(f"run {run_id} is {run.state} already")
        ended = replace(run, state=RunState.CANCELLED, why=f"cancelled by {by}")
        transaction.put(f"run/{run_id}", ended.to_json())
        for key in transaction.keys(f"attempt/{run_id}/"):
            attempt = Attempt.from_json(transaction.get(key))
            if attempt.state in UNDER_WAY:
                stopped = replace(attempt, state=StepState.CANCELLED, ended_at=at)
                transaction.put(key, stopped.to_json())
        add_line(transaction, run_id, Event(at, "cancelled", reason=by))
        return _fence(transaction, run_id, ended.why)

    return change


def _fence(transaction: Transaction, run_id: str, why: str) -> bool:
    """Raise a run's token, so that its holder writes nothing more."""
    found = transaction.get(f"lease/{run_id}")
    if found is None:
        return False
    lease = Lease.from_json(found)
    fenced = replace(lease, token=lease.token + 1, released=True, why=why)
    transaction.put(f"lease/{run_id}", fenced.to_json())
    return not lease.released


@dataclass(frozen=True, slots=True)
class Fork:
    """What a fork takes over."""

    source: RunRecord
    kept: tuple[str, ...]
    """Steps whose records it takes over."""
    again: tuple[str, ...]
    """Steps that run in it, though they had run before."""
    step: str
    """The first step that runs."""
    stem: str
    """The notebook whose current run it becomes."""
    by: str
    at: float
    run_id: str = ""
    """Empty: the next free one."""
    version: str = ""
    """Workflow version; empty: that of the source."""


def forking(fork: Fork) -> Callable[[Transaction], RunRecord]:
    """Return the change that begins a run from a part of another, all or nothing.

    Parameters
    ----------
    fork : Fork
        What it takes over.

    Returns
    -------
    callable
        Returns the new run; raises `BadStep` if its id was ever used.

    Notes
    -----
    Records of steps, their packs, marks, the plan, and the decisions, notes and open
    points of these steps and of plain cells come along. Effects, questions and answers
    do not: a new run has new idempotency keys, and what was approved was that run.

    What later steps wrote over, unread, is explained until they have run again. A file
    that one of them had read before it changed it is not: it must be made again.
    """

    def change(transaction: Transaction) -> RunRecord:
        used = taken(transaction)
        new = fork.run_id or keys.next_run_id(fork.stem, used)
        if new in used:
            raise BadStep(f"run {new} exists already", "A run id is never used again")
        version = fork.version or fork.source.version
        wanted = RunRecord(
            new, fork.source.notebook, version, forked_from=fork.source.run_id
        )
        run = begin(transaction, wanted)
        transaction.put(f"current/{fork.stem}", {"run_id": new})
        for step in fork.kept:
            _take_step(transaction, fork.source.run_id, new, step)
        for step in fork.again:
            _take_claims(transaction, fork, new, step)
        _take_rows(transaction, fork, new)
        detail: dict[str, Any] = {"from": fork.source.run_id, "to": new}
        event = Event(fork.at, "forked", fork.step, fork.by, detail=detail)
        if not head(transaction, fork.source.run_id).closed:
            add_line(transaction, fork.source.run_id, event)
        add_line(transaction, new, event)
        return run

    return change


def _take_step(transaction: Transaction, old: str, new: str, step: str) -> None:
    """Take over a step's record, its last attempt and its marks."""
    record = transaction.get(f"step/{old}/{step}")
    if record is not None:
        taken = replace(StepRecord.from_json(record), run_id=new)
        transaction.put(f"step/{new}/{step}", taken.to_json())
        for name in taken.contents.packs:
            users = set(transaction.get(f"pack/{name}")["users"])
            users.add(f"step/{new}/{step}")
            transaction.put(f"pack/{name}", {"users": sorted(users)})
    attempt = transaction.get(f"attempt/{old}/{step}")
    if attempt is not None and attempt["state"] == StepState.COMPLETED:
        transaction.put(f"attempt/{new}/{step}", {**attempt, "run_id": new})
    mark = transaction.get(f"mark/{old}/{step}")
    if mark is not None:
        transaction.put(f"mark/{new}/{step}", mark)


def _take_claims(transaction: Transaction, fork: Fork, new: str, step: str) -> None:
    """Let what a step did to files of others explain them until it has run again."""
    found = transaction.get(f"attempt/{fork.source.run_id}/{step}")
    if found is None:
        return
    attempt, claims = Attempt.from_json(found), set[str]()
    row = transaction.get(f"step/{fork.source.run_id}/{step}")
    if row is not None:
        record = StepRecord.from_json(row)
        written = record.evidence.files.keys() - record.fingerprint.files.keys()
        claims = written | {*record.evidence.made}
    if row is None or attempt.state is not StepState.COMPLETED:
        claims |= {*attempt.writes}
    waits = Attempt(
        run_id=new, step=step, attempt=0, token=0, order=attempt.order,
        state=StepState.PENDING, started_at=fork.at, ended_at=fork.at,
        writes=tuple(sorted(claims)),
    )  # fmt: skip
    transaction.put(f"attempt/{new}/{step}", waits.to_json())


def _take_rows(transaction: Transaction, fork: Fork, new: str) -> None:
    """Take over plan, counters, and what was said of the steps and of plain cells."""
    old, kept = fork.source.run_id, {"", *fork.kept}
    for key in (f"plan/{old}", f"counter/{old}/order", f"counter/{old}/unknown"):
        value = transaction.get(key)
        if value is not None:
            transaction.put(key.replace(f"/{old}", f"/{new}", 1), value)
    for kind in ("decision", "note", "unknown"):
        for key in transaction.keys(f"{kind}/{old}/"):
            value = transaction.get(key)
            if value["step"] in kept:
                own = {name: new for name in ("run_id",) if name in value}
                there = key.replace(f"/{old}/", f"/{new}/", 1)
                transaction.put(there, {**value, **own})
    _take_values(transaction, old, new)


def _take_values(transaction: Transaction, old: str, new: str) -> None:
    """Take over the values of decisions that are no JSON."""
    for key in transaction.keys(f"decision/{new}/"):
        name = key.removeprefix(f"decision/{new}/")
        body = transaction.get_bytes(f"decided/{old}/{name}")
        if body is not None:
            transaction.put_bytes(f"decided/{new}/{name}", body)
