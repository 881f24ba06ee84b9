"""Passes of a notebook in one kernel, and what an earlier one left for the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Standing = dict[str, str]


class Passes:
    """Tells where a pass begins.

    Folders, settings and modules outlive a pass, other than the variables that its cells
    make anew: what stands as the pass before ended is nobody's doing in this one.

    Attributes
    ----------
    ended : dict
        Name → digest of what stood as the pass before ended; empty in the first one.
    begun : dict
        Step → its inputs when its body began last.
    """

    def __init__(self) -> None:
        self.ended: Standing = {}
        self.begun: dict[str, Standing] = {}
        self._looks: tuple[Callable[[], Standing], ...] = ()
        self._left: Standing | None = {}
        self._entered: set[str] = set()

    def look_at(self, *looks: Callable[[], Standing]) -> None:
        """Know what outlives a pass.

        Parameters
        ----------
        *looks : callable
            Each returns what stands now: name → digest.
        """
        self._looks = looks

    def begin(self) -> None:
        """Take note that the notebook begins anew."""
        if self._entered:
            self.ended, self._entered = self._standing(), set()

    def executing(self) -> None:
        """Take note that a cell begins to run; the one before may have been a step."""
        if self._left is None:
            self._left = self._standing()

    def enter(self, step: str) -> None:
        """Take note of a step; one that was entered before begins another pass."""
        if step in self._entered:
            self.ended, self._entered = self._left or {}, set()
        self._entered.add(step)
        self._left = None

    def explained(
        self, recorded: Standing, now: Standing, left: Mapping[str, set[str]]
    ) -> Standing:
        """Return inputs without what a later cell of an earlier pass left.

        Parameters
        ----------
        recorded, now : dict
            Name → digest of the inputs of a step.
        left : mapping
            Dotted name → digests that this step and those below left.

        Returns
        -------
        dict
            `now`, with recorded digests of what is explained.
        """
        found = {
            name: digest
            for name, digest in now.items()
            if digest not in {*left.get(name, ()), self.ended.get(name)}
        }
        lost = now.keys() - found.keys()
        return found | {name: recorded[name] for name in lost & recorded.keys()}

    def tried_again(self, step: str, now: Standing) -> Standing:
        """Return the inputs of a step without a record.

        Parameters
        ----------
        step : str
            Its name.
        now : dict
            Name → digest of its inputs.

        Returns
        -------
        dict
            Without what its own body set before it failed.
        """
        return self.explained(self.begun.get(step, now), now, {})

    def _standing(self) -> Standing:
        """Return what stands now."""
        return {name: digest for look in self._looks for name, digest in look().items()}
