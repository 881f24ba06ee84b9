"""Names that a body binds in a branch or a loop only: whether it did.

The variable of a loop is a step's own although an earlier pass, or another step's loop,
left it with an equal value. A name of a branch that was not taken is still the one from
before. The value alone can't tell the two apart; which object it is can.
"""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.records import StepRecord
    from nbckpt.source.reads import Reads

CONSTANT_BYTES = 1 << 16
"""A larger text is none that two places have in common."""


def loose(reads: Reads) -> set[str]:
    """Return the names that a body may bind, and reads nowhere before it did.

    Parameters
    ----------
    reads : Reads
        What its source tells.

    Returns
    -------
    set of str
        None if it can read any name.
    """
    return set() if reads.dynamic else reads.assigned - reads.bound - reads.names


def inherited(reads: Reads, record: StepRecord) -> set[str]:
    """Return the names that a body changed, and that were there before it.

    Parameters
    ----------
    reads : Reads
        What its source tells.
    record : StepRecord
        Of a run of it.

    Returns
    -------
    set of str
        A loose name is one of them if the record says what it shares objects with.
    """
    shared = {n for group in record.fingerprint.sharing for n in group.split(", ")}
    return {*record.contents.bound} - reads.bound - (loose(reads) - shared)


def _stand_in(kind: type) -> type:
    """Return a class of values that equal those of a constant's, and are others."""

    def reduce(self: Any, _: int) -> tuple[type, tuple[Any]]:
        """Come back as the constant: who looked at it meanwhile may have kept it."""
        return kind, (kind(self),)

    return type(kind.__name__, (kind,), {"__slots__": (), "__reduce_ex__": reduce})


STAND_INS = {kind: _stand_in(kind) for kind in (int, float, complex, str, bytes)}


@dataclass(slots=True)
class Loose:
    """What loose names held before a body, while it runs.

    Parameters
    ----------
    namespace : dict
        The notebook's.
    names : set of str
        Loose names that no function reads which the body can reach.

    Notes
    -----
    A loop over small numbers leaves its variable with the very object that stood there,
    so that a constant has a stand-in meanwhile: whoever reads the name all the same (by
    ``globals()``, in another thread) finds an equal value. Other values are told by a weak
    reference, or held: two are never one while the first one lives.
    """

    namespace: dict[str, Any]
    names: set[str]
    _constants: dict[str, Any] = field(default_factory=dict)
    _before: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def mark(self) -> None:
        """Take note of what the names hold."""
        for name in self.names & self.namespace.keys():
            value = self.namespace[name]
            kind = STAND_INS.get(type(value))
            if kind is not None and sys.getsizeof(value) < CONSTANT_BYTES:
                self._constants[name] = value
                self.namespace[name] = value = kind(value)
            self._before[name] = _reference(value)

    def settle(self) -> set[str]:
        """Put constants back that the body did not bind.

        Returns
        -------
        set of str
            Names that it bound for sure.
        """
        now, before = self.namespace, self._before
        there = before.keys() & now.keys()
        found = {name for name in there if before[name]() is not now[name]}
        constants = self._constants.items()
        now |= {name: value for name, value in constants if name in there - found}
        self._constants, self._before = {}, {}
        return found


def _reference(value: Any) -> Callable[[], Any]:
    """Return what gives a value; one that may be large is not kept by it."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: value
