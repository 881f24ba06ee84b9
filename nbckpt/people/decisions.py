"""Decisions, open points, notes and evidence, as the code of a notebook tells them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from nbckpt import current, keys
from nbckpt.credentials import Secrets, masked
from nbckpt.errors import BadStep, CheckFailed, OwnFramesHidden
from nbckpt.people import settling
from nbckpt.records import DecisionRecord, Note, Unknown, dumps, loads
from nbckpt.runs.persons import person
from nbckpt.state import values

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.session import Session


def decide(name: str, choose: Callable[[], Any] | Any, reason: str = "") -> Any:
    """Return the recorded decision of this run, or make and record one.

    Parameters
    ----------
    name : str
        Name of the decision; one of a name in each run.
    choose : callable or object
        Called without arguments if nothing is decided yet; another value is the
        decision itself.
    reason : str, optional
        Why it is decided so.

    Returns
    -------
    object
        The value that is recorded, also the first time.

    Raises
    ------
    ValueRefused
        If the value can't be kept; nothing is decided.

    Notes
    -----
    The decision is on disk before it is returned. Killed between choosing and that, it
    is chosen again. A person may decide first: ``nbckpt decide RUN NAME VALUE``.

    Examples
    --------
    ``cut = decide("cut-off", lambda: df.delay.quantile(0.99), "the tail is noise")``
    """
    keys.check_name("decision", name)
    session = _held()
    found = session.store.get(f"decision/{session.run_id}/{name}")
    if found is not None:
        return _value(session, DecisionRecord.from_json(found))
    with OwnFramesHidden():
        value = choose() if callable(choose) else choose
    data, body = values.keep(f"decision {name}", value, session.namespace)
    record = DecisionRecord(
        session.run_id, name, data, body is not None, masked(reason),
        _step(), person(), time.time(),
    )  # fmt: skip
    standing = session.journal.write(settling.decision(record, body))
    return _value(session, standing)


def unknown(text: str) -> None:
    """Record an open point of this run, listed until somebody settles it.

    Parameters
    ----------
    text : str
        What is not known. Told again, it is still one point.

    Examples
    --------
    ``unknown("is 9E the same carrier as EV before 2010?")``
    """
    session, text = _held(), _told("unknown", text)
    point = Unknown(0, masked(text), _step(), person(), time.time())
    session.journal.write(settling.unknown(session.run_id, point))


def note(text: str) -> None:
    """Record a written note; inside a step it is evidence, of the weaker kind.

    Parameters
    ----------
    text : str
        What was found or understood.

    Examples
    --------
    ``note("looked at 40 rows by hand; the outliers are real")``
    """
    session, place, text = _held(), current.running(), _told("note", text)
    word = Note(masked(text), _step(), person(), time.time())
    session.journal.write(settling.note(session.run_id, word))
    if place is not None:
        place.gathered.notes.append(word.text)


def evidence(name: str, value: Any) -> None:
    """Put what the step learned into its record, such as an identifier.

    Parameters
    ----------
    name : str
        What it is.
    value : object
        Text, number, bool, None, or lists and dicts of these.

    Raises
    ------
    BadStep
        Outside of a step, or if the value is no plain JSON or holds a credential.

    Examples
    --------
    ``evidence("batch id", reply["id"])``
    """
    place = current.place("evidence")
    if not values.is_json(value):
        raise BadStep(
            f"step {place.step.name}: evidence {name!r} is a {type(value).__name__}, "
            "which is no plain JSON",
            "Give text, a number, or lists and dicts of these",
        )
    if Secrets.of_environment().are_in(dumps(value)):
        raise BadStep(
            f"step {place.step.name}: evidence {name!r} holds a credential of the "
            "environment",
            "Give an identifier instead",
        )
    # As it is now: what the body does to it later was not looked at.
    place.gathered.learned[name] = loads(dumps(value))


def check(name: str, ok: object) -> None:
    """Fail the step unless something is true; what is true is listed as evidence.

    Parameters
    ----------
    name : str
        What is checked.
    ok : object
        Whether it is so, by its truth.

    Raises
    ------
    CheckFailed
        If it is not; the step is not recorded.
    BadStep
        Outside of a step.

    Notes
    -----
    Unlike ``%%step --check`` it is not evaluated again when the step is skipped.

    Examples
    --------
    ``check("no order was lost", len(charged) == len(orders))``
    """
    place = current.place("check")
    told, mark = place.gathered, f"check {name}"
    told.refused.pop(mark, None)
    if not ok:
        told.refused[mark] = CheckFailed(
            f"step {place.step.name}: check {name!r} is not true",
            "Nothing of the step is recorded. Mend the cause, then run the cell again",
        )
        raise told.refused[mark]
    told.confirmed.append(name)


def _told(call: str, text: object) -> str:
    """Return what a call tells, which must be a text that says something."""
    if not isinstance(text, str) or not text.strip():
        raise BadStep(f"{call}({text!r}) tells nothing", "Give a text for people")
    return text


def _held() -> Session:
    """Return this kernel's session, which holds its run."""
    session = current.session()
    session.hold()
    return session


def _step() -> str:
    """Return the step that runs; empty in a plain cell."""
    place = current.running()
    return place.step.name if place is not None else ""


def _value(session: Session, record: DecisionRecord) -> Any:
    """Return the value of a recorded decision."""
    body = None
    if record.encoded:
        body = session.store.get_bytes(f"decided/{record.run_id}/{record.name}")
    return values.revive(record.value, body, session.namespace)
