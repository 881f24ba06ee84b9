"""How a step runs: the promise on one page.

Killed at any point, a step either has its whole record or none: what it needs is on disk
before the record names it, and the record is one transaction. Nothing is trusted that was
not verified against the world in this kernel.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from tenacity import AttemptManager, Retrying, wait_exponential

from nbckpt import current
from nbckpt.completion import Running, aliases, completion
from nbckpt.credentials import masked
from nbckpt.effects.intents import require_settled
from nbckpt.errors import (
    CheckFailed,
    Fenced,
    NbckptError,
    SaveFailed,
    StopForHuman,
    WaitingForAnswer,
)
from nbckpt.inputs import proofs
from nbckpt.inputs.fingerprint import Body
from nbckpt.loops import begun
from nbckpt.plan import Step, read_step
from nbckpt.records import StepRecord, StepState
from nbckpt.resume import Decision, Run, Situation, Skip, Stop, decide
from nbckpt.runs.history import readable
from nbckpt.state import ambient, snapshots
from nbckpt.state.loose import Loose, loose

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from tenacity import RetryCallState

    from nbckpt.session import Session


class Runner:
    """Runs the steps of one notebook in one kernel.

    Parameters
    ----------
    session : Session
        The kernel's hold on its run.

    Attributes
    ----------
    entered : str
        The step that the running cell began, whatever became of it; empty if none.
    last : dict
        Step → what was decided about it last.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.running: Running | None = None
        self.unsaved: Running | None = None
        self.last: dict[str, Decision] = {}
        self.entered = ""

    def begin(self, line: str, statements: list[Any]) -> bool:
        """Decide what happens to a step; called where its body begins.

        Parameters
        ----------
        line : str
            What follows ``%%step``.
        statements : list of ast.stmt
            The body.

        Returns
        -------
        bool
            Whether the body must run. If not, its values and outputs are back.

        Raises
        ------
        BadStep
            If the line is wrong; nothing ran.
        RunHeld
            If another process holds the run.
        StopForHuman
            If a person must decide; nothing ran.
        """
        step, body = read_step(line), Body.of(statements)
        self.session.hold()
        self.session.enter(step, body)
        self.entered = step.name
        if self._save_again(step, body):
            return False
        situation = self._look(step, body)
        decision = decide(situation)
        if isinstance(decision, Skip):
            decision = self._skip(step, situation)
        self.last[step.name] = decision
        if isinstance(decision, Stop):
            self.session.journal.note("stopped", step.name, decision.reason)
            remedy = decision.remedy.format(step=step.name, run=self.session.run_id)
            raise StopForHuman(f"step {step.name}: {decision.reason}", remedy)
        if isinstance(decision, Run):
            self._start(step, body, situation, decision.reason)
            return True
        return False

    def commit(self) -> None:
        """Verify and record a step; called where its body ends.

        Raises
        ------
        CheckFailed
            If a completion check is not true; the step is not recorded.
        StopForHuman
            If it is not known of one of its effects whether it happened.
        SaveFailed
            If the checkpoint can't be written. The values stay; running the cell again
            in this kernel saves without running the body again.
        Fenced
            If another process took the run over.
        """
        running = self.running
        if running is None:
            return
        for refusal in running.gathered.refused.values():
            raise refusal  # the body caught it, and it still stands
        running.seconds = time.time() - running.started
        running.recording = self.session.recorder.stop()
        running.touched = self.session.watch.stop()
        running.touched.settle(self.session.paths)
        running.rebound = running.loose.settle()
        step, store = running.step, current.store_named(self.session)
        require_settled(self.session.journal, self.session.run_id, step.name, store)
        proofs.refuse_elsewhere(step.name, "writes", step.writes, self.session.paths)
        proofs.require_checks(step.name, step.checks, self.session.namespace)
        begun.ended(None)
        self.running = None
        current.end()
        self._save(running)

    def trials(self) -> Iterator[AttemptManager]:
        """Yield the trials of a body with ``--retries``.

        Yields
        ------
        tenacity.AttemptManager
            Swallows an error while trials are left. An interrupt is never retried.
        """
        step = self.running.step if self.running else Step("")
        for trial in Retrying(wait=wait_exponential(multiplier=step.backoff)):
            begun.ended(None)  # what the trial before began begins once more
            number = trial.retry_state.attempt_number
            yield _Trial(trial.retry_state, is_last=number > step.retries)

    def fail(self, error: BaseException | None) -> None:
        """Record that the body raised; the user's own traceback stays untouched.

        Parameters
        ----------
        error : BaseException or None
            What it raised.
        """
        running, self.running, self.entered = self.running, None, ""
        if running is None:
            return
        current.end()
        running.loose.settle()
        self.session.recorder.discard()
        self.session.watch.stop()
        self.session.stillness.settle()
        try:
            begun.ended(error)
        except (Fenced, NbckptError, OSError) as failure:
            sys.stderr.write(f"nbckpt: {failure}\n")
        parts = (type(error).__name__, masked(str(error)))
        text = ": ".join(part for part in parts if part)
        try:
            self.session.journal.fail(running.step.name, state_of(error), text[:2000])
        except (Fenced, NbckptError) as failure:
            sys.stderr.write(f"nbckpt: {failure}\n")
        if isinstance(error, WaitingForAnswer):
            self.session.release()

    def _look(self, step: Step, body: Body) -> Situation:
        """Find out all that the decision rests on."""
        session = self.session
        found, damaged = readable(session.store, f"step/{session.run_id}/{step.name}")
        record = StepRecord.from_json(found) if found else None
        attempt = session.journal.attempt(session.run_id, step.name)
        mark = session.journal.mark(session.run_id, step.name)
        return Situation(
            record=record,
            now=session.fingerprint(step, body, record),
            findings=tuple(session.survey.verify(record)) if record else (),
            accepted=mark.accepted,
            rerun=mark.rerun,
            always=step.always,
            age=time.time() - record.completed_at if record else 0.0,
            max_age=step.max_age,
            last_attempt=attempt.state if attempt else None,
            stop_on_redo=step.stop_on_redo or session.wish.stop_on_redo,
            damaged=damaged,
        )

    def _skip(self, step: Step, situation: Situation) -> Decision:
        """Bring a step's values and outputs back; run it if they don't check out."""
        record = situation.record
        if record is None:
            raise AssertionError(step)
        try:
            restored = self.session.checkpoints.load(record.contents)
        except Exception as error:
            return Run(f"its values can't be loaded: {type(error).__name__}: {error}")
        missing = self.session.checkpoints.missing(restored)
        missing = missing or self.session.working_folder.gone(restored.around)
        if missing:
            return Run(missing)
        undo = self.session.bind(record, restored)
        failed = proofs.evaluate_checks(step.checks, self.session.namespace)
        if failed:
            undo()
            return Run("; ".join(failed))
        self.session.bring_back(record, restored)
        self.session.journal.skip(step.name, "verified", record.seconds)
        return Skip()

    def _start(self, step: Step, body: Body, situation: Situation, reason: str) -> None:
        """Record the attempt, then let the body run."""
        self.session.survey.make()
        now = self.session.inputs.actual(step, situation.now)
        self.session.passes.begun[step.name] = now.inputs
        before, around = self.session.snapshot(), ambient.capture()
        maybe = loose(body.reads) - now.inputs.keys()
        ground = self._without(before, body.reads.bound)
        bare = self._without(ground, maybe)
        self.session.seeding.begin(around)
        overlapping = aliases(now.inputs, before, self.session)
        # Killed after this line, the step is found as running by a dead holder.
        attempt = self.session.journal.start(
            step.name,
            reason,
            writes=step.writes,
            durable=bool(step.effects),
            worktree=self.session.worktree.look(),
        )
        self.unsaved = None
        self.running = Running(
            step,
            body,
            now,
            reason,
            attempt,
            situation.record,
            before,
            ground,
            bare,
            Loose(self.session.namespace, maybe),
            around,
            overlapping,
            time.time(),
        )
        place = current.Place(self.session, step, body, attempt, self.running.gathered)
        current.begin(place)
        self.session.start_watching(step, body, now.inputs, attempt)
        self.running.loose.mark()

    def _without(
        self, before: snapshots.Snapshot, names: set[str]
    ) -> snapshots.Snapshot:
        """Return a snapshot as if names had not been there."""
        values = self.session.values(still=True)
        return snapshots.without(before, names, values, self.session.namespace)

    def _save(self, running: Running) -> None:
        """Record a completed step: packs first, then one transaction."""
        session = self.session
        try:
            record, pack, after = completion(running, session)
            with session.checkpoints.committing([pack.name]):
                # Killed before this line: an unreferenced pack. After it: a whole record.
                freed = session.journal.complete(record, pack, running.reason)
        except (NbckptError, OSError, MemoryError) as error:
            self.unsaved = running
            running.left = session.digests()
            session.stillness.settle()
            raise _not_saved(running.step.name, error) from None
        session.checkpoints.drop(freed)
        session.completed(record, after)
        if running.recording is not None:
            running.recording.close()
        why = record.runs_again or record.fingerprint.unknown
        if why:
            sys.stderr.write(
                f"nbckpt: step {record.step} runs again next time: {why}\n"
            )

    def _save_again(self, step: Step, body: Body) -> bool:
        """Save a step whose save failed, if nothing else has run since."""
        unsaved = self.unsaved
        if unsaved is None or unsaved.step.name != step.name:
            return False
        if unsaved.body.code != body.code or unsaved.left != self.session.digests():
            return False
        recording = unsaved.recording
        data = bytes(recording.data()) if recording is not None else b""
        self.unsaved = None
        self._save(unsaved)
        self.session.replay(data)
        return True


class _Trial(AttemptManager):
    """One trial of a body: the user's error goes up untouched where no other follows."""

    def __init__(self, state: RetryCallState, *, is_last: bool) -> None:
        super().__init__(state)
        self._is_last = is_last

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if error is not None and (self._is_last or not _may_pass(error)):
            return None
        return super().__exit__(kind, error, trace)


def _may_pass(error: BaseException) -> bool:
    """Tell whether another trial can help: no refusal of ours goes by waiting.

    A check of the body is about the world, and may be true a moment later.
    """
    if isinstance(error, NbckptError):
        return isinstance(error, CheckFailed)
    return isinstance(error, Exception)


def state_of(error: BaseException | None) -> StepState:
    """Return where a step stands whose body raised.

    Parameters
    ----------
    error : BaseException or None
        What it raised; None: nobody knows.

    Returns
    -------
    StepState
        Failed, interrupted, or waiting for a human.
    """
    if isinstance(error, StopForHuman):
        return StepState.WAITING
    if isinstance(error, KeyboardInterrupt) or "Cancelled" in type(error).__name__:
        return StepState.INTERRUPTED
    return StepState.FAILED


def _not_saved(step: str, error: BaseException) -> SaveFailed:
    """Return the error for a checkpoint that could not be written."""
    what = (
        error.what
        if isinstance(error, NbckptError)
        else f"{type(error).__name__}: {error}"
    )
    return SaveFailed(
        f"step {step} ran, but its checkpoint could not be saved: {what}",
        "Its values are in this kernel. Mend the cause, then run the cell again: it is "
        "saved without running the body again",
    )
