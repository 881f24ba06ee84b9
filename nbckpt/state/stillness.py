"""Whether anything can have changed the variables since a step ended."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbckpt.state.snapshots import Snapshot


class Stillness:
    """Counts what runs in a kernel.

    While nothing but steps ran, what is known of the variables holds, and needs not be
    found out again. Threads and widgets can change variables at any time; with them,
    nothing is taken for granted.

    Attributes
    ----------
    snapshot : Snapshot or None
        The namespace after the last step, while it holds.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self._executions = 0
        self._settled = -1
        self._threads = set(threading.enumerate())

    def executing(self) -> None:
        """Take note that a cell, or anything else, begins to run."""
        self._executions += 1

    def settle(self, snapshot: Snapshot | None = None) -> None:
        """Take note that a step ended.

        Parameters
        ----------
        snapshot : Snapshot, optional
            The namespace after it, if it is known.
        """
        self._settled = self._executions
        self.snapshot = snapshot

    @property
    def holds(self) -> bool:
        """Whether nothing else ran between the last step and this one."""
        return (
            self._settled == self._executions - 1
            and not self._has_threads()
            and not _has_widgets()
        )

    def _has_threads(self) -> bool:
        """Tell whether threads run that were not there when nbckpt was loaded."""
        return any(
            thread not in self._threads and not thread.name.startswith("nbckpt")
            for thread in threading.enumerate()
        )


def _has_widgets() -> bool:
    """Tell whether widgets exist, whose callbacks run between cells."""
    comm = sys.modules.get("comm")
    return bool(comm is not None and comm.get_comm_manager().comms)
