"""An effect under another name of its step: it counts, or the run stops for a person.

A key belongs to the name of a step. Whoever renames one, or moves an effect to another,
would have its effects happen again, under new keys that no receiver knows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from nbckpt import current
from nbckpt.answers import resolving
from nbckpt.effects.intents import Intent
from nbckpt.errors import BadStep, StopForHuman
from nbckpt.records import EffectState, StepState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.current import Place
    from nbckpt.records import Attempt
    from nbckpt.session import Session


def takes_over(intent: Intent, is_same: Callable[[Intent], bool]) -> bool:
    """Take over, or stop, where a step has made the same effect that makes it no more.

    Parameters
    ----------
    intent : Intent
        The effect that is about to happen.
    is_same : callable
        Tells of the effect of this name of another step whether it is this one, and
        leaves its record if it is.

    Returns
    -------
    bool
        Whether it is done now, as a person said of the other one.

    Raises
    ------
    StopForHuman
        If nobody said so. A step that asks for the effect again has it performed only
        once a person has said that the other one is to be.
    """
    for former in _formers(intent):
        if not is_same(former) or former.record is None or not former.record.stands:
            continue
        answer = former.record.answer
        if answer is None or answer.word != "done":
            raise _stop(intent, former)
        intent.take_over(former.record)
        return True
    return False


def _formers(intent: Intent) -> Iterator[Intent]:
    """Yield the effect of this name of each step that is gone, or asks for it no more."""
    place = intent.place
    gone, repeated = _candidates(place.session, place.attempt)
    for last in gone:
        yield Intent(replace(place, attempt=last), intent.name, intent.kind)
    for last in repeated:
        yield from _dropped(intent, replace(place, attempt=last))


@lru_cache(maxsize=1)
def _candidates(
    session: Session, running: Attempt
) -> tuple[list[Attempt], list[Attempt]]:
    """Return the last attempts of steps that are gone, and of those that ran again.

    Found once for the attempt that runs: meanwhile no other step is begun. Where the
    notebook's file is not known, no step is known to be gone.
    """
    journal, run_id = session.journal, running.run_id
    plan = journal.plan(run_id)
    if plan.source != "notebook":
        return [], []
    there = {step.name for step in plan.steps}
    lasts = [last for _, last in sorted(journal.attempts(run_id).items())]
    mine = [replace(last, token=running.token) for last in lasts]
    return [one for one in mine if one.step not in there], [
        one
        for one in mine
        if one.step in there and one.attempt > 1 and one.state is StepState.COMPLETED
    ]


def _dropped(intent: Intent, place: Place) -> Iterator[Intent]:
    """Yield an effect that a step made before, and did not ask for when it ran last."""
    try:
        former = Intent(place, intent.name, intent.kind)
    except BadStep:  # one of another kind is another effect
        return
    record = former.record
    if record and max(record.attempt, record.asked) < place.attempt.attempt:
        yield former


def _stop(intent: Intent, former: Intent) -> StopForHuman:
    """Return the stop at an effect that another step made, with the ways out."""
    step = former.place.attempt.step
    is_done = former.record is not None and former.record.state is EffectState.DONE
    store = current.store_named(intent.place.session)
    run_id = intent.place.attempt.run_id
    plan = intent.place.session.journal.plan(run_id)
    is_there = any(step == other.name for other in plan.steps)
    how = "which asks for it no more" if is_there else "which the notebook has no more"
    return StopForHuman(
        f"{intent.where}: step {step}, {how}, "
        f"{'made' if is_done else 'began'} the same effect in this run",
        f"Nothing was performed. If the step was renamed, name it {step} again; or let "
        f"that effect count here: {resolving(run_id, former.key, store, '--done')} "
        "[VALUE]; to perform it here all the same: "
        f"{resolving(run_id, former.key, store, '--redo')}",
    )
