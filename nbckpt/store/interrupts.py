"""Interrupts that wait: what must be known to have happened or not is never cut short."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def waiting() -> Iterator[None]:
    """Let an interrupt wait until the block is left.

    Yields
    ------
    None
        Only the main thread gets interrupts; in others this does nothing.

    Raises
    ------
    KeyboardInterrupt
        When the block is left, if one came in it (or what else the process does then).
    """
    main = threading.current_thread() is threading.main_thread()
    # None stands for a handler that Python did not set and could not put back.
    if not main or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    came: list[int] = []

    def note(number: int, _: Any) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
