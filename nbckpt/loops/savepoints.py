"""What the names that a loop builds up held after an item: taken between two items.

Names whose objects overlap with kept ones travel with them, as in a step's checkpoint; the
random streams, and generators that the body names, are kept too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadStep, SaveFailed
from nbckpt.loops.builtup import is_plain
from nbckpt.state import ambient, snapshots, variables
from nbckpt.state.checkpoints import Restored, Work, pack_name
from nbckpt.state.snapshots import Changes, Snapshot

if TYPE_CHECKING:
    from nbckpt.current import Place
    from nbckpt.loops.builtup import BuiltUp
    from nbckpt.records import Contents
    from nbckpt.state.variables import Namespace
    from nbckpt.store.packs import Pack

LEAST_SECONDS = 0.02
PAUSES = 9.0
"""Times that a save took, until the next: saving costs a tenth of the time at most."""
GENERATORS = {
    ("random", "Random"),
    ("numpy.random._generator", "Generator"),
    ("numpy.random.mtrand", "RandomState"),
    ("torch._C", "Generator"),
}


@dataclass(frozen=True, slots=True)
class Saved:
    """What the kept names held, on disk or on its way there."""

    contents: Contents
    pack: Pack


class Savepoint:
    """Saves and restores the names that one loop keeps.

    Parameters
    ----------
    place : Place
        The body that the loop stands in.
    built : BuiltUp
        What the user names must be kept; what else is built up, if it is plain data.
    """

    def __init__(self, place: Place, built: BuiltUp) -> None:
        self._place = place
        self._names = built.asked
        self._offered = built.names
        self._group: set[str] | None = None
        self._apart: set[str] = set()
        self._cost = 0.0
        self._ended = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last save."""
        pause = max(LEAST_SECONDS, PAUSES * self._cost)
        return time.monotonic() - self._ended >= pause

    def take(self) -> Saved:
        """Write what the kept names hold now.

        Returns
        -------
        Saved
            For the transaction of the items that are done.

        Raises
        ------
        BadStep
            If a name is not bound.
        SaveFailed
            If one of them can't be kept.
        OSError
            If the disk is full or fails.
        """
        begun = time.monotonic()
        session, attempt = self._place.session, self._place.attempt
        streams = {n: s for n, s in ambient.streams().items() if s is not None}
        work = Work(self._changes(), streams)
        refused = session.checkpoints.refusals(work)
        if refused and self._offered:
            self._offered = ()
            return self.take()
        if refused:
            raise SaveFailed(
                f"step {attempt.step}: what items(…, keep=) names can't be kept: {refused}",
                "Leave it out of keep and build it up elsewhere",
            )
        name = pack_name(attempt.run_id, attempt.token, attempt.order)
        contents, pack = session.checkpoints.write(name, work, session.secrets())
        self._ended = time.monotonic()
        self._cost = self._ended - begun
        return Saved(contents, pack)

    def _changes(self) -> Changes:
        """Return the kept names, and those whose objects overlap with theirs."""
        session = self._place.session
        values = session.values()
        self._require(values)
        offered = [n for n in self._offered if n in values and is_plain(values[n])]
        names = {*self._names, *offered, *self._generators(values)}
        nothing = Snapshot({}, {}, frozenset())
        seen = snapshots.take(self._looked_at(values), session.namespace, nothing)
        found = {
            group: seen.encoded[group] for group in seen.components if group & names
        }
        self._group = set().union(*found)
        # What refuses is looked for in all that it holds: once, not after each item.
        refusing = [g for g in seen.components if seen.encoded[g].refusals]
        self._apart |= set().union(*refusing) - self._group
        changes = Changes(found, ())
        return variables.hide(changes, values, session.namespace, session.secrets())

    def _require(self, values: Namespace) -> None:
        """Refuse names that the notebook does not have."""
        missing = [name for name in self._names if name not in values]
        if missing:
            raise BadStep(
                f"step {self._place.step.name}: items(…, keep=) names {missing[0]!r}, "
                "which is no name of the notebook that can be kept",
                "Bind it in the cell, before the loop; names inside functions can't be kept",
            )

    def _looked_at(self, values: Namespace) -> Namespace:
        """Return the names among which overlaps are looked for.

        All of them the first time, if the user asked; then those that the body can have
        tied to kept ones.
        """
        names = set(values)
        if self._group is not None or not self._names:
            reads = self._place.body.reads
            names = reads.names | reads.bound | reads.assigned
            names = {*names, *self._offered, *(self._group or ())} - self._apart
        found = {name: values[name] for name in sorted(names) if name in values}
        return {name: value for name, value in found.items() if not _is_loop(value)}

    def _generators(self, values: Namespace) -> list[str]:
        """Return the random generators that the body names."""
        names = self._place.body.reads.names | self._place.body.reads.assigned
        return [n for n in sorted(names) if n in values and _is_generator(values[n])]

    def load(self, contents: Contents) -> Restored:
        """Return what the kept names held, not bound yet.

        Parameters
        ----------
        contents : Contents
            From the loop's record.

        Returns
        -------
        Restored
            For `bind`.

        Raises
        ------
        Exception
            If the bytes are damaged, or a type's library changed since.
        """
        return self._place.session.checkpoints.load(contents)

    def bind(self, restored: Restored) -> None:
        """Let the kept names, and the random streams, stand as they were saved.

        Parameters
        ----------
        restored : Restored
            From `load`.
        """
        session = self._place.session
        for name, value in restored.values.items():
            session.names.bind(name, value)
        ambient.restore(restored.around)
        self._group = set(restored.values)


def _is_loop(value: Any) -> bool:
    """Tell whether a value is a loop of ours, which holds its items and is not kept."""
    return type(value).__module__ == "nbckpt.loops.iteration"


def _is_generator(value: Any) -> bool:
    """Tell whether a value is a random generator, by name: nothing is imported for it."""
    return (type(value).__module__, type(value).__qualname__) in GENERATORS
