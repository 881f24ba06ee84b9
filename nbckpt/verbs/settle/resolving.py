"""``nbckpt resolve``: a person says whether an effect happened."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbckpt.credentials import masked
from nbckpt.errors import AlreadySettled, BadStep, NotFound, RunHeld
from nbckpt.records import Answer, EffectRecord, EffectState, Event, StepState, Word
from nbckpt.runs.history import Reader, revived
from nbckpt.runs.leases import is_held
from nbckpt.runs.lines import add_line
from nbckpt.runs.moments import local
from nbckpt.runs.persons import person
from nbckpt.verbs.standing.waiting import resume_command

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.store import Store, Transaction

WORDS: tuple[Word, ...] = ("done", "not-done", "redo")
NAMES_TOLD = 8


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says of an effect."""

    word: Word
    value: str | None = None
    """The outcome, as JSON or plain text; None: none, or the recorded one."""
    why: str = ""
    seen: EffectRecord | None = None
    """The effect as it was when it was said; None: as `resolve` finds it."""


def read_said(done: str | None, *, not_done: bool, redo: bool, why: str = "") -> Said:
    """Return what is said by the options of a command.

    Parameters
    ----------
    done : str or None
        From ``--done``; empty: done, without a value.
    not_done, redo : bool
        Whether these options were given.
    why : str, optional
        From ``--why``.

    Returns
    -------
    Said
        Exactly one thing.

    Raises
    ------
    BadStep
        If it is none or more than one, or the value holds a credential.
    """
    given = zip(WORDS, (done is not None, not_done, redo), strict=True)
    words = [word for word, is_given in given if is_given]
    if len(words) != 1:
        raise BadStep(
            "say one of --done [VALUE], --not-done and --redo",
            "For example: nbckpt resolve etl-1 charge-4711 --done ch_8x1 --why 'seen'",
        )
    if done and masked(done) != done:
        raise BadStep(
            "the value of --done holds a credential of the environment",
            "Give an identifier instead",
        )
    return Said(words[0], done or None, masked(why))


def resolve(store: Store, run: RunRecord, effect: str, said: Said) -> str:
    """Record what a person says of an effect; the next run follows it.

    Parameters
    ----------
    store, run : Store, RunRecord
        The run, and the user's own store that holds it.
    effect : str
        The effect's name or key.
    said : Said
        ``done``: by the request that comes next; ``not-done``, ``redo``: it is performed.

    Returns
    -------
    str
        What was recorded, and how to go on.

    Raises
    ------
    NotFound
        If the run has no such effect, or several of that name.
    RunHeld
        If the step is running: the effect may be happening at this moment.
    AlreadySettled
        If it is not any more as it was seen, or ``not-done`` is said of what is done.
    """
    reader = Reader(store)
    found = _named(reader, run, effect)
    _check_still(reader, found)
    answer = Answer(said.word, person(), time.time(), said.why)
    path = f"effect/{found.run_id}/{found.step}/{found.key}"

    def change(transaction: Transaction) -> EffectRecord:
        now = revived(EffectRecord, transaction.get(path))
        _check_seen(now, said.seen or found)
        _check_not_done(now, said)
        new = _answered(now, said, answer)
        transaction.put(path, new.to_json())
        add_line(transaction, run.run_id, _event(now, new, answer))
        return new

    store.transact(change)
    before = f" (before: {_known(found)})" if found.answer else ""
    return (
        f"effect {found.name} of step {found.step}, run {run.run_id}: {said.word}, "
        f"said by {answer.who}{before}. Then: {_next(reader, run, found.step)}"
    )


def _event(was: EffectRecord, new: EffectRecord, answer: Answer) -> Event:
    """Return the line of the history that tells what a person said."""
    detail = {
        "effect": was.name, "key": was.key, "who": answer.who, "was": was.state,
        "said": answer.word, "value": new.value if answer.word == "done" else None,
    }  # fmt: skip
    return Event(answer.at, "resolved", was.step, answer.why, detail=detail)


def _check_seen(effect: EffectRecord, seen: EffectRecord) -> None:
    """Refuse a word about an effect that somebody else settled meanwhile."""
    if seen == effect:
        return
    answer = effect.answer
    said = f": {answer.word}, said by {answer.who}" if answer else ""
    raise AlreadySettled(
        f"effect {effect.name} of step {effect.step} was settled meanwhile{said}",
        "That stands",
    )


def _check_not_done(effect: EffectRecord, said: Said) -> None:
    """Refuse to take what is known to have happened for what did not."""
    if said.word == "not-done" and effect.state is EffectState.DONE:
        raise AlreadySettled(
            f"effect {effect.name} of step {effect.step} is done: {_known(effect)}",
            "To perform it all the same: --redo; for another outcome: --done VALUE",
        )


def _known(effect: EffectRecord) -> str:
    """Return how it is known what became of an effect."""
    if (answer := effect.answer) is not None:
        why = f", {answer.why!r}" if answer.why else ""
        return f"{answer.word}, said by {answer.who} at {local(answer.at)}{why}"
    return f"{effect.how} at {local(effect.settled_at)}"


def _next(reader: Reader, run: RunRecord, step: str) -> str:
    """Return how the run goes on; a completed step would be skipped."""
    is_planned = any(one.name == step for one in reader.plan(run.run_id).steps)
    done = is_planned and reader.step(run.run_id, step) is not None
    first = f"nbckpt rerun {step} --run {run.run_id}, then " if done else ""
    return first + resume_command(run)


def _named(reader: Reader, run: RunRecord, effect: str) -> EffectRecord:
    """Return the effect that a name or key means."""
    known = reader.effects(run.run_id)
    found = [one for one in known if effect in (one.key, one.name)]
    if len(found) == 1:
        return found[0]
    keys = [one.key for one in found] or [
        one.name for one in known if one.state is EffectState.INTENT
    ]
    keys[NAMES_TOLD:] = ["…"] if len(keys) > NAMES_TOLD else []
    if found:
        raise NotFound(
            f"run {run.run_id} has {len(found)} effects named {effect!r}",
            f"Name one by its key: {', '.join(keys)}",
        )
    raise NotFound(
        f"run {run.run_id} has no effect {effect!r}",
        f"Whose outcome is not known: {', '.join(keys) or 'none'}",
    )


def _check_still(reader: Reader, effect: EffectRecord) -> None:
    """Refuse while the step runs: what is said now could be wrong a moment later."""
    attempt = reader.attempt(effect.run_id, effect.step)
    if attempt is None or attempt.state is not StepState.RUNNING:
        return
    lease = reader.lease(effect.run_id)
    is_its_own = lease is not None and lease.token == attempt.token
    if is_its_own and is_held(lease):
        raise RunHeld(
            f"step {effect.step} of run {effect.run_id} is running: its effect "
            f"{effect.name} may be happening now",
            "Wait for its end or interrupt it, then say it again",
        )


def _answered(record: EffectRecord, said: Said, answer: Answer) -> EffectRecord:
    """Return an effect's record as a person's answer leaves it."""
    if said.word == "not-done":
        return replace(
            record, state=EffectState.FAILED, settled_at=answer.at, answer=answer,
            error="", value=None, coded=False, unkept="",
        )  # fmt: skip
    if said.word == "redo":
        return replace(record, state=EffectState.INTENT, answer=answer)
    if said.value is None and record.state is EffectState.DONE:
        return replace(record, request=None, answer=answer)
    return replace(
        record, state=EffectState.DONE, settled_at=answer.at, how="said", answer=answer,
        value=read_value(said.value), coded=False, unkept="", error="", request=None,
    )  # fmt: skip


def read_value(text: str | None) -> Any:
    """Return the value that a person typed.

    Parameters
    ----------
    text : str or None
        JSON, or any other text, which then is the value.

    Returns
    -------
    object
        A JSON value.

    Examples
    --------
    >>> read_value('{"id": 7}'), read_value("ch_8x1")
    ({'id': 7}, 'ch_8x1')
    """
    if text is None:
        return None
    try:
        return json.loads(text, parse_constant=str, parse_float=_finite)
    except ValueError:
        return text


def _finite(text: str) -> float | str:
    """Return a number; as text if no float holds it: JSON knows no infinity."""
    return number if math.isfinite(number := float(text)) else text
