"""What a person says of a run: an answer, a decision, an open point, a note."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from nbckpt import answers, keys
from nbckpt.credentials import masked
from nbckpt.errors import AlreadySettled, BadStep
from nbckpt.people import settling
from nbckpt.records import Advance, DecisionRecord, Note, Question, Unknown
from nbckpt.runs.history import Reader
from nbckpt.runs.moments import local
from nbckpt.runs.persons import person
from nbckpt.verbs.settle.resolving import read_value
from nbckpt.verbs.standing.waiting import resume_command

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.store import Store

PLAIN = "-"
"""Names plain cells where a step is asked for."""


def answer(store: Store, run: RunRecord, name: str, word: str) -> str:
    """Answer a question that a run waits for.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    name : str
        The question.
    word : str
        One of its options, or any text if it has none.

    Returns
    -------
    str
        What was recorded, and how to go on.

    Raises
    ------
    NotFound
        If the run has no such question.
    BadStep
        If the word is none of the options.
    AlreadySettled
        If somebody else was first; says who.
    """
    asked = answers.named(Reader(store).questions(run.run_id), run.run_id, name)
    value = answers.chosen(asked, word)
    store.transact(settling.answer(asked, value, person(), time.time()))
    said = f"question {asked.id} of run {run.run_id} is answered: {word}"
    return f"{said}. Then: {resume_command(run)}"


def answer_in_advance(
    store: Store, run: RunRecord, step: str, name: str, word: str
) -> str:
    """Answer a question of a step, also before it is asked.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    step : str
        The step that asks; ``-`` for a plain cell.
    name : str
        The question; of an item, with the item after a dot.
    word : str
        The answer.

    Returns
    -------
    str
        What is recorded: the same at each call, so that a notebook may hold the line.

    Raises
    ------
    BadStep
        If it was asked and the word is none of its options.
    AlreadySettled
        If there is another answer; says whose.

    Notes
    -----
    Before the question is asked its options are not known: a word that is none of them
    answers nothing when it comes, the run waits, and the question says so.
    """
    keys.check_name("question", name)
    asks = "" if step == PLAIN else keys.check_name("step", step)
    wanted = Question(run.run_id, name, "", asks)
    given = Advance(word, person(), time.time())
    found = store.transact(settling.advance(wanted, given))
    if found.asked_at:
        value = answers.chosen(found, word)
        if not found.answered or found.answer != value:
            store.transact(settling.answer(found, value, given.by, given.at))
    return f"answer to question {name} of step {step}: {word}"


def decide(store: Store, run: RunRecord, name: str, word: str, reason: str) -> str:
    """Decide something for a run before its notebook does.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    name : str
        The decision.
    word : str
        JSON if it is such, else text.
    reason : str
        Why.

    Returns
    -------
    str
        What was recorded.

    Raises
    ------
    AlreadySettled
        If it is decided; a decision stands for its whole run.
    """
    keys.check_name("decision", name)
    wanted = DecisionRecord(
        run.run_id,
        name,
        read_value(word),
        reason=masked(reason),
        by=person(),
        at=time.time(),
    )
    standing = store.transact(settling.decision(wanted, None))
    if standing != wanted:
        since = standing.step or "their choice"
        raise AlreadySettled(
            f"decision {name} of run {run.run_id} stands since "
            f"{local(standing.at)}: {described(standing)}",
            f"To decide anew: nbckpt fork {run.run_id} --from {since}"
            if standing.step
            else "To decide anew, begin another run: --fresh",
        )
    return f"decision {name} of run {run.run_id}: {described(standing)}"


def described(decision: DecisionRecord) -> str:
    """Return a decision for people.

    Parameters
    ----------
    decision : DecisionRecord
        As recorded.

    Returns
    -------
    str
        Its value, who made it, and why.
    """
    value = (
        "a value that is no text" if decision.encoded else json.dumps(decision.value)
    )
    why = f", because {decision.reason}" if decision.reason else ""
    return f"{value} by {decision.by}{why}"


def unknown(store: Store, run: RunRecord, text: str) -> str:
    """Record an open point of a run.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    text : str
        What is not known.

    Returns
    -------
    str
        Its number, and how it is settled.
    """
    wanted = Unknown(0, masked(text), "", person(), time.time())
    point = store.transact(settling.unknown(run.run_id, wanted))
    return (
        f"open point {point.number} of run {run.run_id}: {point.text}. To settle it: "
        f"nbckpt unknown {run.run_id} --settle {point.number} --why TEXT"
    )


def settle(store: Store, run: RunRecord, number: int, why: str) -> str:
    """Settle an open point of a run.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    number : int
        The point.
    why : str
        What settles it.

    Returns
    -------
    str
        What was recorded.

    Raises
    ------
    BadStep
        If nothing is said that settles it.
    NotFound
        If the run has no such point.
    AlreadySettled
        If somebody else was first.
    """
    if not why.strip():
        raise BadStep(
            f"point {number} is not settled: nothing says why", "Say it: --why TEXT"
        )
    told = masked(why)
    change = settling.settlement(run.run_id, number, told, person(), time.time())
    point = store.transact(change)
    return f"point {number} of run {run.run_id} is settled: {point.text}: {point.why}"


def note(store: Store, run: RunRecord, text: str) -> str:
    """Record a written note of a run.

    Parameters
    ----------
    store : Store
        The user's own store.
    run : RunRecord
        The run.
    text : str
        What was found or understood.

    Returns
    -------
    str
        What was recorded.

    Raises
    ------
    BadStep
        If it says nothing.
    """
    if not text.strip():
        raise BadStep("the note says nothing", "Write what was found or understood")
    word = Note(masked(text), "", person(), time.time())
    store.transact(settling.note(run.run_id, word))
    return f"noted in run {run.run_id}: {word.text}"
