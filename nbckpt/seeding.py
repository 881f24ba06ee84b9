"""Which random streams the notebook has seeded.

The state of a stream that nobody seeded differs in each kernel by chance, and is no
input: a step that drew from it is kept as it came out. A seeded one is an input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt import ambient
from nbckpt.reads import SEEDING_CALL

if TYPE_CHECKING:
    from collections.abc import Iterable


class Seeding:
    """Notices the cells that seed a stream."""

    def __init__(self) -> None:
        self._seeded: set[str] = set()
        self._before: dict[str, str] = {}

    def note_source(self, source: str) -> None:
        """Take note of a plain cell before it runs.

        Parameters
        ----------
        source : str
            The cell's text; only calls such as ``seed(`` make it worth a look.
        """
        if SEEDING_CALL.search(source):
            self._before = ambient.stream_digests(ambient.capture())

    def notice(self) -> None:
        """Take note of the streams that the last plain cell seeded."""
        before, self._before = self._before, {}
        if before:
            now = ambient.stream_digests(ambient.capture())
            self.mark(name for name in now if now[name] != before.get(name))

    def mark(self, streams: Iterable[str]) -> None:
        """Take streams as seeded: a step seeded them, or set them from its record."""
        self._seeded |= set(streams)

    def digests(self, streams: Iterable[str], state: ambient.State) -> dict[str, str]:
        """Return the digests of random streams; of unseeded ones only that they are.

        Parameters
        ----------
        streams : iterable of str
            Names of streams.
        state : dict
            What `nbckpt.ambient.capture` returned.

        Returns
        -------
        dict
            Stream → digest or ``unseeded``.
        """
        found = ambient.stream_digests(state)
        return {
            name: found.get(name, "none") if name in self._seeded else "unseeded"
            for name in streams
        }
