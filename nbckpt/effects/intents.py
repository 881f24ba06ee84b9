"""The record of one effect: what is written of it, and in which order.

The intent is durable before the call, the outcome after it. Killed between the two, what
is left is an intent: whether the effect happened is not known, and nobody assumes either.
"""

from __future__ import annotations

import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet

from nbckpt import current
from nbckpt.answers import resolving
from nbckpt.credentials import masked
from nbckpt.errors import BadStep, Fenced, NbckptError, StopForHuman
from nbckpt.keys import effect_key
from nbckpt.records import EffectRecord, EffectState, Event
from nbckpt.runs import opening
from nbckpt.runs.history import Reader, revived
from nbckpt.state import values

if TYPE_CHECKING:
    from nbckpt.current import Place
    from nbckpt.session import Session
    from nbckpt.store import Transaction

ERROR_LETTERS = 500
UNNAMED = re.compile(rf"{opening.UNNAMED}-\d+")
SHARED = (
    "nbckpt: {where} counts as done by run {run_id}, which all kernels of this folder "
    "share that don't know their notebook. If another program made it, name a run for "
    "each: %nbckpt start NAME, or NBCKPT_RUN_ID=NAME\n"
)
_told: WeakSet[Session] = WeakSet()
"""Sessions in which it was told that kernels without a notebook share their run."""


def key_here(place: Place, name: str) -> str:
    """Return the key of an effect of the body that runs.

    Parameters
    ----------
    place : Place
        The body.
    name : str
        The effect's name.

    Returns
    -------
    str
        Also of the item that the calling thread works on.

    Raises
    ------
    BadStep
        If the name is no text.
    """
    if not isinstance(name, str):
        raise _unnamed(place, f"has the name {name!r}, which is no text")
    attempt = place.attempt
    return effect_key(attempt.run_id, attempt.step, masked(name), current.item.get())


def _unnamed(place: Place, what: str) -> BadStep:
    """Return the error for an effect whose name tells nothing."""
    return BadStep(
        f"an effect of step {place.step.name} {what}",
        'Name it by what it does and to what, for example f"charge-{order.id}"',
    )


class Intent:
    """Reads and writes the record of one effect.

    Parameters
    ----------
    place : Place
        The body that the effect belongs to.
    name : str
        The effect's name.
    kind : {"call", "transaction"}
        What it is made with.

    Attributes
    ----------
    key : str
        Its idempotency key.
    record : EffectRecord or None
        As it was read last.
    """

    def __init__(
        self, place: Place, name: str, kind: Literal["call", "transaction"]
    ) -> None:
        self.place = place
        if not name:
            raise _unnamed(place, "has no name")
        self.key = key_here(place, name)
        self.name = masked(name)
        self.kind = kind
        self.where = f"effect {self.name} of step {place.step.name}"
        self._session = place.session
        attempt = place.attempt
        self._path = f"effect/{attempt.run_id}/{attempt.step}/{self.key}"
        self._bytes = f"outcome/{attempt.run_id}/{attempt.step}/{self.key}"
        self.record: EffectRecord | None = None
        self.read()

    def read(self) -> EffectRecord | None:
        """Read the record, which a person's answer may have changed.

        Raises
        ------
        BadStep
            If it is of another kind.
        StoreDamaged
            If it can't be believed: nothing may be assumed then.
        """
        found = self._session.journal.store.get(self._path)
        self.record = None if found is None else revived(EffectRecord, found)
        if self.record is not None and self.record.kind != self.kind:
            raise BadStep(
                f"{self.where} was made as a {self.record.kind} before, not as a "
                f"{self.kind}",
                "Give one of the two another name",
            )
        return self.record

    def write_intent(self, request: dict[str, str]) -> bool:
        """Record that the effect is about to happen; on disk when this returns.

        Parameters
        ----------
        request : dict
            Fingerprint of the request.

        Returns
        -------
        bool
            False if the record is not any more what was read: nothing was written.

        Raises
        ------
        Fenced
            If the run was taken over: the effect must not happen here.
        """
        now, before = time.time(), self.record
        unsettled = before is not None and before.state is EffectState.INTENT
        # The receiver's time to remember the key runs from the first call that may
        # have come through.
        first = before.first_at if before is not None and unsettled else now
        new = replace(self._blank(now), first_at=first, request=request)
        event = self._event("intent", "")

        def change(transaction: Transaction) -> bool:
            found = transaction.get(self._path)
            if found != (None if before is None else before.to_json()):
                return False
            self._put(transaction, new, event)
            return True

        written: bool = self._session.journal.write(change)
        if written:
            self.record = new
        return written

    def write_done(
        self, outcome: Any, how: str, request: dict[str, str] | None = None
    ) -> None:
        """Record that the effect happened, with its outcome.

        Parameters
        ----------
        outcome : object
            What the call returned, or what was found.
        how : {"performed", "found", "row"}
            How it is known.
        request : dict, optional
            Fingerprint of the request, if no intent holds it.
        """
        now = time.time()
        before = self.record or self._blank(now)
        record = replace(
            before, state=EffectState.DONE, settled_at=now, how=how, error="",
            request=request or before.request, answer=None,
        )  # fmt: skip
        data: bytes | None = None
        try:
            value, data = values.keep("it", outcome, self._session.namespace)
            record = replace(record, value=value, coded=data is not None)
        except Exception as error:  # it happened, whatever its outcome is
            why = error.what if isinstance(error, NbckptError) else _text(error)
            record = replace(record, unkept=masked(why))

        def change(transaction: Transaction) -> None:
            if data is not None:
                transaction.put_bytes(self._bytes, data)
            self._put(transaction, record, self._event("done", how))

        self._session.journal.write(change)
        self.record = record

    def write_refused(self, error: BaseException) -> None:
        """Record that the effect is known not to have happened."""
        record = replace(
            self.record or self._blank(time.time()),
            state=EffectState.FAILED, settled_at=time.time(), error=_text(error),
        )  # fmt: skip
        event = self._event("refused", record.error)
        self._session.journal.write(lambda tx: self._put(tx, record, event))
        self.record = record

    def note_error(self, error: BaseException) -> None:
        """Note what the call raised, for the person who is asked; best effort."""
        if self.record is None:
            return
        record = replace(self.record, error=_text(error))
        with suppress(NbckptError, Fenced):
            self._session.journal.write(
                lambda tx: tx.put(self._path, record.to_json()), durable=False
            )
            self.record = record

    def adopt(self, request: dict[str, str]) -> None:
        """Take this request for the one of an effect that a person said is done."""
        if self.record is not None:
            record = replace(self.record, request=request)
            self._session.journal.write(lambda tx: tx.put(self._path, record.to_json()))
            self.record = record

    def ask(self) -> None:
        """Note that this attempt asks for an effect that was done before."""
        before, attempt = self.record, self.place.attempt.attempt
        if before is None or max(before.attempt, before.asked) == attempt:
            return
        record = replace(before, asked=attempt)

        def change(transaction: Transaction) -> None:
            if transaction.get(self._path) == before.to_json():
                transaction.put(self._path, record.to_json())

        self._session.journal.write(change, durable=False)
        self.record = record

    def take_over(self, former: EffectRecord) -> None:
        """Record that this effect is the one that another step made, as a person said.

        Parameters
        ----------
        former : EffectRecord
            What that step left.
        """
        attempt = self.place.attempt
        record = replace(
            former, step=attempt.step, key=self.key, attempt=attempt.attempt,
            token=attempt.token,
        )  # fmt: skip
        there = f"outcome/{former.run_id}/{former.step}/{former.key}"

        def change(transaction: Transaction) -> None:
            data = transaction.get_bytes(there) if former.coded else None
            if data is not None:
                transaction.put_bytes(self._bytes, data)
            self._put(transaction, record, self._event("done", f"as {former.key}"))

        self._session.journal.write(change)
        self.record = record

    def tell_shared(self) -> None:
        """Tell, once in a kernel, whose effects count here if no notebook is known."""
        if self._is_shared() and self._session not in _told:
            _told.add(self._session)
            run_id = self.place.attempt.run_id
            sys.stderr.write(SHARED.format(where=self.where, run_id=run_id))

    def _is_shared(self) -> bool:
        """Tell whether an earlier kernel made it, in a run that is named after nothing."""
        attempt, record = self.place.attempt, self.record
        if record is None or record.token == attempt.token:
            return False
        is_known = self._session.identity.notebook is not None
        return not is_known and UNNAMED.fullmatch(attempt.run_id) is not None

    def resolving(self, *said: str) -> str:
        """Return the command that settles the effect.

        Parameters
        ----------
        *said : str
            What may be said, if not everything that fits its state.
        """
        if self.record is not None and self.record.state is EffectState.DONE:
            said = said or ("--done [VALUE]|--redo",)
        store = current.store_named(self._session)
        return resolving(self.place.attempt.run_id, self.key, store, *said)

    def outcome(self) -> Any:
        """Return the recorded outcome.

        Raises
        ------
        StopForHuman
            If it could not be kept.
        """
        record = self.record
        if record is None:
            raise AssertionError(self.where)
        if record.unkept:
            raise StopForHuman(
                f"{self.where} is done, but its outcome was not kept ({record.unkept})",
                "Return plain data from perform, or tell it: "
                f"{self.resolving('--done VALUE')}",
            )
        if not record.coded:
            return record.value
        data = self._session.journal.store.get_bytes(self._bytes)
        if data is None:
            raise StopForHuman(
                f"{self.where} is done, but its outcome is missing in the store",
                f"Tell it: {self.resolving('--done VALUE')}",
            )
        return values.revive(None, data, self._session.namespace)

    def _blank(self, now: float) -> EffectRecord:
        """Return the record of an effect that is about to happen."""
        attempt = self.place.attempt
        return EffectRecord(
            run_id=attempt.run_id,
            step=attempt.step,
            name=self.name,
            item=current.item.get(),
            key=self.key,
            state=EffectState.INTENT,
            at=now,
            first_at=now,
            attempt=attempt.attempt,
            token=attempt.token,
            kind=self.kind,
        )

    def _event(self, kind: str, reason: str) -> Event:
        """Return a line of the history."""
        attempt = self.place.attempt
        detail = {"effect": self.name, "key": self.key, "attempt": attempt.attempt}
        if item := current.item.get():
            detail["item"] = item
        return Event(
            time.time(), kind, attempt.step, reason, 0.0, attempt.token, detail
        )

    def _put(
        self, transaction: Transaction, record: EffectRecord, event: Event
    ) -> None:
        """Write the record and the line that tells of it."""
        transaction.put(self._path, record.to_json())
        self._session.journal.add_line(transaction, event)


def _text(error: BaseException) -> str:
    """Return an error in short, without credentials."""
    parts = (type(error).__name__, masked(str(error)))
    return ": ".join(part for part in parts if part)[:ERROR_LETTERS]


def require_settled(reader: Reader, run_id: str, step: str, store: str = "") -> None:
    """Raise if it is not known of an effect of a step whether it happened.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run_id, step : str
        A step that is about to complete.
    store : str, optional
        Folder of the store, where a command must name it.

    Raises
    ------
    StopForHuman
        With the names of the effects.
    """
    effects = reader.effects(run_id, step)
    left = [effect for effect in effects if effect.state is EffectState.INTENT]
    if left:
        names = ", ".join(effect.name for effect in left[:5])
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""  # noqa: PLR2004
        raise StopForHuman(
            f"step {step} can't complete: of {names}{more} it is not known whether it "
            "happened",
            "Run the cell again so that it settles them, or say it: "
            f"{resolving(run_id, left[0].key, store)}",
        )
