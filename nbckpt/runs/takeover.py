"""Ending the holders that were replaced, before their heir acts on the world.

A fence keeps a replaced process from recording anything more; a call that it is in the
middle of goes on. On one host that process is interrupted and, after a grace, killed; on
another host nobody can, and its heir waits until the lease would have run out. A holder
that was in the middle of nothing is left alone: the fence refuses whatever it begins.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from nbckpt.errors import StopForHuman
from nbckpt.records import Displaced, Event
from nbckpt.runs import lines
from nbckpt.runs.history import readable
from nbckpt.runs.processes import is_alive, is_here, ticks

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.records import Holder, Lease
    from nbckpt.store import Store, Transaction

GRACE = 10.0
KILLED = 5.0
"""Seconds that a killed process has to go; one that waits for its disk may not."""


def note(transaction: Transaction, run_id: str, lease: Lease) -> None:
    """Record that a holder in the middle of something is replaced.

    Parameters
    ----------
    transaction : Transaction
        Raises the token: what the holder begins after it is refused.
    run_id : str
        The run.
    lease : Lease
        Of the holder that may still run. The note outlives an heir that is killed.
    """
    if _is_busy(transaction, run_id, lease.token):
        left = Displaced(lease.holder, lease.duration)
        transaction.put(f"displaced/{run_id}/{lease.token:010d}", left.to_json())


def _is_busy(transaction: Transaction, run_id: str, token: int) -> bool:
    """Tell whether a body or an effect was begun under a token and has not ended."""
    unfinished = [(f"attempt/{run_id}/", "running"), (f"effect/{run_id}/", "intent")]
    return any(
        _is_begun(transaction, key, token, state)
        for prefix, state in unfinished
        for key in transaction.keys(prefix)
    )


def _is_begun(transaction: Transaction, key: str, token: int, state: str) -> bool:
    """Tell whether a record is in a state under a token; a damaged one may be."""
    found, damaged = readable(transaction, key)
    found = found or {}
    return bool(damaged) or (found.get("token"), found.get("state")) == (token, state)


class Former:
    """The holders of a run that were replaced and may still run.

    Parameters
    ----------
    store : Store
        Where the run lies.
    run_id : str
        The run.
    guard : callable
        Of the holder now.
    """

    def __init__(
        self, store: Store, run_id: str, guard: Callable[[Transaction], None]
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._guard = guard

    def end(self, since: float, grace: float) -> None:
        """Return when none of them runs any more.

        Parameters
        ----------
        since : float
            Monotonic time at which the run was taken.
        grace : float
            Seconds between interrupt and kill.

        Raises
        ------
        StopForHuman
            If one may still run and can't be ended.
        Fenced
            If the run was taken over meanwhile.
        """
        for key, found in list(self._store.scan(f"displaced/{self._run_id}/")):
            # Who was replaced itself must not end anybody.
            self._store.transact(self._guard, durable=False)
            left = Displaced.from_json(found)
            how = self._end_one(left, since, grace)
            self._forget(key, left.holder, how)

    def _end_one(self, left: Displaced, since: float, grace: float) -> str:
        """End one, or wait for it; return how it ended."""
        holder = left.holder
        if not is_here(holder):
            pause = since + left.duration - time.monotonic()
            threading.Event().wait(max(pause, 0.0))
            return "its lease ran out"
        if holder.pid == os.getpid() or not is_alive(holder):
            return "it had ended"
        if holder.pid in {parent.pid for parent in psutil.Process().parents()}:
            raise _stuck(self._run_id, holder, "is a parent of this one")
        try:
            return _end_process(holder, grace) or "it had ended"
        except PermissionError:
            raise _stuck(self._run_id, holder, "is another user's") from None
        except TimeoutError:
            raise _stuck(self._run_id, holder, "does not end") from None

    def _forget(self, key: str, holder: Holder, how: str) -> None:
        """Take the note away, with a line that says how the holder ended."""
        reason = f"process {holder.pid} on {holder.host}: {how}"

        def change(transaction: Transaction) -> None:
            self._guard(transaction)
            transaction.delete(key)
            event = Event(time.time(), "former holder ended", reason=reason)
            lines.add_line(transaction, self._run_id, event)

        self._store.transact(change)


def _end_process(holder: Holder, grace: float) -> str:
    """Interrupt a process, and kill it after the grace; return which one ended it."""
    try:
        handle = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        return ""
    try:
        # The handle stays with its process: looked at after it was opened, it can't
        # come to mean another one that got the number.
        if not _is_exactly(holder):
            return ""
        for number, seconds in ((signal.SIGINT, grace), (signal.SIGKILL, KILLED)):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            if _ended(handle, seconds):
                return f"ended by {number.name}"
    finally:
        os.close(handle)
    raise TimeoutError


def _is_exactly(holder: Holder) -> bool:
    """Tell whether a process is the holder: number, start, boot and namespace."""
    if not is_here(holder):
        return False
    return holder.ticks > 0 and ticks(holder.pid) == holder.ticks


def _ended(handle: int, seconds: float) -> bool:
    """Wait until a process has ended; tell whether it has."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def _stuck(run_id: str, holder: Holder, why: str) -> StopForHuman:
    """Return the refusal to act beside a process that may still act."""
    return StopForHuman(
        f"run {run_id} was taken over from process {holder.pid} on {holder.host}, which "
        f"{why} and may still be in the middle of an effect",
        "End that process, then run the cell again",
    )
