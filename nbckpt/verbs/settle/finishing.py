"""``nbckpt finish``: the summary and the audit of a run from its records, then archived.

Order: the files of the archive are written whole, then one transaction closes the run.
Killed before it, the run is as it was and `finish` does it all again; killed after it,
the run is finished, and what the files hold stands in the record too.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbckpt import places
from nbckpt.errors import StopForHuman
from nbckpt.records import Event, Head, Lease, RunRecord, RunState, dumps
from nbckpt.runs import lines
from nbckpt.runs.history import Reader
from nbckpt.runs.leases import FINISHED
from nbckpt.runs.persons import person
from nbckpt.verbs.forms import documents
from nbckpt.verbs.forms.documents import Section
from nbckpt.verbs.forms.pages import Table, duration, listed, moment
from nbckpt.verbs.look import audited
from nbckpt.verbs.look.audit import Audit, audit
from nbckpt.verbs.standing.dossier import (
    Dossier,
    is_open_question,
    is_open_unknown,
    is_unsettled,
    open_steps,
    read,
)

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.store import Store, Transaction

SAID = 500
"""Letters of a record's text in a summary."""


def finish(store: Store, run: RunRecord) -> str:
    """Write the summary and the audit of a run, and archive it under its id.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.

    Returns
    -------
    str
        Where the archive lies.

    Raises
    ------
    StopForHuman
        If anything is open, with its names; nothing is changed then.

    Notes
    -----
    Afterwards every write to the run is refused, also by a kernel that holds it: its
    token is outdated. Calling it again only writes the files that are missing.
    """
    folder = store.folder / "archive" / run.run_id
    kept = store.get(f"archive/{run.run_id}")
    if run.state is RunState.FINISHED and kept is not None:
        _write_files(folder, kept)
        return f"run {run.run_id} was finished already: {folder}"
    dossier = read(Reader(store), run)
    require_complete(dossier)
    found = audit(Reader(store), run, verify=True, state=str(RunState.FINISHED))
    kept = {
        "run_id": run.run_id,
        "finished_at": time.time(),
        "finished_by": person(),
        "summary": summary(dossier, found),
        "audit": found,
        "head": dossier.head.to_json(),
    }
    _write_files(folder, kept)
    store.transact(lambda tx: _close(tx, run, dossier.head, kept))
    return f"run {run.run_id} is finished: {folder}"


def require_complete(dossier: Dossier) -> None:
    """Raise if anything of a run is open, with its names.

    Parameters
    ----------
    dossier : Dossier
        The run.

    Raises
    ------
    StopForHuman
        If a step is not done, an effect's outcome is unknown, or a question has no
        answer. Of a cancelled run only the effects count.
    """
    run_id = dossier.run.run_id
    effects = [e["name"] for e in dossier.other("effect") if is_unsettled(e)]
    steps, asked = _undone(dossier)
    found = [
        f"{word}: {listed(names)}"
        for word, names in (
            ("steps that are not done", steps),
            ("effects of which nobody knows whether they happened", effects),
            ("questions without an answer", asked),
        )
        if names
    ]
    if not dossier.status["steps"] and not _is_cancelled(dossier):
        found.append("no step was planned or run")
    if found:
        raise StopForHuman(
            f"run {run_id} is not complete: {'; '.join(found)}",
            f"Settle each: nbckpt resolve {run_id} EFFECT"
            if _is_cancelled(dossier)
            else f"Go on with it: {_resume(dossier)}",
        )


def _undone(dossier: Dossier) -> tuple[list[str], list[str]]:
    """Return the steps and questions that keep a run open: none if it is cancelled."""
    if _is_cancelled(dossier):
        return [], []
    steps = [f"{step['name']} ({step['state']})" for step in open_steps(dossier)]
    asked = [q["name"] for q in dossier.other("question") if is_open_question(q)]
    return steps, asked


def _is_cancelled(dossier: Dossier) -> bool:
    """Tell whether a person ended the run before its steps did."""
    return dossier.run.state is RunState.CANCELLED


def _resume(dossier: Dossier) -> str:
    """Return how to go on with a run."""
    return dossier.status["resume"] or f"nbckpt handover {dossier.run.run_id}"


def summary(dossier: Dossier, found: Audit) -> str:
    """Return the summary of a run, from its records only.

    Parameters
    ----------
    dossier : Dossier
        The run.
    found : Audit
        Its audit.

    Returns
    -------
    str
        Markdown: every step with its evidence, decisions, and what stays unknown.
    """
    rows = [_row(step) for step in found["steps"]]
    unknown = [u for u in dossier.other("unknown") if is_open_unknown(u)]
    parts = [
        Section("Outcome", _outcome(dossier, found)),
        Section("Steps and their evidence", [Table(STEPS, rows)]),
        *(_section(t, dossier.other(k)) for k, t in RECORDS.items()),
        Section("Open unknowns", [audited.records_table(unknown)] if unknown else []),
        Section("Notes", _notes(dossier)),
    ]
    return documents.markdown(f"Summary of run {dossier.run.run_id}", parts)


def _outcome(dossier: Dossier, found: Audit) -> list[str]:
    """Return what came of a run as a whole."""
    begun, chain = moment(found["created_at"]), found["chain"]
    spent = duration(sum(step["seconds"] for step in found["steps"]))
    version = dossier.run.version or "none"
    verdict = chain["broken"] or "all as they were written"
    steps, ended = str(len(found["steps"])), ""
    if _is_cancelled(dossier):
        steps = f"{len(found['steps']) - len(open_steps(dossier))} of {steps}"
        ended = f"; {dossier.run.why}"
    done = f"{steps} steps done; begun {begun}, {spent} of work"
    return [
        f"{done}, workflow version {version}{ended}.",
        f"The history has {chain['lines']} lines: {verdict}.",
    ]


STEPS = ("#", "step", "attempts", "time", "evidence")
RECORDS = {
    "effect": "Effects",
    "loop": "Items",
    "decision": "Decisions",
    "question": "Answers",
}


def _section(title: str, found: list[dict[str, Any]]) -> Section:
    """Return a section of records."""
    return Section(title, [audited.records_table(found)] if found else [])


def _row(step: Any) -> tuple[str, ...]:
    """Return a step's row."""
    proofs = [
        f"{name} {digest[:12] or 'absent'}" for name, digest in step["files"].items()
    ]
    proofs += [f"check {text}" for text in step["checks"]]
    proofs += [f"note (weaker): {step['note']}"] if step["note"] else []
    return (
        str(step["number"]),
        step["name"],
        str(step["attempts"]),
        duration(step["seconds"]),
        listed(proofs, 20),
    )


def _notes(dossier: Dossier) -> list[str]:
    """Return what was noted on the way."""
    return [str(note.get("text", ""))[:SAID] for note in dossier.other("note")]


def _write_files(folder: Path, kept: dict[str, Any]) -> None:
    """Write the files of an archive, each whole."""
    for part in (folder.parent, folder):
        part.mkdir(mode=0o700, exist_ok=True)
    data: Audit = kept["audit"]
    page = documents.page(audited.title_of(data), audited.sections(data))
    for name, content in (
        ("summary.md", kept["summary"].encode("utf-8", "replace")),
        ("audit.json", dumps(data)),
        ("audit.html", page.encode()),
    ):
        places.write_whole(folder / name, content)
    places.sync_folder(folder)
    places.sync_folder(folder.parent)


def _close(
    transaction: Transaction, run: RunRecord, seen: Head, kept: dict[str, Any]
) -> None:
    """Archive a run in one transaction, if nothing happened since it was read."""
    run_id = run.run_id
    if lines.require_open(transaction, run_id) != seen:
        raise StopForHuman(
            f"run {run_id} went on while its audit was written", "Finish it again"
        )
    transaction.put(f"archive/{run_id}", kept)
    lines.add_line(transaction, run_id, Event(time.time(), "finished", reason=person()))
    lines.close(transaction, run_id)
    transaction.put(f"run/{run_id}", replace(run, state=RunState.FINISHED).to_json())
    held = transaction.get(f"lease/{run_id}")
    if held is not None:
        # A kernel that still holds the run is fenced out.
        lease = Lease.from_json(held)
        ended = replace(lease, token=lease.token + 1, released=True, why=FINISHED)
        transaction.put(f"lease/{run_id}", ended.to_json())
