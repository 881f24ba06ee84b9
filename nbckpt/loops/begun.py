"""The loops over items that the running body has begun, and the item around a call."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from nbckpt import current
from nbckpt.errors import BadStep
from nbckpt.loops.looprows import lineage

if TYPE_CHECKING:
    from nbckpt.current import Place
    from nbckpt.loops.ledger import Ledger


class Loop(Protocol):
    """A loop that is told how its body's step ended."""

    @property
    def ledger(self) -> Ledger:
        """How far it is."""

    def ended(self, error: BaseException | None) -> None:
        """Write what is pending, and which item failed."""


inside: ContextVar[tuple[Ledger, str] | None] = ContextVar("nbckpt_loop", default=None)
"""The loop around the calling code, and the key of its item at hand."""


class _Begun:
    """The loops of one body."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.lineage = lineage(place)
        self.names: set[str] = set()
        self.loops: list[Loop] = []


_begun: list[_Begun] = []


def path(key: str) -> str:
    """Return an item's key after those of the items around it.

    Parameters
    ----------
    key : str
        The item's own.

    Returns
    -------
    str
        What `current.item` is while the item is worked on.
    """
    if inside.get() is None:
        return key
    return f"{current.item.get()}/{quote(key, safe='')}"


def identity(place: Place, name: str) -> tuple[str, str]:
    """Return a loop's name within its step, and the lineage of the body.

    Parameters
    ----------
    place : Place
        The body.
    name : str
        What the user calls it; empty: its number.

    Returns
    -------
    tuple
        Name, the same in each attempt, that no other loop has; `looprows.lineage`, read
        once for all loops of a body.

    Raises
    ------
    BadStep
        If another loop has the user's name.
    """
    if not _begun or _begun[-1].place is not place:
        _begun[:] = [_Begun(place)]
    names, outer = _begun[-1].names, inside.get()
    prefix = outer[0].inside(outer[1]) if outer is not None else ""
    number = 1
    found = prefix + (name or str(number))
    while found in names:
        if name:
            raise BadStep(
                f"step {place.step.name}: two loops have the name {name!r}",
                "Give each its own",
            )
        number += 1
        found = f"{prefix}{number}"
    names.add(found)
    return found, _begun[-1].lineage


def note(loop: Loop) -> None:
    """Take note of a loop whose name was given by `identity`."""
    _begun[-1].loops.append(loop)


def running() -> list[Loop]:
    """Return the loops of the body that runs; safe to call from any thread."""
    return [loop for body in list(_begun) for loop in list(body.loops)]


def ended(error: BaseException | None) -> None:
    """Write what is pending of a body that ended, and which item it failed in.

    Parameters
    ----------
    error : BaseException or None
        What the body raised; None: nothing, or not known.
    """
    found, _begun[:] = list(_begun), []
    current.item.set("")
    inside.set(None)
    for loop in [loop for body in found for loop in body.loops]:
        loop.ended(error)
