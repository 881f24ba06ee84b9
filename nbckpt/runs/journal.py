"""The memory of a run: every write of it, in which order, in which transaction.

A completed step is one transaction: record, attempt, history line, packs in use. Killed
before it, the step runs again; killed after it, the step is skipped. What the packs hold
is on disk before, so a record never names bytes that are not there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nbckpt.records import (
    Attempt,
    Event,
    Mark,
    PlanRecord,
    RunState,
    StepRecord,
    StepState,
    Worktree,
)
from nbckpt.runs import lines
from nbckpt.runs.history import HeldRun, claims_left, readable
from nbckpt.store import Store, Transaction
from nbckpt.store.packs import Pack, release_loops, release_packs, use_packs

Guard = Callable[[Transaction], None]


class Journal(HeldRun):
    """Writes what happens in a run that this process holds.

    Parameters
    ----------
    store : Store
        The user's own store.
    run_id : str
        The run.
    token : int
        The fencing token.
    guard : callable
        Called first in each transaction; raises `Fenced` if the run was taken over.

    Attributes
    ----------
    synced : int
        How many writes were to survive a loss of power; it only grows.
    """

    def __init__(self, store: Store, run_id: str, token: int, guard: Guard) -> None:
        super().__init__(store, run_id)
        self.token = token
        self.synced = 0
        self._guard = guard

    def write(
        self, change: Callable[[Transaction], Any], *, durable: bool = True
    ) -> Any:
        """Make a change under the fence.

        Parameters
        ----------
        change : callable
            Reads and writes through the transaction that it is given; must be short.
        durable : bool, optional
            Whether it must also survive a loss of power.

        Returns
        -------
        object
            What `change` returned.

        Raises
        ------
        Fenced
            If the run was taken over.
        """
        written: set[str] = set()
        self.synced += durable

        def guarded(transaction: Transaction) -> Any:
            self._guard(transaction)
            transaction.written = written
            return change(transaction)

        try:
            return self.store.transact(guarded, durable=durable)
        finally:
            self.written(written)

    def write_plan(
        self, plan: PlanRecord, *, changes: Sequence[str] = (), durable: bool = True
    ) -> None:
        """Record the plan before the first body runs; the one before stays in history."""

        def change(transaction: Transaction) -> None:
            key = f"plan/{self.run_id}"
            before = transaction.get(key)
            transaction.put(key, replace(plan, written_at=time.time()).to_json())
            names = [step.name for step in plan.steps]
            detail: dict[str, Any] = {"steps": names}
            if before is not None:
                detail["before"] = [step["name"] for step in before["steps"]]
            event = Event(time.time(), "plan", "", "; ".join(changes), detail=detail)
            self.add_line(transaction, event)

        self.write(change, durable=durable)

    def start(
        self,
        step: str,
        reason: str,
        *,
        writes: tuple[str, ...],
        durable: bool,
        worktree: Worktree | None = None,
    ) -> Attempt:
        """Record an attempt before its body runs.

        Parameters
        ----------
        step : str
            The step.
        reason : str
            Why its body runs.
        writes : tuple of str
            Files that it is declared to write.
        durable : bool
            Whether it must survive a loss of power: if the step has effects.
        worktree : Worktree, optional
            The Git worktree that it finds.

        Returns
        -------
        Attempt
            Numbered within the step, ordered within the run.
        """

        def change(transaction: Transaction) -> Attempt:
            key = f"attempt/{self.run_id}/{step}"
            before = transaction.get(key)
            attempt = Attempt(
                run_id=self.run_id,
                step=step,
                attempt=(before["attempt"] if before else 0) + 1,
                token=self.token,
                order=lines.count(transaction, self.run_id, "order"),
                state=StepState.RUNNING,
                started_at=time.time(),
                writes=tuple(dict.fromkeys([*writes, *claims_left(before)])),
                worktree=worktree,
            )
            transaction.put(key, attempt.to_json())
            self._note_start(transaction, attempt, reason)
            return attempt

        found: Attempt = self.write(change, durable=durable)
        return found

    def _note_start(
        self, transaction: Transaction, attempt: Attempt, reason: str
    ) -> None:
        """Add the line of an attempt, and note where the run is."""
        detail: dict[str, Any] = {}
        if attempt.worktree is not None:
            detail["worktree"] = attempt.worktree.to_json()
            transaction.put(f"worktree/{self.run_id}", detail["worktree"])
        at, step = attempt.started_at, attempt.step
        self.add_line(transaction, Event(at, "started", step, reason, detail=detail))

    def claim(self, attempt: Attempt, path: str, *, durable: bool = True) -> Attempt:
        """Record that an attempt is about to change a file of an earlier step."""
        claimed = replace(attempt, writes=(*attempt.writes, path))
        key = f"attempt/{self.run_id}/{attempt.step}"
        self.write(lambda tx: tx.put(key, claimed.to_json()), durable=durable)
        return claimed

    def complete(self, record: StepRecord, pack: Pack, reason: str) -> list[str]:
        """Record a completed step, all or nothing.

        Parameters
        ----------
        record : StepRecord
            Its packs are on disk, or come along.
        pack : Pack
            The pack that holds what is new.
        reason : str
            Why the body ran.

        Returns
        -------
        list of str
            Packs that no record needs any more; their files may go now.

        Raises
        ------
        SaveFailed
            If a pack that the record rests on was dropped by another process meanwhile.
        Fenced
            If the run was taken over.
        """
        key = f"step/{self.run_id}/{record.step}"

        def change(transaction: Transaction) -> list[str]:
            # A damaged record must not stop the one that replaces it.
            before, _ = readable(transaction, key)
            use_packs(transaction, key, record.contents, pack)
            transaction.put(key, record.to_json())
            self._end_attempt(transaction, record.step, StepState.COMPLETED, "")
            self._clear_rerun(transaction, record.step)
            detail = {"before": _summary(before)} if before else {}
            event = Event(
                record.completed_at, "completed", record.step, reason, record.seconds,
                self.token, detail,
            )  # fmt: skip
            self.add_line(transaction, event)
            loops = release_loops(transaction, self.run_id, record.step)
            kept = set(record.contents.packs)
            return loops + release_packs(transaction, key, before, kept)

        freed: list[str] = self.write(change)
        return freed

    def fail(self, step: str, state: StepState, error: str) -> None:
        """Record that an attempt ended without completing."""

        def change(transaction: Transaction) -> None:
            self._end_attempt(transaction, step, state, error)
            self.add_line(transaction, Event(time.time(), str(state), step, error))

        self.write(change, durable=state is StepState.INTERRUPTED)

    def skip(self, step: str, reason: str, seconds: float) -> None:
        """Note in the history that a step was verified and skipped."""
        event = Event(time.time(), "skipped", step, reason, seconds, self.token)
        self.write(lambda transaction: self.add_line(transaction, event), durable=False)

    def note(self, kind: str, step: str = "", reason: str = "", **detail: Any) -> None:
        """Add a line to the history."""
        event = Event(time.time(), kind, step, reason, 0.0, self.token, detail)
        self.write(lambda transaction: self.add_line(transaction, event))

    def complete_run(self) -> None:
        """Record that every step of the plan is completed."""
        run = self.run(self.run_id)
        if run.state is RunState.COMPLETED:
            return
        changed = replace(run, state=RunState.COMPLETED)
        self.write(lambda tx: tx.put(f"run/{self.run_id}", changed.to_json()))

    def give(self, parameters: dict[str, str] | None) -> None:
        """Record what papermill gives the run; None: it is not papermill that runs it."""
        run = self.run(self.run_id)
        if parameters is not None and parameters != run.given:
            changed = replace(run, given=parameters)
            self.write(lambda tx: tx.put(f"run/{self.run_id}", changed.to_json()))

    def _end_attempt(
        self, transaction: Transaction, step: str, state: StepState, error: str
    ) -> None:
        """Write how an attempt ended."""
        key = f"attempt/{self.run_id}/{step}"
        attempt = Attempt.from_json(transaction.get(key))
        ended = replace(attempt, state=state, ended_at=time.time(), error=error)
        transaction.put(key, ended.to_json())

    def _clear_rerun(self, transaction: Transaction, step: str) -> None:
        """Take back the wish for another run of the body, which is fulfilled now."""
        key = f"mark/{self.run_id}/{step}"
        found = transaction.get(key)
        if found is not None and found["rerun"]:
            transaction.put(key, {**found, "rerun": ""})

    def add_line(self, transaction: Transaction, event: Event) -> None:
        """Add a line to the history, within a transaction.

        Parameters
        ----------
        transaction : Transaction
            The transaction of what the line tells of.
        event : Event
            The line.
        """
        lines.add_line(transaction, self.run_id, event)


def _summary(record: dict[str, Any]) -> dict[str, Any]:
    """Return what the audit keeps of a record that is replaced."""
    kept = ("attempt", "token", "completed_at", "seconds", "fingerprint", "evidence")
    return {key: record[key] for key in kept}


def set_mark(
    store: Store, run_id: str, step: str, said: Callable[[Mark], Mark]
) -> None:
    """Record what a person says of a step.

    Parameters
    ----------
    store : Store
        The user's own store.
    run_id, step : str
        The step.
    said : callable
        Returns the mark that takes the place of the one that stands.

    Raises
    ------
    StopForHuman
        If the run is archived.
    """

    def change(transaction: Transaction) -> None:
        lines.require_open(transaction, run_id)
        key = f"mark/{run_id}/{step}"
        before = Mark.from_json(transaction.get(key) or {})
        transaction.put(key, said(before).to_json())

    store.transact(change)
