"""One holder for a run: lease, fencing token, heartbeat.

The token only grows and is checked inside the transaction of every write, so a process
that was stopped, replaced and continued can write nothing more. Limit: a fence protects
records, never effects outside. On one host the system tells whether a holder lives; on
another host the observer's own clock does.

Source: C. Gray and D. Cheriton, "Leases" (SOSP 1989), for leases; the fencing token is
M. Kleppmann's, "How to do distributed locking" (2016).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from nbckpt.errors import Fenced, NbckptError, RunHeld
from nbckpt.records import Event, Lease, Overlap
from nbckpt.runs import lines, takeover
from nbckpt.runs.lines import archived, require_open
from nbckpt.runs.moments import local
from nbckpt.runs.processes import is_alive, is_here, this_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.store import Store, Transaction

DURATION = 30.0
FINISHED = "finished"
"""Why the lease of an archived run was ended."""
BEATS = 3
"""Beats within one duration: one that is late is no reason to take over."""
Sign = tuple[tuple[int, int], float]
"""Token and beat of a holder elsewhere, and since when an observer has seen them."""


def describe(lease: Lease) -> str:
    """Return who holds a run, for messages.

    Parameters
    ----------
    lease : Lease
        The run's lease.

    Returns
    -------
    str
        Process, host and since when.
    """
    holder, since = lease.holder, local(lease.taken_at)
    return f"process {holder.pid} on {holder.host} since {since}"


def is_free(lease: Lease | None, seen: dict[str, Sign], run_id: str) -> bool:
    """Tell whether a run may be taken.

    Parameters
    ----------
    lease : Lease or None
        As it stands.
    seen : dict
        What this observer saw before, by run; brought up to date.
    run_id : str
        The run.

    Returns
    -------
    bool
        True if nobody holds it, or the holder is gone.
    """
    if lease is None or lease.released:
        return True
    if is_here(lease.holder):
        return not is_alive(lease.holder)
    # Each holder counts its beats from 0: one that is new has a token of its own.
    beat, now = (lease.token, lease.beat), time.monotonic()
    before, since = seen.get(run_id, (beat, now))
    seen[run_id] = beat, since if before == beat else now
    return now - seen[run_id][1] > lease.duration


class Hold:
    """A held run.

    Parameters
    ----------
    store : Store
        Where the run lies.
    run_id : str
        The run.
    lease : Lease
        As it was taken.
    """

    def __init__(self, store: Store, run_id: str, lease: Lease) -> None:
        self._store = store
        self.run_id = run_id
        self.lease = lease
        self._since = time.monotonic()
        self._is_alone = False
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._beat_on, name="nbckpt-heartbeat", daemon=True
        )
        self._thread.start()

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.lease.token

    def guard(self, transaction: Transaction) -> None:
        """Refuse to go on if somebody else took the run; called first in each write.

        Parameters
        ----------
        transaction : Transaction
            The transaction of the write.

        Raises
        ------
        Fenced
            If the lease is not this process's any more.
        """
        lease = _lease(transaction, self.run_id)
        if lease is None or lease.token != self.token or lease.released:
            raise _fenced(self.run_id, lease)

    def alone(self, grace: float = takeover.GRACE) -> None:
        """Make sure that no holder before this one acts; called before an effect.

        Parameters
        ----------
        grace : float, optional
            Seconds that an interrupted process has to end by itself.

        Raises
        ------
        StopForHuman
            If a process that was replaced may still run and can't be ended.
        Fenced
            If this holder was replaced itself.
        """
        with self._turn:
            if not self._is_alone:
                former = takeover.Former(self._store, self.run_id, self.guard)
                former.end(self._since, grace)
                self._is_alone = True

    def release(self) -> None:
        """Give the run back; safe to call twice."""
        if self._stop.is_set():
            return
        self._stop.set()

        def change(transaction: Transaction) -> None:
            self.guard(transaction)
            lease = Lease.from_json(transaction.get(f"lease/{self.run_id}"))
            transaction.put(
                f"lease/{self.run_id}", replace(lease, released=True).to_json()
            )

        try:
            self._store.transact(change)
        except (Fenced, NbckptError):
            return

    def _beat_on(self) -> None:
        """Show that this process lives, until told to stop or fenced out."""
        while not self._stop.wait(max(self.lease.duration / BEATS, 1.0)):
            try:
                self._store.transact(self._beat, durable=False)
            except Fenced:
                return
            except NbckptError:
                # A late beat is no reason to end the work; the next one may pass.
                continue

    def _beat(self, transaction: Transaction) -> None:
        """Write one beat."""
        self.guard(transaction)
        lease = Lease.from_json(transaction.get(f"lease/{self.run_id}"))
        beaten = replace(lease, beat=lease.beat + 1, beat_at=time.time())
        transaction.put(f"lease/{self.run_id}", beaten.to_json())


class Leases:
    """Takes runs of one store.

    Parameters
    ----------
    store : Store
        Where the runs lie.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._seen: dict[str, Sign] = {}
        self._refused: set[tuple[str, int]] = set()

    def hold(
        self,
        run_id: str,
        overlap: Overlap = "skip",
        on_taken: Callable[[Transaction, Lease | None], None] | None = None,
    ) -> Hold:
        """Take a run.

        Parameters
        ----------
        run_id : str
            The run.
        overlap : {"skip", "replace", "concurrent"}, optional
            What to do if another process holds it: refuse, or take it over. A
            concurrent run has a run id of its own and is never shared.
        on_taken : callable, optional
            Called in the same transaction with the lease before; may write.

        Returns
        -------
        Hold
            Beats until it is released.

        Raises
        ------
        RunHeld
            If a living process holds the run and is not to be replaced.
        StopForHuman
            If the run is archived.
        """

        def change(transaction: Transaction) -> Lease:
            require_open(transaction, run_id)
            before = _lease(transaction, run_id)
            if before is not None and not is_free(before, self._seen, run_id):
                _displace(transaction, run_id, before, overlap)
            lease = _next_lease(before, overlap)
            transaction.put(f"lease/{run_id}", lease.to_json())
            if on_taken is not None:
                on_taken(transaction, before)
            return lease

        try:
            return Hold(self.store, run_id, self.store.transact(change))
        except _Refused as refused:
            raise self._held(run_id, refused.lease) from None

    def _held(self, run_id: str, lease: Lease) -> RunHeld:
        """Return the refusal that names the holder; the history has it once."""
        if (run_id, lease.token) not in self._refused:
            self._refused.add((run_id, lease.token))
            note_refused(self.store, run_id, lease)
        return RunHeld(
            f"run {run_id} is held by {describe(lease)}",
            "Close that kernel, or take the run over: %nbckpt start --overlap replace",
        )


def _lease(transaction: Transaction, run_id: str) -> Lease | None:
    """Return the lease of a run as it stands."""
    found = transaction.get(f"lease/{run_id}")
    return Lease.from_json(found) if found else None


def _fenced(run_id: str, lease: Lease | None) -> Fenced:
    """Return the refusal to write to a run that this process holds no more."""
    why = lease.why if lease is not None else ""
    if why == FINISHED:
        refusal = archived(run_id)
        return Fenced(refusal.what, refusal.remedy)
    if why.startswith("cancelled"):
        return Fenced(
            f"run {run_id} was {why}",
            "Nothing more of this kernel is recorded. To begin a new run: --fresh",
        )
    taker = describe(lease) if lease else "nobody; its lease is gone"
    return Fenced(
        f"run {run_id} was taken over by {taker}",
        "Nothing more of this kernel is recorded. Restart it to take the run back",
    )


def _next_lease(before: Lease | None, why: str) -> Lease:
    """Return the lease of this process, under the next token."""
    return Lease(
        token=(before.token if before else 0) + 1,
        holder=this_process(),
        beat_at=time.time(),
        taken_at=time.time(),
        duration=DURATION,
        why=why,
        before_at=before.beat_at if before else 0.0,
    )


def _displace(
    transaction: Transaction, run_id: str, lease: Lease, overlap: Overlap
) -> None:
    """Note that a living holder is replaced, or refuse."""
    if overlap != "replace":
        raise _Refused(lease)
    takeover.note(transaction, run_id, lease)


class _Refused(Exception):
    """A living process holds the run; nothing was written."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease)
        self.lease = lease


def note_refused(store: Store, run_id: str, lease: Lease) -> None:
    """Add to a run's history that a start was skipped since another process holds it.

    Parameters
    ----------
    store : Store
        Where the run lies.
    run_id : str
        The run.
    lease : Lease
        Of its holder, which goes on undisturbed.

    Notes
    -----
    Not under the fence: the line is the refused one's word. That it can't be written
    (a full disk) changes nothing of the refusal.
    """
    me = this_process()
    event = Event(
        time.time(),
        "skipped start",
        reason=f"process {me.pid} on {me.host}: the run is held by {describe(lease)}",
        token=lease.token,
        detail={"pid": me.pid, "host": me.host, "holder": lease.holder.pid},
    )
    with suppress(NbckptError):
        store.transact(lambda tx: lines.add_line(tx, run_id, event), durable=False)


def is_held(lease: Lease | None) -> bool:
    """Tell whether a living process of this system holds a run.

    Parameters
    ----------
    lease : Lease or None
        The run's lease.

    Returns
    -------
    bool
        False for a holder on another host: nobody here can tell.
    """
    return standing(lease) in {"alive", "late"}


def standing(lease: Lease | None) -> str:
    """Return whether a run's holder lives, in one word.

    Parameters
    ----------
    lease : Lease or None
        The run's lease.

    Returns
    -------
    str
        ``free``, ``alive``, ``late``, ``dead`` or ``unknown`` (another host; its beats
        tell).
    """
    if lease is None or lease.released:
        return "free"
    if not is_here(lease.holder):
        return "unknown"
    if not is_alive(lease.holder):
        return "dead"
    return "late" if time.time() - lease.beat_at > lease.duration else "alive"
