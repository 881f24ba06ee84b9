"""The one door through which messages come in, from whatever thread."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from nbckpt.outputs.patches import is_muted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nbckpt.outputs.folding import Fold
    from nbckpt.outputs.tape import Recording


class Intake:
    """Hands messages to a fold, one at a time, and never fails its callers.

    Parameters
    ----------
    fold : Fold
        Used by nobody else.

    Notes
    -----
    A forked child does not record, as it does not share memory with its parent.
    """

    def __init__(self, fold: Fold) -> None:
        self._fold: Fold | None = fold
        self._waiting: deque[tuple[str, Mapping[str, Any]]] = deque()
        # Reentrant, as a finaliser may send a message while a message is folded.
        self._lock = threading.RLock()
        self._folding = False
        self._failure: BaseException | None = None
        self._process = os.getpid()

    def take(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take a message; a failure is kept for `finish`.

        Parameters
        ----------
        kind : str
            The message type.
        content : mapping
            The message content; not kept.
        """
        if self._fold is None or is_muted() or os.getpid() != self._process:
            return
        self._waiting.append((kind, content))
        with self._lock:
            if not self._folding:
                self._fold_waiting()

    def finish(self) -> Recording:
        """Take nothing more and return what was recorded.

        Returns
        -------
        Recording
            The folded messages.

        Raises
        ------
        OSError
            If they could not be written, for example on a full disk.
        Exception
            Whatever else hindered the recording.
        """
        with self._lock:
            fold, self._fold = self._fold, None
            if self._failure is None and fold is not None:
                return fold.finish()
        raise self._failure or ValueError("the recording was dropped")

    def drop(self) -> None:
        """Take nothing more and forget everything."""
        with self._lock:
            fold, self._fold = self._fold, None
            self._waiting.clear()
        if fold is not None:
            fold.close()

    def _fold_waiting(self) -> None:
        """Fold what is waiting; after a failure, forget everything."""
        self._folding = True
        try:
            while self._waiting and self._fold is not None:
                self._fold.take(*self._waiting.popleft())
        except BaseException as failure:  # an interrupt leaves the fold in the middle
            self._failure = failure
            self.drop()
            if not isinstance(failure, Exception):
                raise
        finally:
            self._folding = False
