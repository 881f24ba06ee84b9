"""Work on items in an executor that may lose its workers."""

from __future__ import annotations

from collections import deque
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AHEAD = 4
"""Items in an executor for each of its workers: enough to keep it busy."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item."""

    key: str
    value: Any = None
    error: BaseException | None = None


class Pool:
    """Hands items to an executor, and to a new one of its kind when its workers die.

    Parameters
    ----------
    executor : Executor
        The user's own; it is never shut down here.
    submit : callable
        Takes an executor and an item's key; returns the future of its result.

    Notes
    -----
    Which item killed a worker can't be told: all in flight are suspects. Each of them is
    tried once more, alone; one that kills its worker then has done so twice.
    """

    def __init__(
        self, executor: Executor, submit: Callable[[Executor, str], Future[Any]]
    ) -> None:
        self._executor = executor
        self._submit = submit
        self._is_own = False
        self._waiting: deque[str] = deque()
        self._suspects: deque[str] = deque()
        self._flying: dict[Future[Any], str] = {}
        self._ahead = AHEAD * int(getattr(executor, "_max_workers", None) or AHEAD)

    def run(self, keys: list[str]) -> Iterator[Outcome]:
        """Yield what becomes of items, as they end.

        Parameters
        ----------
        keys : list of str
            The items.

        Yields
        ------
        Outcome
            One for each, unless `stop` is called.
        """
        self._waiting.extend(keys)
        while self._waiting or self._suspects or self._flying:
            alone = self._fill()
            wait(self._flying, return_when=FIRST_COMPLETED)
            yield from self._ended(alone=alone)

    def stop(self) -> None:
        """Begin no more items; those that are worked on come to their end."""
        self._waiting.clear()
        self._suspects.clear()
        for future in list(self._flying):
            if future.cancel():
                del self._flying[future]

    def harvest(self) -> list[Outcome]:
        """Return what ended without an error meanwhile, and begin no more."""
        self.stop()
        done = [_outcome(key, f) for f, key in self._flying.items() if f.done()]
        return [outcome for outcome in done if outcome.error is None]

    def close(self) -> None:
        """Give up the executor if it was made here."""
        if self._is_own:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _fill(self) -> bool:
        """Hand out items; return whether one suspect was, alone."""
        if self._suspects and not self._flying:
            self._hand_out(self._suspects)
            return True
        while self._waiting and not self._suspects and len(self._flying) < self._ahead:
            if not self._hand_out(self._waiting):
                break
        return False

    def _hand_out(self, queue: deque[str]) -> bool:
        """Hand out the next item; return whether the executor took it."""
        key = queue.popleft()
        try:
            self._flying[self._submit(self._executor, key)] = key
        except BrokenExecutor:
            queue.appendleft(key)
            if not self._flying:
                self._renew()
            return False
        return True

    def _ended(self, *, alone: bool) -> Iterator[Outcome]:
        """Yield what ended; renew an executor that broke."""
        broken: list[Outcome] = []
        while found := [future for future in self._flying if future.done()]:
            for future in found:
                outcome = _outcome(self._flying.pop(future), future)
                if isinstance(outcome.error, BrokenExecutor):
                    broken.append(outcome)
                else:
                    yield outcome
            if broken:
                # All others of a broken executor end soon, and with the same error.
                wait(self._flying)
        if broken:
            self._renew()
            if alone:
                yield from broken
            else:
                self._suspects.extend(outcome.key for outcome in broken)

    def _renew(self) -> None:
        """Make an executor like the one that broke."""
        old: Any = self._executor
        self.close()
        options = {
            "max_workers": getattr(old, "_max_workers", None),
            "mp_context": getattr(old, "_mp_context", None),
            "initializer": getattr(old, "_initializer", None),
            "initargs": getattr(old, "_initargs", None),
        }
        given = {name: value for name, value in options.items() if value is not None}
        self._executor = type(old)(**given)
        self._is_own = True


def _outcome(key: str, future: Future[Any]) -> Outcome:
    """Return what became of the item of a future that is done."""
    if future.cancelled():
        return Outcome(key, error=CancelledError("its executor gave it up"))
    error = future.exception()
    return Outcome(key, None if error else future.result(), error)
