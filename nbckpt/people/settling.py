"""What people say of a run, each word as one change of its records.

A change is handed to `Journal.write` where the kernel that holds the run says it, and to
`Store.transact` where a person says it from outside. Whoever comes second is told who was
first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbckpt import answers, keys
from nbckpt.errors import AlreadySettled, BadStep, NotFound
from nbckpt.records import (
    Advance,
    DecisionRecord,
    Event,
    Note,
    Question,
    RunRecord,
    Unknown,
)
from nbckpt.runs.lines import add_line, count
from nbckpt.runs.moments import local

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.store import Transaction


def refuse_ended(transaction: Transaction, run_id: str) -> None:
    """Refuse a word about a run that is over.

    Parameters
    ----------
    transaction : Transaction
        The transaction of the word.
    run_id : str
        The run.

    Raises
    ------
    NotFound
        If there is no such run.
    AlreadySettled
        If it was finished, cancelled or frozen.
    """
    found = transaction.get(f"run/{run_id}")
    if found is None:
        raise NotFound(f"there is no run {run_id!r}", "See: nbckpt runs")
    run = RunRecord.from_json(found)
    if run.is_ended:
        raise AlreadySettled(
            f"run {run_id} is {run.state}; nothing more is recorded of it",
            f"Begin another from it: nbckpt fork {run_id} --from STEP",
        )


def decision(
    record: DecisionRecord, body: bytes | None
) -> Callable[[Transaction], DecisionRecord]:
    """Return the change that records a decision, unless one stands.

    Parameters
    ----------
    record : DecisionRecord
        The decision.
    body : bytes or None
        Its value, if that is no JSON.

    Returns
    -------
    callable
        Returns the decision that stands, this one or the one before.
    """
    key = f"decision/{record.run_id}/{record.name}"

    def change(transaction: Transaction) -> DecisionRecord:
        refuse_ended(transaction, record.run_id)
        found = transaction.get(key)
        if found is not None:
            return DecisionRecord.from_json(found)
        if body is not None:
            transaction.put_bytes(f"decided/{record.run_id}/{record.name}", body)
        transaction.put(key, record.to_json())
        detail = {"name": record.name, "value": record.value, "by": record.by}
        event = Event(record.at, "decided", record.step, record.reason, detail=detail)
        add_line(transaction, record.run_id, event)
        return record

    return change


def unknown(run_id: str, point: Unknown) -> Callable[[Transaction], Unknown]:
    """Return the change that opens a point, unless the run has it already.

    Parameters
    ----------
    run_id : str
        The run.
    point : Unknown
        Its number is given by the run.

    Returns
    -------
    callable
        Returns the point as it stands; one that is settled stays so.
    """

    def change(transaction: Transaction) -> Unknown:
        refuse_ended(transaction, run_id)
        for key in transaction.keys(f"unknown/{run_id}/"):
            known = Unknown.from_json(transaction.get(key))
            if (known.text, known.step) == (point.text, point.step):
                return known
        numbered = replace(point, number=count(transaction, run_id, "unknown"))
        key = f"unknown/{run_id}/{numbered.number:06d}"
        transaction.put(key, numbered.to_json())
        detail = {"number": numbered.number, "by": point.by}
        event = Event(point.at, "unknown", point.step, point.text, detail=detail)
        add_line(transaction, run_id, event)
        return numbered

    return change


def settlement(
    run_id: str, number: int, why: str, by: str, at: float
) -> Callable[[Transaction], Unknown]:
    """Return the change that settles an open point.

    Parameters
    ----------
    run_id : str
        The run.
    number : int
        The point.
    why : str
        What settles it.
    by : str
        Who says so.
    at : float
        When, in seconds since the epoch.

    Returns
    -------
    callable
        Returns the settled point; raises `NotFound` or `AlreadySettled`.
    """
    key = f"unknown/{run_id}/{number:06d}"

    def change(transaction: Transaction) -> Unknown:
        refuse_ended(transaction, run_id)
        found = transaction.get(key)
        if found is None:
            raise NotFound(
                f"run {run_id} has no open point {number}",
                f"See: nbckpt status {run_id}",
            )
        point = Unknown.from_json(found)
        if point.settled:
            raise AlreadySettled(
                f"point {number} of run {run_id} was settled by {point.settled_by} "
                f"at {local(point.settled_at)}: {point.why}"
            )
        point = replace(point, settled=True, why=why, settled_by=by, settled_at=at)
        transaction.put(key, point.to_json())
        detail = {"number": number, "by": by}
        add_line(
            transaction, run_id, Event(at, "settled", point.step, why, detail=detail)
        )
        return point

    return change


def note(run_id: str, word: Note) -> Callable[[Transaction], Note]:
    """Return the change that records a note, once for each step and text.

    Parameters
    ----------
    run_id : str
        The run.
    word : Note
        The note.

    Returns
    -------
    callable
        Returns the note that stands.
    """
    key = f"note/{run_id}/{keys.digest(word.step, word.text)}"

    def change(transaction: Transaction) -> Note:
        refuse_ended(transaction, run_id)
        found = transaction.get(key)
        if found is not None:
            return Note.from_json(found)
        transaction.put(key, word.to_json())
        event = Event(word.at, "note", word.step, word.text, detail={"by": word.by})
        add_line(transaction, run_id, event)
        return word

    return change


def stands(found: Question, wanted: Question) -> bool:
    """Tell whether a question that was asked before is this one.

    Parameters
    ----------
    found : Question
        As it is recorded, answered or not.
    wanted : Question
        As it is asked now.

    Returns
    -------
    bool
        What was answered to another text, or is no option any more, answers nothing.
    """
    if found.answered:
        is_option = not wanted.options or found.answer in wanted.options
        return found.text == wanted.text and is_option
    return (found.text, found.options) == (wanted.text, wanted.options)


def question(wanted: Question) -> Callable[[Transaction], Question]:
    """Return the change that records a question, unless it stands.

    Parameters
    ----------
    wanted : Question
        As it is asked now.

    Returns
    -------
    callable
        Returns the question as it stands, maybe answered; its first deadline holds.
    """

    def change(transaction: Transaction) -> Question:
        found = transaction.get(wanted.key)
        before = Question.from_json(found) if found else None
        if before is not None and stands(before, wanted):
            return before
        new = replace(wanted, unfit=_outdated(before) if before else "")
        transaction.put(wanted.key, new.to_json())
        detail = {"id": wanted.id, "item": wanted.item, "options": [*wanted.options]}
        event = Event(wanted.asked_at, "asked", wanted.step, wanted.text, detail=detail)
        add_line(transaction, wanted.run_id, event)
        given = transaction.get(wanted.advance_key)
        if given is None:
            return new
        transaction.delete(wanted.advance_key)
        return _take(transaction, new, Advance.from_json(given))

    return change


def _outdated(before: Question) -> str:
    """Return why the answer to a question that is asked anew does not count."""
    if not before.answered:
        return ""
    said = f"{before.answer!r} by {before.answered_by}"
    return f"the answer was {said} when it was: {answers.offered(before)}"


def _take(transaction: Transaction, asked: Question, given: Advance) -> Question:
    """Let the answer count that was given in advance, if it is one of the options."""
    try:
        value = answers.chosen(asked, given.word)
    except BadStep as wrong:
        said = f"given in advance: {given.word!r} by {given.by}, which is no option"
        left = replace(asked, unfit=said)
        transaction.put(asked.key, left.to_json())
        detail = {"id": asked.id, "answer": given.word, "by": given.by}
        event = Event(asked.asked_at, "unfit", asked.step, wrong.what, detail=detail)
        add_line(transaction, asked.run_id, event)
        return left
    return _answered(transaction, asked, value, given.by, given.at)


def advance(wanted: Question, given: Advance) -> Callable[[Transaction], Question]:
    """Return the change that answers a question before it is asked.

    Parameters
    ----------
    wanted : Question
        Its run, step and name; the rest is not known yet.
    given : Advance
        The answer.

    Returns
    -------
    callable
        Returns the question: as it is recorded if it was asked meanwhile, and then
        nothing is written; raises `AlreadySettled` if another answer was given in
        advance.
    """

    def change(transaction: Transaction) -> Question:
        refuse_ended(transaction, wanted.run_id)
        asked = transaction.get(wanted.key)
        if asked is not None:
            return Question.from_json(asked)
        found = transaction.get(wanted.advance_key)
        before = Advance.from_json(found) if found else None
        if before is None:
            transaction.put(wanted.advance_key, given.to_json())
            detail = {"id": wanted.id, "answer": given.word, "by": given.by}
            event = Event(given.at, "given", wanted.step, "in advance", detail=detail)
            add_line(transaction, wanted.run_id, event)
        elif before.word != given.word:
            raise AlreadySettled(
                f"question {wanted.id} of run {wanted.run_id} was answered in advance: "
                f"{before.word!r} by {before.by} at {local(before.at)}",
                "That answer stands",
            )
        return wanted

    return change


def answer(
    asked: Question, value: Any, by: str, at: float
) -> Callable[[Transaction], Question]:
    """Return the change that answers a question; of two at once, one wins.

    Parameters
    ----------
    asked : Question
        The question.
    value : object
        JSON values.
    by : str
        Who answers.
    at : float
        When, in seconds since the epoch.

    Returns
    -------
    callable
        Returns the answered question; raises `AlreadySettled` with who was first.
    """

    def change(transaction: Transaction) -> Question:
        refuse_ended(transaction, asked.run_id)
        stored = Question.from_json(transaction.get(asked.key))
        if stored.answered:
            raise AlreadySettled(
                f"question {asked.id} of run {asked.run_id} was answered "
                f"{stored.answer!r} by {stored.answered_by} at {local(stored.answered_at)}",
                "That answer stands",
            )
        if (stored.text, stored.options) != (asked.text, asked.options):
            raise AlreadySettled(
                f"question {asked.id} of run {asked.run_id} was asked anew: "
                f"{answers.offered(stored)}",
                "Nothing is answered. Answer what it is now",
            )
        return _answered(transaction, stored, value, by, at)

    return change


def _answered(
    transaction: Transaction, asked: Question, value: Any, by: str, at: float
) -> Question:
    """Record the answer to a question, with its line."""
    answered = replace(
        asked, answered=True, answer=value, answered_by=by, answered_at=at, unfit=""
    )
    transaction.put(asked.key, answered.to_json())
    late = bool(asked.deadline) and at > asked.deadline
    detail = {"id": asked.id, "answer": value, "by": by, "late": late}
    event = Event(at, "answered", asked.step, asked.text, detail=detail)
    add_line(transaction, asked.run_id, event)
    return answered
