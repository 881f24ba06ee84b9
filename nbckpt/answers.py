"""How a question is shown to people, which answer a word means, and how a run goes on."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadStep, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbckpt.records import Question


def word_of(option: Any) -> str:
    """Return an option as it is written on a command line.

    Parameters
    ----------
    option : object
        JSON values.

    Returns
    -------
    str
        Text as it is, everything else as JSON.
    """
    return option if isinstance(option, str) else json.dumps(option)


def as_asked(question: Question, now: float) -> str:
    """Return a question for people.

    Parameters
    ----------
    question : Question
        Not answered yet.
    now : float
        Wall clock in seconds since the epoch.

    Returns
    -------
    str
        Its name, text and options, and whether its deadline has passed.
    """
    item = f", item {question.item}" if question.item else ""
    passed = bool(question.deadline) and now > question.deadline
    late = "; its deadline has passed without an answer" if passed else ""
    unfit = f"; {question.unfit}" if question.unfit else ""
    return f"question {question.id}{item}: {offered(question)}{late}{unfit}"


def offered(question: Question) -> str:
    """Return the text of a question, with its options.

    Parameters
    ----------
    question : Question
        Answered or not.

    Returns
    -------
    str
        For people.
    """
    options = ", ".join(map(word_of, question.options))
    return f"{question.text} ({options})" if options else question.text


def commands(question: Question, store: str = "") -> list[str]:
    """Return the commands that answer a question.

    Parameters
    ----------
    question : Question
        Not answered yet.
    store : str, optional
        Folder of its store, where the command must name it.

    Returns
    -------
    list of str
        One for each option.
    """
    where = ["--store", store] if store else []
    words = ["nbckpt", "answer", *where, question.run_id, question.id]
    if not question.options:
        return [f"{shlex.join(words)} VALUE"]
    return [shlex.join([*words, word_of(option)]) for option in question.options]


def resolving(
    run_id: str, key: str, store: str = "", said: str = "--done VALUE|--not-done|--redo"
) -> str:
    """Return the command that tells whether an effect happened.

    Parameters
    ----------
    run_id : str
        The run.
    key : str
        The effect's key.
    store : str, optional
        Folder of its store, where the command must name it.
    said : str, optional
        What may be said; VALUE is the outcome.

    Returns
    -------
    str
        One line for a shell.
    """
    where = ["--store", store] if store else []
    return f"{shlex.join(['nbckpt', 'resolve', *where, run_id, key])} {said}"


def resuming(notebook: object, run_id: str) -> str:
    """Return the command that goes on with a run.

    Parameters
    ----------
    notebook : str or Path
        Its file.
    run_id : str
        The run.

    Returns
    -------
    str
        One line for a shell.
    """
    return shlex.join(["nbckpt", "run", str(notebook), "--run-id", run_id])


def chosen(question: Question, word: str) -> Any:
    """Return the answer that a word means.

    Parameters
    ----------
    question : Question
        What was asked.
    word : str
        From the command line or a text field.

    Returns
    -------
    object
        The option; where any text is allowed, the word itself.

    Raises
    ------
    BadStep
        If it is none of the options.
    """
    if not question.options:
        return word
    for option in question.options:
        if word_of(option) == word:
            return option
    raise BadStep(
        f"{word!r} is no answer to question {question.id}: {question.text}",
        f"Choose one of: {', '.join(map(word_of, question.options))}",
    )


def named(questions: Sequence[Question], run_id: str, name: str) -> Question:
    """Return the question that a name means.

    Parameters
    ----------
    questions : sequence of Question
        Of one run.
    run_id : str
        The run, for the message.
    name : str
        Its id, after ``STEP/`` where two steps ask under one name.

    Returns
    -------
    Question
        One that is open, if there is such.

    Raises
    ------
    NotFound
        If there is none of this name, or more than one.
    """
    waiting = [q for q in questions if not q.answered]
    found = _of_name(waiting, name) or _of_name(questions, name)
    if not found:
        known = ", ".join(q.id for q in waiting) or "none"
        raise NotFound(f"run {run_id} has no question {name!r}", f"Open: {known}")
    if len(found) > 1:
        raise _ambiguous(run_id, name, found)
    return found[0]


def _of_name(questions: Sequence[Question], name: str) -> list[Question]:
    """Return the questions of a name, of one step if the name tells it."""
    step, _, plain = name.rpartition("/")
    return [q for q in questions if q.id == plain and step in {"", q.step}]


def _ambiguous(run_id: str, name: str, found: Sequence[Question]) -> NotFound:
    """Return the refusal of a name that several questions bear."""
    each = ", ".join(f"{q.step or '-'}/{q.id}" for q in found)
    return NotFound(f"run {run_id} has several questions {name!r}", f"Name one: {each}")
