"""Faults planted in nbckpt to see that the tests notice them: negative controls."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nbckpt import current
from nbckpt.blobs.packfile import PackWriter
from nbckpt.loops import maps, pools
from nbckpt.loops.ledger import Ledger
from nbckpt.people import settling
from nbckpt.runs.journal import Journal
from nbckpt.runs.leases import Hold
from tests.crash.crashpoints import plant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbckpt.loops.looprows import Batch
    from nbckpt.records import Question
    from nbckpt.store import Transaction


def no_fence() -> None:
    """Let a process that was taken over go on writing."""

    def guard(self: Hold, transaction: Any) -> None:
        del self, transaction

    plant(Hold, guard=guard)


def record_first() -> None:
    """Write packs only when the next step is recorded: a record names missing bytes."""
    late: list[tuple[Path, bytes]] = []
    complete = Journal.complete

    def flush(self: PackWriter) -> None:
        self._handle = None
        late.append((self.path, bytes(self._stage)))
        self._written += len(self._stage)
        self._stage = bytearray()

    def completed(self: Journal, *args: Any, **options: Any) -> Any:
        mine = list(late)
        done = complete(self, *args, **options)
        for path, data in mine:
            with path.open("ab") as file:
                file.write(data)
            late.remove((path, data))
        return done

    plant(PackWriter, _flush=flush)
    plant(Journal, complete=completed)


def advance_first() -> None:
    """Take an answer that was given in advance apart from recording its question."""
    whole = settling.question

    def apart(wanted: Question) -> Callable[[Transaction], Question]:
        def take(transaction: Transaction) -> Any:
            given = transaction.get(wanted.advance_key)
            transaction.delete(wanted.advance_key)
            return given

        given = current.session().journal.write(take)

        def change(transaction: Transaction) -> Question:
            if given is not None:
                transaction.put(wanted.advance_key, given)
            return whole(wanted)(transaction)

        return change

    plant(settling, question=apart)


def items_first() -> None:
    """Write that items are done apart from what the kept names hold, and before it."""
    commit, contents = Ledger._commit, [None]

    def apart(self: Ledger, batch: Batch, *, durable: bool) -> list[str]:
        whole = self.record
        if batch.saved is not None:
            self.record = replace(whole, contents=contents[0])
            commit(self, replace(batch, saved=None), durable=durable)
        self.record = whole
        contents[0] = whole.contents
        return commit(self, batch, durable=durable)

    plant(Ledger, _commit=apart)


def done_early() -> None:
    """Record that items are done when they are handed to an executor."""
    at_once = maps._Map._at_once

    def early(self: Any, executor: Any, pairs: list[tuple[str, str, Any]]) -> None:
        ledger, before = self._loop.ledger, dict(self._loop.ledger.done)
        for key, value, _ in pairs:
            ledger.end_item(key, value, [None])
        ledger.write()
        ledger.done = before
        at_once(self, executor, pairs)

    plant(maps._Map, _at_once=early)


def forget_suspects() -> None:
    """Take what was in a pool that broke for lost."""
    begin = pools.Pool.__init__

    class Forgetful(deque[str]):
        """Takes nothing."""

        def extend(self, keys: Any) -> None:
            del keys

    def begun(self: pools.Pool, *given: Any) -> None:
        begin(self, *given)
        self._suspects = Forgetful()

    plant(pools.Pool, __init__=begun)


PLANTS: dict[str, Callable[[], None]] = {
    "advance_first": advance_first,
    "done_early": done_early,
    "forget_suspects": forget_suspects,
    "items_first": items_first,
    "no_fence": no_fence,
    "record_first": record_first,
}
