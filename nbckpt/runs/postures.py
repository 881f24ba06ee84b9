"""How a run is gone on with: what was asked for, and what of its plan is another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nbckpt.runs import steplists

if TYPE_CHECKING:
    from nbckpt.records import PlanRecord
    from nbckpt.runs.identity import Wish
    from nbckpt.runs.journal import Journal
    from nbckpt.runs.worktree import WorktreeWatch


def enter(
    journal: Journal, plan: PlanRecord | None, wish: Wish, worktree: WorktreeWatch
) -> None:
    """Record with what a run is gone on with, before its first body.

    Parameters
    ----------
    journal : Journal
        Of the run, which is held.
    plan : PlanRecord or None
        From the notebook's file; None: the notebook is not known.
    wish : Wish
        What the user asked for.
    worktree : WorktreeWatch
        Where it works.
    """
    _record_plan(journal, plan)
    journal.give(wish.given)
    _note_taken(journal, wish)
    worktree.enter(journal)


def _note_taken(journal: Journal, wish: Wish) -> None:
    """Add to the history in which posture a run is taken.

    The first hold of a run resumes nothing: it has a line only if it asks for a stop.
    That a run was begun anew stands in its first line already.
    """
    posture = "stop" if wish.stop_on_redo else "resume"
    if journal.token > 1 or wish.stop_on_redo:
        detail: dict[str, Any] = {"overlap": wish.overlap, "version": wish.version}
        lease = journal.lease(journal.run_id)
        if lease is not None and lease.before_at:
            detail["seen_at"] = lease.before_at
        journal.note("taken", reason=posture, **detail)


def _record_plan(journal: Journal, plan: PlanRecord | None) -> None:
    """Record the plan; a changed list of steps is told.

    A plan that was only seen, cell by cell, is never complete: nothing is told of it.
    """
    if plan is None:
        return
    before = journal.plan(journal.run_id)
    if before.steps == plan.steps:
        return
    changes: list[str] = []
    if before.source == "notebook":
        changes = steplists.changes(before.steps, plan.steps)
        changes += _new_keys(journal, steplists.renamed(before.steps, plan.steps))
    journal.write_plan(plan, changes=changes)
    if changes:
        told = "; ".join(changes)
        sys.stderr.write(
            f"nbckpt: run {journal.run_id}: the list of steps changed: {told}\n"
        )


def _new_keys(journal: Journal, names: dict[str, str]) -> list[str]:
    """Say which effects stop a step because its former name made them."""
    found = []
    for old, new in names.items():
        effects = [
            e.name for e in journal.effects(journal.run_id, old) if e.is_in_doubt
        ]
        if effects:
            found.append(
                f"step {new} will stop for a person at what {old} made: "
                f"{', '.join(effects)}"
            )
    return found
