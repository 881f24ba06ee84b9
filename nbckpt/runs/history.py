"""Looking at the runs of a store, without ever writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nbckpt.errors import NotFound, StoreDamaged
from nbckpt.records import (
    Attempt,
    DecisionRecord,
    EffectRecord,
    Event,
    Lease,
    LoopRecord,
    Mark,
    Note,
    Placement,
    PlanRecord,
    Question,
    Record,
    RunRecord,
    StepRecord,
    StepState,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbckpt.store import Store, Transaction


R = TypeVar("R", bound=Record)


def revived(kind: type[R], value: Any) -> R:
    """Return a record, or say that what is there is none.

    Parameters
    ----------
    kind : type
        What it should be.
    value : object
        JSON values; of a foreign store they can be anything.

    Returns
    -------
    Record
        The record.

    Raises
    ------
    StoreDamaged
        If the values have another shape.
    """
    try:
        return kind.from_json(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        what = f"the store holds something else where a {kind.__name__} should be"
        raise StoreDamaged(what, "Nothing of it is used") from None


class Reader:
    """Looks at the runs of a store; never writes.

    Parameters
    ----------
    store : Store
        Any store, also a foreign one.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def runs(self) -> list[RunRecord]:
        """Return all runs, oldest first."""
        return sorted(self._all(RunRecord, "run/"), key=lambda run: run.created_at)

    def run(self, run_id: str) -> RunRecord:
        """Return a run.

        Raises
        ------
        NotFound
            If there is none of this id; names those that there are.
        """
        found = self._one(RunRecord, f"run/{run_id}")
        if found is None:
            known = ", ".join(run.run_id for run in self.runs()) or "none"
            raise NotFound(
                f"there is no run {run_id!r} in {self.store.folder}", f"Known: {known}"
            )
        return found

    def current(self, stem: str) -> str | None:
        """Return the run that a notebook is in, or None."""
        found = self.store.get(f"current/{stem}")
        return None if found is None else str(found["run_id"])

    def plan(self, run_id: str) -> PlanRecord:
        """Return a run's plan; empty if none was recorded."""
        return self._one(PlanRecord, f"plan/{run_id}") or PlanRecord()

    def lease(self, run_id: str) -> Lease | None:
        """Return who holds a run, or None."""
        return self._one(Lease, f"lease/{run_id}")

    def placement(self, run_id: str) -> Placement | None:
        """Return where ``nbckpt run`` started a run last, or None."""
        return self._one(Placement, f"placement/{run_id}")

    def step(self, run_id: str, step: str) -> StepRecord | None:
        """Return a step's record, or None if it was not completed."""
        return self._one(StepRecord, f"step/{run_id}/{step}")

    def steps(self, run_id: str) -> dict[str, StepRecord]:
        """Return the records of a run's completed steps by name."""
        found = self._all(StepRecord, f"step/{run_id}/")
        return {record.step: record for record in found}

    def attempt(self, run_id: str, step: str) -> Attempt | None:
        """Return the last attempt of a step, or None if it was never begun."""
        return self._one(Attempt, f"attempt/{run_id}/{step}")

    def attempts(self, run_id: str) -> dict[str, Attempt]:
        """Return the last attempt of each step by name."""
        found = self._all(Attempt, f"attempt/{run_id}/")
        return {attempt.step: attempt for attempt in found}

    def loops(self, run_id: str, step: str = "") -> list[LoopRecord]:
        """Return the loops over items of a run, or of one of its steps.

        Parameters
        ----------
        run_id : str
            The run.
        step : str, optional
            Only this one's.

        Returns
        -------
        list of LoopRecord
            In order of steps and of loops in a step; `items_done` tells which items.
        """
        return self._all(LoopRecord, _below("loop", run_id, step))

    def items_done(self, loop: LoopRecord) -> Iterator[str]:
        """Yield the keys of the items that are done, in the order in which they were.

        Parameters
        ----------
        loop : LoopRecord
            From `loops`.

        Yields
        ------
        str
            Key of an item.
        """
        for _, row in self.store.scan(f"done/{loop.run_id}/{loop.step}/{loop.loop}/"):
            yield from (str(entry[0]) for entry in row["items"])

    def mark(self, run_id: str, step: str) -> Mark:
        """Return what a person said of a step."""
        return self._one(Mark, f"mark/{run_id}/{step}") or Mark()

    def decisions(self, run_id: str) -> list[DecisionRecord]:
        """Return the decisions of a run, in the order of their names."""
        return self._all(DecisionRecord, f"decision/{run_id}/")

    def unknowns(self, run_id: str) -> list[Unknown]:
        """Return the open and the settled points of a run, by number."""
        return self._all(Unknown, f"unknown/{run_id}/")

    def notes(self, run_id: str) -> list[Note]:
        """Return the notes of a run, oldest first."""
        return sorted(self._all(Note, f"note/{run_id}/"), key=lambda note: note.at)

    def questions(self, run_id: str) -> list[Question]:
        """Return the questions of a run, oldest first."""
        found = self._all(Question, f"question/{run_id}/")
        return sorted(found, key=lambda question: question.asked_at)

    def effects(self, run_id: str, step: str = "") -> list[EffectRecord]:
        """Return the effects of a step, or of a whole run, in order of their keys."""
        return self._all(EffectRecord, _below("effect", run_id, step))

    def _one(self, kind: type[R], key: str) -> R | None:
        """Return a record, or None if there is none."""
        found = self.store.get(key)
        return None if found is None else revived(kind, found)

    def _all(self, kind: type[R], prefix: str) -> list[R]:
        """Return all records of a kind, in the order of their keys."""
        return [revived(kind, value) for _, value in self.store.scan(prefix)]

    def history(self, run_id: str, after: str = "") -> list[tuple[str, Event]]:
        """Return the lines of a run's history, oldest first, each with its key."""
        lines = self.store.scan(f"history/{run_id}/", after)
        return [(key, revived(Event, value)) for key, value in lines]


def _below(kind: str, run_id: str, step: str) -> str:
    """Return what the keys of a run's records of a kind begin with, or of a step's."""
    return f"{kind}/{run_id}/{step}/" if step else f"{kind}/{run_id}/"


class HeldRun(Reader):
    """Looks at a run that this process holds, and decodes each of its records once.

    Parameters
    ----------
    store : Store
        The user's own store.
    run_id : str
        The run; all others are read anew each time.

    Notes
    -----
    Only the holder writes the plan, steps and attempts of a run, and the token guards
    each write: what was read stays true until this process writes. Whether a step is
    skipped is never decided on what is kept here; `step` and `attempt` read anew.
    """

    def __init__(self, store: Store, run_id: str) -> None:
        super().__init__(store)
        self.run_id = run_id
        self._plan: PlanRecord | None = None
        self._steps = _Kept(store, StepRecord, f"step/{run_id}/")
        self._attempts = _Kept(store, Attempt, f"attempt/{run_id}/")

    def plan(self, run_id: str) -> PlanRecord:
        """Return a run's plan; empty if none was recorded."""
        if run_id != self.run_id:
            return super().plan(run_id)
        if self._plan is None:
            self._plan = super().plan(run_id)
        return self._plan

    def steps(self, run_id: str) -> dict[str, StepRecord]:
        """Return the records of a run's completed steps by name."""
        return self._steps.all() if run_id == self.run_id else super().steps(run_id)

    def attempts(self, run_id: str) -> dict[str, Attempt]:
        """Return the last attempt of each step by name."""
        if run_id != self.run_id:
            return super().attempts(run_id)
        return self._attempts.all()

    def written(self, keys: Iterable[str]) -> None:
        """Take note of what was to be written, whatever came of it."""
        for key in keys:
            self._steps.note(key)
            self._attempts.note(key)
            if key == f"plan/{self.run_id}":
                self._plan = None


class _Kept(Generic[R]):
    """Records of one kind, by step."""

    def __init__(self, store: Store, kind: type[R], prefix: str) -> None:
        self._store = store
        self._kind = kind
        self._prefix = prefix
        self._found: dict[str, R] | None = None
        self._changed: set[str] = set()

    def note(self, key: str) -> None:
        """Take note that a key was written; it is read when it is asked for."""
        if key.startswith(self._prefix):
            self._changed.add(key[len(self._prefix) :])

    def all(self) -> dict[str, R]:
        """Return them; only those that were changed are read."""
        if self._found is None:
            rows = self._store.scan(self._prefix)
            start = len(self._prefix)
            self._found = {key[start:]: revived(self._kind, row) for key, row in rows}
            self._changed.clear()
        while self._changed:
            step = self._changed.pop()
            row, _ = readable(self._store, self._prefix + step)
            self._found.pop(step, None)
            if row is not None:
                self._found[step] = revived(self._kind, row)
        return dict(self._found)


def readable(place: Store | Transaction, key: str) -> tuple[Any, str]:
    """Return a record's JSON values, or why it can't be believed.

    Parameters
    ----------
    place : Store or Transaction
        Of the user's own store.
    key : str
        The record's key.

    Returns
    -------
    tuple of object and str
        One of the two is empty.
    """
    try:
        return place.get(key), ""
    except StoreDamaged as error:
        return None, error.what


def claims_left(attempt: dict[str, Any] | None) -> list[str]:
    """Return what an attempt that did not complete had claimed, for the next to claim.

    Parameters
    ----------
    attempt : dict or None
        The JSON values of the attempt before.

    Returns
    -------
    list of str
        Killed once more before it comes to a file, the step must still stand for it.
    """
    if attempt is None or attempt["state"] == StepState.COMPLETED:
        return []
    return list(attempt["writes"])
