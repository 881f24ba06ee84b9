"""Where the code that calls us stands: the kernel's session, the step, the item."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbckpt.errors import BadStep

if TYPE_CHECKING:
    from nbckpt.inputs import Body
    from nbckpt.plan import Step
    from nbckpt.records import Attempt
    from nbckpt.session import Session


@dataclass(frozen=True, slots=True)
class Place:
    """A body that runs."""

    session: Session
    step: Step
    body: Body
    attempt: Attempt


item: ContextVar[str] = ContextVar("nbckpt_item", default="")
"""Key of the item that the calling thread works on; empty outside of items."""

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
