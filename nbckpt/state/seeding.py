"""Which random streams the notebook has seeded.

The state of a stream that nobody seeded differs in each kernel by chance, and is no
input: a step that drew from it is kept as it came out. A seeded one is an input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.records import SEEDED_BY_STEP, UNSEEDED
from nbckpt.source.reads import SEEDING_CALL
from nbckpt.state import ambient

if TYPE_CHECKING:
    from collections.abc import Iterable


class Seeding:
    """Notices the cells that seed a stream."""

    def __init__(self) -> None:
        self.own: set[str] = set()
        """Streams that the running step seeded before it drew from them."""
        self._seeded: set[str] = set()
        self._before: dict[str, str] = {}
        self._start: dict[str, str] = {}
        self._still: set[str] = set()

    def begin(self, state: ambient.State) -> None:
        """Take note of the streams before a step's body."""
        self.own, self._still = set(), set()
        self._start = ambient.stream_digests(state)

    def about_to_seed(self) -> None:
        """Take note of the streams that the body has not drawn from so far."""
        now = ambient.stream_digests(ambient.streams())
        self._still = {n for n, d in now.items() if self._start.get(n, d) == d}

    def has_seeded(self, seeds: Iterable[object]) -> None:
        """Take note of the streams that a call in the body has seeded, by their state."""
        state, given = ambient.streams(), list(seeds)
        self.own |= {
            stream
            for stream in self._still
            if any(ambient.is_seeded(stream, state[stream], seed) for seed in given)
        }

    def note_source(self, source: str) -> None:
        """Take note of a plain cell before it runs.

        Parameters
        ----------
        source : str
            The cell's text; only calls such as ``seed(`` make it worth a look.
        """
        if SEEDING_CALL.search(source):
            self._before = ambient.stream_digests(ambient.streams())

    def notice(self) -> None:
        """Take note of the streams that the last plain cell seeded."""
        before, self._before = self._before, {}
        if before:
            now = ambient.stream_digests(ambient.streams())
            self.mark(name for name in now if now[name] != before.get(name))

    def mark(self, streams: Iterable[str]) -> None:
        """Take streams as seeded: a step seeded them, or set them from its record."""
        self._seeded |= set(streams)

    def digests(self, streams: Iterable[str], state: ambient.State) -> dict[str, str]:
        """Return the digests of random streams that the notebook seeded.

        Parameters
        ----------
        streams : iterable of str
            Names of streams.
        state : dict
            What `nbckpt.state.ambient.capture` returned.

        Returns
        -------
        dict
            Stream → digest, or why its state is no input.
        """
        wanted = self._seeded.intersection(streams)
        found = ambient.stream_digests({name: state.get(name) for name in wanted})
        return {
            name: found.get(name, "none") if name in self._seeded else UNSEEDED
            for name in streams
        }

    def compared(
        self, recorded: dict[str, str], state: ambient.State
    ) -> dict[str, str]:
        """Return the digests of random streams as they compare with recorded ones.

        Parameters
        ----------
        recorded : dict
            Stream → digest, or why its state was no input.
        state : dict
            What `nbckpt.state.ambient.capture` returned.

        Returns
        -------
        dict
            Stream → digest; a stream that the step itself seeds stays as recorded.
        """
        found = self.digests(recorded, state)
        return {
            name: SEEDED_BY_STEP if recorded[name] == SEEDED_BY_STEP else digest
            for name, digest in found.items()
        }
