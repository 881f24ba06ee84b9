"""What ``nbckpt run`` tells a URL of its run, while it runs and at its end."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from nbckpt.errors import NbckptError
from nbckpt.records import Event
from nbckpt.runs.history import Reader
from nbckpt.runs.lines import add_line
from nbckpt.runs.pings import Pings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.headless.progress import Say
    from nbckpt.store import Store

NOT_OURS = 4
"""Another holder has the run, and says itself how it ends."""


@contextmanager
def pinged(
    url: str, store: Store, run_id: str, warn: Say
) -> Iterator[Callable[[int, str], None]]:
    """Ping a URL as long as the run in the body lives, and at its end.

    Parameters
    ----------
    url : str
        From `check_url`; empty: nothing is pinged.
    store : Store
        Where the run lies; its history tells whether pings get through.
    run_id : str
        The run.
    warn : callable
        Takes the line about pings that fail.

    Yields
    ------
    callable
        To be told the exit code, and why it is not 0. An end of which it is not told is a
        failure.
    """
    if not url:
        yield lambda _code, _reason: None
        return
    end: list[tuple[int, str]] = []
    pings = Pings(url, _beat_of(store, run_id), _teller(store, run_id, warn))
    try:
        yield lambda code, reason: end.append((code, reason))
    finally:
        code, reason = end[-1] if end else (1, "nbckpt run itself was ended")
        if code == NOT_OURS:
            pings.end(None)
        else:
            pings.end("/fail" if code else "", f"run {run_id}: {reason or 'completed'}")


def _beat_of(store: Store, run_id: str) -> Callable[[], object]:
    """Return what reads the run's beat; a store that can't be read tells no life."""

    def beat() -> object:
        with suppress(NbckptError):
            lease = Reader(store).lease(run_id)
            return lease and (lease.token, lease.beat)
        return None

    return beat


def _teller(store: Store, run_id: str, warn: Say) -> Callable[[str], None]:
    """Return what records that pings begin to fail, or get through again."""

    def tell(why: str) -> None:
        kind = "pings fail" if why else "pings get through"
        warn(f"nbckpt: {kind}{': ' if why else ''}{why}; the run goes on")
        event = Event(time.time(), kind, reason=why)
        # Not under the fence: it is a word about the way out, not about the run.
        with suppress(NbckptError):
            store.transact(lambda tx: add_line(tx, run_id, event), durable=False)

    return tell
