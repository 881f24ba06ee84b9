"""Questions to a person: the wait is a checkpoint, nothing polls.

The question is on disk before the cell ends; the answer is on disk before anybody is told
that it was taken. Killed anywhere between, the next pass asks the same question and finds
what stands.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from nbckpt import answers, current, keys
from nbckpt.credentials import masked
from nbckpt.errors import BadStep, WaitingForAnswer
from nbckpt.people import settling
from nbckpt.plan import read_duration
from nbckpt.records import Question

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.session import Session

Deadline = str | float | timedelta | datetime | None
SHORT = re.compile(r"[A-Za-z0-9_-]{1,24}")
OPTION = (str, int, float, bool)


def ask(
    question: str,
    options: Iterable[Any] | None = None,
    deadline: Deadline = None,
    name: str = "",
) -> Any:
    """Return a person's recorded answer, or record the question and end the cell.

    Parameters
    ----------
    question : str
        What is asked.
    options : iterable, optional
        The answers that are allowed: texts, numbers, True and False. Without them,
        any text.
    deadline : str or float or timedelta or datetime, optional
        ``"2d"``, seconds, or a moment; counted from the first time that it is asked.
        Nothing is decided when it passes: the run goes on waiting, and says so.
    name : str, optional
        Names the question for whoever answers; without it, a digest of its text does.

    Returns
    -------
    object
        The option that was chosen, or the text.

    Raises
    ------
    WaitingForAnswer
        If there is no answer yet. The run is free meanwhile; run the notebook again
        once it is answered.

    Notes
    -----
    A question is one of its run, step and item: in a loop over items each has its own.
    An answer counts for the text that it was given to: under a name, too, another text
    is asked anew.

    Examples
    --------
    ``if ask("Delete 412 rows?", ["yes", "no"], name="delete") == "yes": ...``
    """
    session = current.session()
    session.hold()
    wanted = _wanted(session, question, _options(options), _moment(deadline), name)
    _require_own_name(wanted)
    asked = session.journal.write(settling.question(wanted))
    if asked.answered:
        return asked.answer
    raise _waiting(session, asked)


def _wanted(
    session: Session, text: object, options: tuple[Any, ...], deadline: float, name: str
) -> Question:
    """Return a question as it is asked here and now."""
    place = current.running()
    if not isinstance(text, str) or not text.strip():
        raise BadStep(
            f"ask: {text!r} is no question", "Give a text that a person can answer"
        )
    return Question(
        run_id=session.run_id,
        id=_identity(text, name),
        text=masked(text),
        step=place.step.name if place else "",
        item=current.item.get(),
        options=options,
        asked_at=time.time(),
        deadline=deadline,
    )


def _require_own_name(wanted: Question) -> None:
    """Refuse a name that another question of this body has: its answer is another."""
    place = current.running()
    if place is None:
        return
    before = place.gathered.questions.setdefault(wanted.key, wanted.text)
    if before != wanted.text:
        raise BadStep(
            f"ask: two questions have the name {wanted.id!r}: {before!r} and "
            f"{wanted.text!r}",
            "Give each its own name",
        )


def _identity(question: str, name: str) -> str:
    """Return what tells a question from the others of its step."""
    item = current.item.get()
    base = keys.check_name("question", name) if name else ""
    base = base or f"q-{keys.digest(question)[:8]}"
    if not item:
        return base
    return f"{base}.{item if SHORT.fullmatch(item) else keys.digest(item)[:8]}"


def _options(options: Iterable[Any] | None) -> tuple[Any, ...]:
    """Return the options, or say what can't be one."""
    if isinstance(options, str):
        raise BadStep(f"ask: options={options!r} is one text", "Give a list of options")
    found = tuple(options or ())
    for option in found:
        if type(option) not in OPTION:
            raise BadStep(
                f"ask: {option!r} can't be an option",
                "Options are texts, numbers, True and False",
            )
    if options is not None and not found:
        raise BadStep("ask: there are no options", "Leave them out to allow any text")
    if len({answers.word_of(option) for option in found}) < len(found):
        raise BadStep(f"ask: two of {found!r} read the same", "Let each option differ")
    return found


def _moment(deadline: Deadline) -> float:
    """Return a deadline in seconds since the epoch; 0 for none."""
    if deadline is None:
        return 0.0
    if isinstance(deadline, datetime):
        return deadline.timestamp()
    if isinstance(deadline, int | float):
        return time.time() + deadline
    return time.time() + read_duration(deadline)


def _waiting(session: Session, asked: Question) -> WaitingForAnswer:
    """Return the error that ends the cell; the run is free once it has ended."""
    found = answers.commands(asked, current.store_named(session))
    error = WaitingForAnswer(
        f"{answers.as_asked(asked, time.time())}. Run {asked.run_id} waits for a human",
        f"Answer: %nbckpt answer {asked.id} VALUE, or in a shell: "
        f"{' | '.join(found)}. Then run the notebook again",
    )
    place = current.running()
    current.asked[:] = [asked]
    if place is not None:
        place.gathered.refused[asked.key] = error
    else:
        session.release()
    return error
