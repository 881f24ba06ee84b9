"""What a running step takes over from steps that are done, recorded before it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.inputs.folders import lies_in

if TYPE_CHECKING:
    from nbckpt.inputs.proofs import Writers
    from nbckpt.records import Attempt
    from nbckpt.runs.journal import Journal

MOST = 200


class Claims:
    """Claims of the running step.

    Killed right after it changed a file that another step had written or read, or put a
    new one into a folder that another had listed, the other must not be blamed for it.

    Parameters
    ----------
    journal : Journal
        The run's memory.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._attempt: Attempt | None = None
        self._owned: set[str] = set()
        self._listed: set[str] = set()

    def start(self, attempt: Attempt, writers: Writers) -> None:
        """Begin with a step.

        Parameters
        ----------
        attempt : Attempt
            Of the step whose body is about to run.
        writers : Writers
            Who wrote and read what.
        """
        awaited = writers.awaited(attempt.step)
        self._attempt = attempt
        self._owned = writers.others(attempt.step) | awaited
        self._listed = {name for name in awaited if name.endswith("/")}

    def take(self, name: str) -> None:
        """Record that the running step takes a file over, before it is changed.

        Parameters
        ----------
        name : str
            The file, or the folder.
        """
        if self._attempt is None:
            return
        if name in self._owned:
            self._owned.discard(name)
            self._attempt = self._journal.claim(self._attempt, name)
        elif folder := next((f for f in self._listed if lies_in(name, f)), None):
            # Each name for itself, so that what others put there still counts; a step
            # that makes hundreds takes the folder.
            if len(self._attempt.writes) >= MOST:
                self._listed.discard(folder)
                name = folder
            # A lost power line takes the new name with it, if it takes the claim.
            self._attempt = self._journal.claim(self._attempt, name, durable=False)
