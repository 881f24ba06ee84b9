"""Names that a body binds in a branch or a loop only: whether it did, by what is there.

The variable of a loop is a step's own although an earlier pass, or another step's loop,
left it with an equal value. A name of a branch that was not taken is still the one from
before. The value alone can't tell the two apart.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.records import StepRecord
    from nbckpt.source.reads import Reads

ALONE = 2
"""References to a value that one dictionary holds, and a call looks at."""


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


@dataclass(slots=True)
class Aside:
    """What loose names held before a body, while it runs.

    Parameters
    ----------
    namespace : dict
        The notebook's; the names are taken out of it.
    names : set of str
        Loose names that no function reads which the body can reach.

    Notes
    -----
    A loop over the same objects leaves its variable where it stood, so that only a name
    that was missing tells. A value that this name alone holds may be large: it stays,
    to be freed as soon as the body binds the name, which its weak reference tells.
    """

    namespace: dict[str, Any]
    names: set[str]
    _held: dict[str, Any] = field(default_factory=dict)
    _alone: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def put(self) -> None:
        """Take the names out."""
        for name in self.names & self.namespace.keys():
            self._held[name] = self.namespace.pop(name)
            if sys.getrefcount(self._held[name]) <= ALONE:
                with contextlib.suppress(TypeError):
                    self._alone[name] = weakref.ref(self._held[name])
                    self.namespace[name] = self._held.pop(name)

    def settle(self) -> set[str]:
        """Put back what the body did not bind.

        Returns
        -------
        set of str
            Names that it bound for sure.
        """
        held, alone, now = self._held, self._alone.items(), self.namespace
        found = {name for name, before in alone if before() is not now.get(name)}
        found |= held.keys() & now.keys()
        now |= {name: value for name, value in held.items() if name not in found}
        self._held, self._alone = {}, {}
        return found & now.keys()
