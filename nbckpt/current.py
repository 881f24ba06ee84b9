"""Where the code that calls us stands: the kernel's session, the step, the item."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadStep, NbckptError

if TYPE_CHECKING:
    from nbckpt.inputs import Body
    from nbckpt.plan import Step
    from nbckpt.records import Attempt, Question
    from nbckpt.session import Session


@dataclass(slots=True)
class Gathered:
    """What a body told of itself while it ran."""

    notes: list[str] = field(default_factory=list)
    learned: dict[str, Any] = field(default_factory=dict)
    confirmed: list[str] = field(default_factory=list)
    refused: dict[str, NbckptError] = field(default_factory=dict)
    """A check that is not true, a question without an answer: the step can't be done
    while one stands here, even if the body caught the error."""


@dataclass(frozen=True, slots=True)
class Place:
    """A body that runs."""

    session: Session
    step: Step
    body: Body
    attempt: Attempt
    gathered: Gathered = field(default_factory=Gathered)


item: ContextVar[str] = ContextVar("nbckpt_item", default="")
"""Key of the item that the calling thread works on; empty outside of items."""

asked: list[Question] = []
"""The question that ended the running cell; its buttons are shown below the error."""

_sessions: list[Session] = []
_places: list[Place] = []


def enter(session: Session | None) -> None:
    """Take note of the session of this kernel.

    Parameters
    ----------
    session : Session or None
        None: nbckpt was taken out.
    """
    _sessions[:] = [session] if session is not None else []
    _places.clear()


def begin(place: Place) -> None:
    """Take note that a body begins.

    Parameters
    ----------
    place : Place
        The body; the one before has ended.
    """
    _places[:] = [place]


def end() -> None:
    """Take note that no body runs any more."""
    _places.clear()


def session() -> Session:
    """Return this kernel's session.

    Raises
    ------
    BadStep
        If nbckpt is not loaded here.
    """
    if not _sessions:
        raise BadStep("nbckpt is not loaded in this process", "First: %load_ext nbckpt")
    return _sessions[0]


def running() -> Place | None:
    """Return the body that runs, or None between steps."""
    return _places[0] if _places else None


def place(what: str) -> Place:
    """Return the body that runs.

    Parameters
    ----------
    what : str
        The call that needs it, for the message.

    Raises
    ------
    BadStep
        If no step runs in this process.
    """
    session()
    if not _places:
        raise BadStep(
            f"nbckpt.{what} was called outside of a step",
            "Call it in a cell that begins with %%step NAME",
        )
    return _places[0]
