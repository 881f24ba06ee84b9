"""Faults planted in nbckpt to see that the tests notice them: negative controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt.blobs import PackWriter
from nbckpt.journal import Journal
from nbckpt.leases import Hold
from tests.crash.crashpoints import plant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


PLANTS: dict[str, Callable[[], None]] = {
    "no_fence": no_fence,
    "record_first": record_first,
}
