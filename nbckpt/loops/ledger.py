"""How far a loop over items is: which are done, which failed, what comes next."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbckpt.errors import Fenced, NbckptError
from nbckpt.keys import digest
from nbckpt.loops.looprows import (
    Batch,
    Done,
    Noticed,
    Row,
    delete_loops,
    key_of,
    next_input,
    row_key,
    told,
)
from nbckpt.records import ItemError, LoopRecord
from nbckpt.runs.history import readable, revived

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.current import Place
    from nbckpt.loops.savepoints import Saved

GROUP_SECONDS = 0.02
"""Items that end within this time are written together."""
MOST_ERRORS = 200


class Ledger:
    """The progress of one loop; safe to use from several threads.

    Parameters
    ----------
    place : Place
        The body that the loop stands in.
    loop, lineage : str
        The loop's name in the step, and what attempts that go on share.
    kept : tuple of str
        Names that are checkpointed with the items.
    every : int or None
        Write after so many items, whatever the time.

    Attributes
    ----------
    record : LoopRecord
        As it was written last, or will be.
    done : dict
        Key → what is known of an item that is done.
    earlier : LoopRecord or None
        What an attempt of the same lineage left.
    """

    def __init__(
        self,
        place: Place,
        loop: str,
        lineage: str,
        kept: tuple[str, ...],
        every: int | None,
    ) -> None:
        self.place = place
        self.done: dict[str, Done] = {}
        self.every = every
        self.earlier: LoopRecord | None = None
        session = place.session
        self._journal = session.journal
        self._lock = threading.RLock()
        self._errors: dict[str, ItemError] = {}
        self._row = Row(0)
        self._dirty: dict[int, Row] = {}
        self._results: dict[str, bytes] = {}
        self.pending = 0
        self._written_at = 0.0
        self._timer: threading.Timer | None = None
        self._synced, self._is_told = -1, True
        self._saved: Saved | None = None
        self._next: tuple[str, Any] | None = None
        self._inside: dict[str, str] = {}
        self.noticed = Noticed(session.watch.touched, session.paths.locate)
        attempt = place.attempt
        self.record = LoopRecord(
            run_id=attempt.run_id,
            step=attempt.step,
            loop=loop,
            lineage=lineage,
            code=place.body.code,
            attempt=attempt.attempt,
            kept=kept,
            started_at=time.time(),
        )
        self._key = key_of("loop", self.record)
        self._open()

    def _open(self) -> None:
        """Take over what an attempt of the same lineage left, or begin anew."""
        found, damaged = readable(self.place.session.store, self._key)
        before = revived(LoopRecord, found) if found else None
        if before is not None and before.lineage == self.record.lineage:
            self._take_over(before)
        elif before is not None or damaged:
            self._drop()

    def _take_over(self, before: LoopRecord) -> None:
        """Go on where an attempt of the same lineage ended."""
        store = self.place.session.store
        touched = self.place.session.watch.touched
        for number in range(before.rows):
            row, _ = readable(store, row_key(self.record, number))
            if row is None:
                # Its items run again: what is not certain is not passed over.
                continue
            for key, value, files, result in row["items"]:
                self.done[key] = Done(value, files, result)
                touched.written.update(files)
            for name, before_it in row["read"].items():
                touched.read.setdefault(name, before_it)
        self._row = Row(before.rows)
        self._errors = {error.item: error for error in before.errors}
        self.record = replace(
            self.record,
            rows=before.rows,
            done=len(self.done),
            contents=before.contents,
            started_at=before.started_at,
        )
        self.earlier = before

    def begin_anew(self) -> None:
        """Take nothing of an earlier attempt for done."""
        self._drop()
        self.done.clear()
        self._errors.clear()
        self._row = Row(0)
        self.earlier = None
        self.record = replace(
            self.record, rows=0, done=0, failed=0, errors=(), contents=None
        )

    def _drop(self) -> None:
        """Delete what is left of a loop, and of the loops inside it."""
        freed = self._journal.write(
            lambda transaction: delete_loops(transaction, self._key), durable=False
        )
        self.place.session.checkpoints.drop(freed)

    def is_done(self, key: str, value: str) -> bool:
        """Tell whether an item is done: same value, and its files are there.

        Parameters
        ----------
        key, value : str
            The item's key, and the digest of its value.

        Returns
        -------
        bool
            Whether it may be passed over.
        """
        found = self.done.get(key)
        if found is None or found.digest != value:
            return False
        return found.is_kept(self.place.session.paths.locate)

    def begin(self, key: str, item: Any) -> None:
        """Take note of the item that is worked on next.

        Parameters
        ----------
        key : str
            Its key.
        item : object
            The item, whose short form is shown to people.
        """
        with self._lock:
            # Where one item had an effect, the next may: its input is written before it.
            is_lasting, self._synced = self.has_lasting, self._journal.synced
            self.noticed.begin()
            self._next, self._is_told = (key, item), False
            if self._saved is not None or self.is_due or is_lasting:
                self.write()
            elif self._timer is None and (self.record.kept or self.every is None):
                self._start_timer()

    @property
    def is_due(self) -> bool:
        """Whether what is pending is to be written now."""
        if self.every is not None:
            return self.pending >= self.every
        return time.monotonic() - self._written_at >= GROUP_SECONDS

    @property
    def is_ready(self) -> bool:
        """Whether the items that ended can be written, and are due."""
        return self._saved is not None or (not self.record.kept and self.is_due)

    @property
    def has_lasting(self) -> bool:
        """Whether something was made durable since the item began."""
        return self._journal.synced != self._synced

    def end_item(
        self, key: str, value: str, result: Any = None, data: bytes | None = None
    ) -> None:
        """Take note that an item is done; written with the group, or at once.

        Parameters
        ----------
        key, value : str
            The item's key, and the digest of its value.
        result : object, optional
            What is kept of it, as JSON values.
        data : bytes, optional
            What is kept of it, if JSON can't hold it.
        """
        with self._lock:
            files = self.noticed.files()
            if self._row.is_full:
                self._row = Row(self._row.number + 1)
            self.done[key] = Done(value, files, result)
            self._row.add(key, self.done[key])
            self._row.read |= self.noticed.reads()
            self._dirty[self._row.number] = self._row
            if data is not None:
                self._results[key] = data
            self._errors.pop(key, None)
            self.pending += 1

    def keep(self, saved: Saved) -> None:
        """Take what the kept names hold after the item that ended last.

        Parameters
        ----------
        saved : Saved
            Written with the items that ended, in one transaction.
        """
        with self._lock:
            self._saved = saved

    def fail_item(self, key: str, error: BaseException) -> None:
        """Take note that an item failed.

        Parameters
        ----------
        key : str
            The item.
        error : BaseException
            What it raised.
        """
        with self._lock:
            self._errors.pop(key, None)
            self._errors[key] = ItemError(key, told(error), self.record.attempt)
            self.pending += 1

    @property
    def errors(self) -> tuple[ItemError, ...]:
        """Items that failed and were not done since."""
        return tuple(self._errors.values())

    def write(self, *, durable: bool = False) -> None:
        """Write what is pending; of a loop that keeps names, only what they stand for.

        Parameters
        ----------
        durable : bool, optional
            Whether it must survive a loss of power.

        Raises
        ------
        Fenced
            If the run was taken over.
        """
        with self._lock:
            self._stop_timer()
            is_whole = self._saved is not None or not self.record.kept
            inside = [p for key, p in self._inside.items() if key in self.done]
            self.record = self._current(is_whole=is_whole)
            rows = dict(self._dirty) if is_whole else {}
            batch = Batch(rows, dict(self._results), tuple(inside), self._saved)
            freed = self._commit(batch, durable=durable)
            # Interrupted before this line, the same is written once more.
            self._dirty = {} if is_whole else self._dirty
            self._results = {}
            self._inside = {k: p for k, p in self._inside.items() if p not in inside}
            self._saved, self._is_told = None, True
            self.pending = 0 if is_whole else self.pending
            self._written_at = time.monotonic()
        self.place.session.checkpoints.drop(freed)

    def _commit(self, batch: Batch, *, durable: bool) -> list[str]:
        """Write a batch; return the packs that are free then."""
        packs = [batch.saved.pack.name] if batch.saved is not None else []
        try:
            with self.place.session.checkpoints.committing(packs):
                found: list[str] = self._journal.write(
                    lambda transaction: batch.write(transaction, self.record),
                    durable=durable,
                )
        except Exception:
            self._saved = None
            raise
        return found

    def _current(self, *, is_whole: bool) -> LoopRecord:
        """Return the record as it is to be written."""
        record = replace(
            self.record,
            updated_at=time.time(),
            next_input=next_input(self._next),
            failed=len(self._errors),
            errors=self.errors[-MOST_ERRORS:],
        )
        if not is_whole:
            return record
        return replace(
            record,
            rows=self._row.number + bool(self._row.items),
            done=len(self.done),
            contents=self._saved.contents if self._saved else record.contents,
        )

    def result_key(self, key: str) -> str:
        """Return where the bytes of an item's result lie."""
        return f"{key_of('result', self.record)}/{key}"

    def inside(self, key: str) -> str:
        """Return what the names of loops inside an item begin with.

        Parameters
        ----------
        key : str
            The item; once it is done, the loops inside it are deleted.

        Returns
        -------
        str
            The same in each attempt.
        """
        with self._lock:  # the items of a map ask from threads of their own
            part = self._inside.setdefault(key, digest(key)[:16])
        return f"{self.record.loop}:{part}:"

    def flush(self, *, durable: bool = True) -> None:
        """Write what is pending, if anything is."""
        with self._lock:
            if self.pending or self._dirty or not self._is_told:
                self.write(durable=durable)
            self._stop_timer()

    def end(self, *, durable: bool = True) -> None:
        """Take note that the loop came to its end."""
        with self._lock:
            self._next = None
            self.record = replace(self.record, ended=True)
            self.write(durable=durable)

    def expect(self, total: int | None, keys: Iterable[str] | None = None) -> None:
        """Take note of the items.

        Parameters
        ----------
        total : int or None
            Their number; None if it is not known.
        keys : iterable of str, optional
            All of their keys: what else is done counts no more.
        """
        self.record = replace(self.record, total=total)
        if keys is not None:
            there = set(keys)
            self.done = {key: done for key, done in self.done.items() if key in there}

    def _start_timer(self) -> None:
        """Write the group soon, even if the next item takes long."""
        self._timer = threading.Timer(GROUP_SECONDS, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        """Let no timer write any more."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _ring(self) -> None:
        """Write the group from the timer's thread."""
        try:
            with self._lock:
                if self._timer is not None and self._saved is None:
                    self.flush(durable=False)
        except (Fenced, NbckptError):
            # It stays pending: whoever writes next meets the cause and tells of it.
            return
