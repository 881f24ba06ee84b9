"""``nbckpt handover``: one page from which somebody else, or a program, goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt.runs import worktree
from nbckpt.verbs.forms.documents import Code, Section, markdown
from nbckpt.verbs.forms.pages import (
    Table,
    first_sentence,
    listed,
    moment,
    state_word,
)
from nbckpt.verbs.look.audit import key_of
from nbckpt.verbs.look.audited import records_table
from nbckpt.verbs.standing.dossier import (
    Dossier,
    is_open_question,
    is_open_unknown,
    is_unsettled,
    open_steps,
    read,
)
from nbckpt.verbs.standing.waiting import answering, settling

if TYPE_CHECKING:
    from nbckpt.records import PlannedStep, RunRecord
    from nbckpt.runs.history import Reader

Fields = dict[str, Any]
KEEP = (
    "Keep the run's id: another id, --fresh, or a new store gives other idempotency "
    "keys, and receivers take what they got already for new."
)
ONCE = {"done", "intent", "unknown"}
"""States of an effect that may have happened."""


class Progress(TypedDict):
    """One step of the plan, and how far it is."""

    number: int
    name: str
    state: str
    attempts: int
    error: str
    checks: list[str]
    """What must be true for it to count as done."""
    reads: list[str]
    writes: list[str]
    effects: list[str]
    files: dict[str, str]
    """Evidence: path → digest."""


class InFlight(TypedDict):
    """What was running when the run was last seen."""

    step: str
    state: str
    since: float
    next_input: Any
    """The item that a loop was at, if it was in one."""


class Once(TypedDict):
    """An effect that must not be repeated by hand."""

    effect: str
    state: str
    key: str


class Handover(TypedDict):
    """What ``nbckpt handover --json`` prints."""

    run: str
    notebook: str
    version: str
    state: str
    holder: str
    """Who holds the run in words; empty: nobody."""
    to_answer: list[str]
    """Commands that answer the questions, each with its options."""
    to_settle: list[str]
    """Commands that tell of effects whether they happened."""
    command: str
    """What goes on with the run; empty if it is complete or running."""
    next_step: str
    in_flight: list[InFlight]
    steps: list[Progress]
    loops: list[Fields]
    decisions: list[Fields]
    unknowns: list[Fields]
    """Those that are open."""
    questions: list[Fields]
    """Those without an answer."""
    unsettled: list[Fields]
    """Effects of which nobody knows whether they happened."""
    never_twice: list[Once]
    notes: list[str]
    files: dict[str, str]
    worktree: Fields


def handover(reader: Reader, run: RunRecord) -> Handover:
    """Return all that somebody else needs to go on with a run.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    Handover
        JSON values.
    """
    dossier = read(reader, run)
    status, effects = dossier.status, dossier.other("effect")
    undone, planned = open_steps(dossier), {p.name: p for p in dossier.plan.steps}
    place = worktree.recorded(reader.store, run.run_id)
    return Handover(
        run=run.run_id,
        notebook=run.notebook,
        version=run.version,
        state=status["state"],
        holder=_holder(dossier),
        to_answer=answering(status["questions"]),
        to_settle=settling(status["effects"]),
        command=status["resume"],
        next_step=undone[0]["name"] if undone else "",
        in_flight=_in_flight(dossier),
        steps=[_progress(dossier, step, planned) for step in status["steps"]],
        loops=dossier.other("loop"),
        decisions=dossier.other("decision"),
        unknowns=list(filter(is_open_unknown, dossier.other("unknown"))),
        questions=list(filter(is_open_question, dossier.other("question"))),
        unsettled=list(filter(is_unsettled, effects)),
        never_twice=list(map(_once, filter(_may_have_been, effects))),
        notes=[str(note.get("text", "")) for note in dossier.other("note")],
        files={"notebook": run.notebook, "store": str(reader.store.folder)},
        worktree=place.to_json() if place else {},
    )


def _holder(dossier: Dossier) -> str:
    """Return who holds a run."""
    holder = dossier.status["holder"]
    if holder is None or holder["standing"] == "free":
        return ""
    return f"process {holder['pid']} on {holder['host']} ({holder['standing']})"


def _in_flight(dossier: Dossier) -> list[InFlight]:
    """Return what runs, failed, waits or died."""
    loops = {
        str(one.get("step", one["name"].split("/")[0])): one
        for one in dossier.other("loop")
    }
    return [
        InFlight(
            step=step["name"],
            state=step["state"],
            since=step["started_at"],
            next_input=loops.get(step["name"], {}).get("next_input"),
        )
        for step in dossier.status["steps"]
        if step["state"] not in {"completed", "pending", "stale"}
    ]


def _progress(dossier: Dossier, step: Any, planned: dict[str, PlannedStep]) -> Progress:
    """Return how far a step is."""
    record, plan = dossier.records.get(step["name"]), planned.get(step["name"])
    return Progress(
        number=step["number"],
        name=step["name"],
        state=step["state"],
        attempts=step["attempt"],
        error=step["error"] or step["runs_again"],
        checks=list(plan.checks) if plan else [],
        reads=list(plan.reads) if plan else [],
        writes=list(plan.writes) if plan else [],
        effects=list(plan.effects) if plan else [],
        files=dict(record.evidence.files) if record else {},
    )


def _may_have_been(effect: Fields) -> bool:
    """Tell whether an effect happened, or may have."""
    return str(effect.get("state", "")).lower() in ONCE


def _once(effect: Fields) -> Once:
    """Return an effect that must not be repeated."""
    return Once(
        effect=effect["name"], state=str(effect.get("state", "")), key=key_of(effect)
    )


def handover_text(data: Handover) -> str:
    """Return a hand-over as one page of Markdown; see `handover_document`."""
    return markdown(*handover_document(data))


def handover_document(data: Handover) -> tuple[str, list[Section]]:
    """Return a hand-over as a document.

    Parameters
    ----------
    data : Handover
        From `handover`.

    Returns
    -------
    tuple of str and list of Section
        Its title; what is done and what not, what must not be done twice, and how to go
        on.
    """
    found = [
        Section("Go on", _go_on(data)),
        Section("In flight", _flights(data["in_flight"])),
        Section("Plan and progress", [_steps(data["steps"])] if data["steps"] else []),
        Section("Items", _table(data["loops"])),
        Section("Questions without an answer", _table(data["questions"])),
        Section("Effects to settle", _table(data["unsettled"])),
        Section("Decisions", _table(data["decisions"])),
        Section("Open unknowns", _table(data["unknowns"])),
        Section("Notes", data["notes"]),
        Section("Not to be done twice", _never(data)),
        Section("Where", _where(data)),
    ]
    return f"Hand-over of run {data['run']}", found


def _go_on(data: Handover) -> list[str | Table]:
    """Return how to go on."""
    done = sum(step["state"] in {"completed", "stale"} for step in data["steps"])
    lines: list[str | Table] = [
        f"State: {state_word(data['state'])}, {done} of {len(data['steps'])} steps done."
    ]
    if data["holder"]:
        lines.append(f"Held by {data['holder']}.")
    if data["next_step"]:
        lines.append(f"Next step: {data['next_step']}")
    if data["to_answer"]:
        lines += ["Answer first:", *map(Code, data["to_answer"])]
    if data["to_settle"]:
        lines += ["Settle first:", *map(Code, data["to_settle"])]
    if data["command"]:
        lines.append(f"Command: {data['command']}")
    elif data["state"] == "completed":
        lines.append(f"Command: nbckpt finish {data['run']}")
    return lines


def _flights(found: list[InFlight]) -> list[str]:
    """Return what was running, for people."""
    return [
        f"{one['step']}: {state_word(one['state'])}, begun {moment(one['since'])}"
        + (f", at item {_item(one['next_input'])}" if one["next_input"] else "")
        for one in found
    ]


def _item(following: Any) -> str:
    """Return the item that was in flight: its key, and its text if that says more."""
    match following:
        case {"item": item, "text": text} if text != item:
            return f"{item}: {text}"
        case {"item": item}:
            return str(item)
        case _:  # of a foreign store
            return str(following)


def _steps(steps: list[Progress]) -> Table:
    """Return the plan with its progress."""
    rows = [
        (
            str(step["number"]),
            step["name"],
            state_word(step["state"]),
            listed(step["checks"]),
            listed([f"{n} {d[:12] or 'absent'}" for n, d in step["files"].items()]),
            listed(step["effects"]),
            first_sentence(step["error"]),
        )
        for step in steps
    ]
    return Table(("#", "step", "state", "checks", "evidence", "effects", "note"), rows)


def _table(found: list[Fields]) -> list[str | Table]:
    """Return records as a table, if there are any."""
    return [records_table(found)] if found else []


def _never(data: Handover) -> list[str | Table]:
    """Return what must not be done twice."""
    rows = [(one["effect"], one["state"], one["key"]) for one in data["never_twice"]]
    found: list[str | Table] = [Table(("effect", "state", "key"), rows)] if rows else []
    return [*found, KEEP]


def _where(data: Handover) -> list[str]:
    """Return where the files are."""
    place = data["worktree"]
    lines = [f"{name}: {path or 'unknown'}" for name, path in data["files"].items()]
    if place:
        lines.append(
            f"worktree: {place['path']}, branch {place['branch'] or 'none'}, "
            f"commit {place['commit'] or 'none'}"
        )
    return [*lines, f"version: {data['version'] or 'none'}"]
