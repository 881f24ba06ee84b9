"""All that is recorded of a run, read once: what audit, hand-over and archive rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt.runs import lines
from nbckpt.runs.history import readable
from nbckpt.verbs.standing.status import Status, StepStatus, status

if TYPE_CHECKING:
    from nbckpt.records import Event, Head, PlanRecord, RunRecord, StepRecord
    from nbckpt.runs.history import Reader

OWN = {
    "archive", "attempt", "counter", "current", "history", "lease", "mark", "plan",
    "run", "step", "worktree",
}  # fmt: skip
"""Records that the dossier reads as what they are."""
BULK = {"decided", "done", "inline", "outcome", "pack", "result"}
"""Records of single items, and bytes: values that are no JSON."""
UNSETTLED = {"intent", "unknown"}
"""States of an effect of which nobody knows whether it happened."""


@dataclass(frozen=True, slots=True)
class Dossier:
    """A run's records."""

    run: RunRecord
    status: Status
    plan: PlanRecord
    records: dict[str, StepRecord]
    lines: list[tuple[str, Event]]
    others: dict[str, list[dict[str, Any]]]
    """Kind → its records, each with ``name``, the rest of its key: effects, loops,
    decisions, unknowns, questions, pings."""
    head: Head

    def other(self, kind: str) -> list[dict[str, Any]]:
        """Return the records of a kind; none if the run has no such."""
        return self.others.get(kind, [])


def read(reader: Reader, run: RunRecord) -> Dossier:
    """Return all that is recorded of a run.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    Dossier
        As of now; damaged records are left out, see `damaged` and `lines.broken`.
    """
    run_id = run.run_id
    return Dossier(
        run=run,
        status=status(reader, run),
        plan=reader.plan(run_id),
        records=reader.steps(run_id),
        lines=reader.history(run_id),
        others=_others(reader, run_id),
        head=lines.head(reader.store, run_id),
    )


def _others(reader: Reader, run_id: str) -> dict[str, list[dict[str, Any]]]:
    """Return the records of a run that other modules write, by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for kind in sorted(_kinds(reader, run_id) - OWN - BULK):
        prefix = f"{kind}/{run_id}"
        rows = [*reader.store.scan(f"{prefix}/")]
        if (one := reader.store.get(prefix)) is not None:
            rows.insert(0, (prefix, one))
        found[kind] = [
            {"name": key.removeprefix(prefix).strip("/"), **row}
            for key, row in rows
            if isinstance(row, dict)
        ]
    return found


def damaged(reader: Reader, run_id: str) -> str:
    """Return the first record of a run that is not as it was written.

    Parameters
    ----------
    reader : Reader
        Its store.
    run_id : str
        The run.

    Returns
    -------
    str
        Empty if there is none; lines of the history and bulk bytes are not looked at.
    """
    for key in reader.store.keys(""):
        kind, _, rest = key.partition("/")
        if kind not in {*BULK, "history"} and rest.split("/")[0] == run_id:
            _, why = readable(reader.store, key)
            if why:
                return f"the record {key} is damaged"
    return ""


def _kinds(reader: Reader, run_id: str) -> set[str]:
    """Return the kinds of records that a run has."""
    parts = (key.split("/") for key in reader.store.keys(""))
    return {part[0] for part in parts if len(part) > 1 and part[1] == run_id}


def is_open_question(question: dict[str, Any]) -> bool:
    """Tell whether nobody has answered a question.

    Parameters
    ----------
    question : dict
        Its record.

    Returns
    -------
    bool
        True as long as it has no answer.
    """
    return question.get("answer") is None and not question.get("answered_at")


def is_open_unknown(unknown: dict[str, Any]) -> bool:
    """Tell whether an unknown is not settled.

    Parameters
    ----------
    unknown : dict
        Its record.

    Returns
    -------
    bool
        True as long as nobody settled it.
    """
    return not (unknown.get("settled_at") or unknown.get("settled"))


def is_unsettled(effect: dict[str, Any]) -> bool:
    """Tell whether nobody knows whether an effect happened.

    Parameters
    ----------
    effect : dict
        Its record.

    Returns
    -------
    bool
        True for an intent without an outcome.
    """
    return str(effect.get("state", "")).lower() in UNSETTLED


def open_steps(dossier: Dossier) -> list[StepStatus]:
    """Return the steps that are not done, as far as the records tell.

    Parameters
    ----------
    dossier : Dossier
        The run.

    Returns
    -------
    list of StepStatus
        A step that is done and can't be skipped next time counts as done.
    """
    return [step for step in dossier.status["steps"] if not _is_done(dossier, step)]


def _is_done(dossier: Dossier, step: StepStatus) -> bool:
    """Tell whether a step of the plan is done."""
    record = dossier.records.get(step["name"])
    if step["state"] == "stale" and record is not None:
        return step["runs_again"] == record.runs_again
    return step["state"] == "completed"
