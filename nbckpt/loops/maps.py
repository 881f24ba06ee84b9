"""``nbckpt.map``: a function over items, whose results are restored where they are done."""

from __future__ import annotations

import functools
import sys
import threading
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from nbckpt import current
from nbckpt.errors import OwnFramesHidden, StoreDamaged, ValueRefused
from nbckpt.loops import begun, results
from nbckpt.loops.iteration import ItemLoop, items
from nbckpt.loops.looprows import Span
from nbckpt.loops.pools import Outcome, Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from nbckpt.loops.iteration import OnError

T = TypeVar("T")
R = TypeVar("R")


def map(  # noqa: A001 - what it is
    fn: Callable[[T], R],
    iterable: Iterable[T],
    *,
    key: Callable[[T], Any] | None = None,
    executor: Executor | None = None,
    on_error: OnError = "stop",
    name: str = "",
) -> list[R | None]:
    """Return what a function returns for each item; each item is a checkpoint.

    Parameters
    ----------
    fn : callable
        Takes an item.
    iterable : iterable
        The items; all are looked at before the first is worked on.
    key, name
        As for `nbckpt.items`.
    executor : Executor, optional
        Works on several items at once: threads, processes, Dask, or another.
    on_error : {"stop", "continue"}, optional
        Raise the first error, once the items in flight have ended; or list errors in the
        loop's record (``nbckpt show STEP``) and go on.

    Returns
    -------
    list
        Results in the order of the items; None for one that failed.

    Raises
    ------
    BadStep
        As for `nbckpt.items`.

    Notes
    -----
    `nbckpt.ItemLoop` tells when an item is done and what a kill costs. A result that
    can't be kept leaves its item not done. Processes that die are replaced; an item that
    kills its process twice, the second time alone, has failed.
    """
    with OwnFramesHidden():
        loop = items(list(iterable), key=key, on_error=on_error, name=name)
        return _Map(loop, fn, on_error).run(executor)


class _Map:
    """One call of `map`."""

    def __init__(
        self, loop: ItemLoop[Any], fn: Callable[[Any], Any], on_error: OnError
    ) -> None:
        self._loop = loop
        self._fn = fn
        self._on_error = on_error
        self._found: dict[str, Any] = {}
        self._is_told = False
        self._todo: dict[str, tuple[str, Any]] = {}
        self._spans: dict[str, Span] = {}

    def run(self, executor: Executor | None) -> list[Any]:
        """Return all results in order."""
        self._restore()
        if executor is None:
            self._one_by_one()
        else:
            self._at_once(executor, list(self._loop.look()))
        return [self._found.get(key) for key in self._loop.keys]

    def _restore(self) -> None:
        """Take the results of done items; an item without one is not done."""
        ledger = self._loop.ledger
        for key, done in list(ledger.done.items()):
            try:
                self._found[key] = self._result(key, done.result)
            except Exception as error:
                del ledger.done[key]
                text = f"the result of item {key} is lost: {error}; it runs again"
                sys.stderr.write(f"nbckpt: {text}\n")

    def _result(self, key: str, kept: Any) -> Any:
        """Return one result that was kept."""
        if kept != results.BYTES:
            return kept[0]
        session = self._loop.place.session
        data = session.store.get_bytes(self._loop.ledger.result_key(key))
        if data is None:
            raise StoreDamaged("it is not in the store")
        return results.restore(data, session.namespace)

    def _one_by_one(self) -> None:
        """Work on one item after the other."""
        for item in self._loop:
            key = self._loop.in_flight
            self._found.pop(key, None)
            try:
                value = self._fn(item)
            except Exception as error:
                self._loop.failed(error)
            else:
                self._found[key] = value
                self._loop.returned(*self._encoded(key, value))

    def _at_once(self, executor: Executor, pairs: list[tuple[str, str, Any]]) -> None:
        """Work on several items at once; an interrupt keeps what has ended."""
        is_done = self._loop.ledger.is_done
        self._todo = {k: (v, item) for k, v, item in pairs if not is_done(k, v)}
        self._found = {k: v for k, v in self._found.items() if k not in self._todo}
        paths = {key: begun.path(key) for key in self._todo}
        is_local = isinstance(executor, ThreadPoolExecutor)

        def submit(pool: Executor, key: str) -> Future[Any]:
            work = functools.partial(self._work, key) if is_local else self._fn
            return pool.submit(call, work, paths[key], self._todo[key][1])

        self._begin_next()
        pool, first = Pool(executor, submit), None
        try:
            for outcome in pool.run(list(self._todo)):
                first = self._take(outcome, pool) or first
        except BaseException:
            for outcome in pool.harvest():
                self._take(outcome, pool)
            raise
        finally:
            pool.close()
        if first is not None:
            raise first
        self._loop.close()

    def _begin_next(self) -> None:
        """Take note of the first item that is not done."""
        for key, (_, item) in self._todo.items():
            self._loop.ledger.begin(key, item)
            return

    def _take(self, outcome: Outcome, pool: Pool) -> BaseException | None:
        """Take note of what became of an item; return the error that stops the others."""
        ledger, key, error = self._loop.ledger, outcome.key, outcome.error
        value, _ = self._todo.pop(key)
        if error is None:
            self._found[key] = outcome.value
            kept, data = self._encoded(key, outcome.value)
            lasting = ledger.has_lasting
            if kept is not None:
                ledger.noticed.span = self._spans.pop(key, None)
                ledger.end_item(key, value, kept, data)
            if lasting:
                ledger.write(durable=True)
        else:
            ledger.fail_item(key, error)
        self._begin_next()
        if error is None or self._on_error == "continue":
            return None
        pool.stop()
        return error

    def _work(self, key: str, item: Any) -> Any:
        """Work on one item in a thread, which knows nothing of the loop around it."""
        ledger = self._loop.ledger
        begun.inside.set((ledger, key))
        start = ledger.noticed.count
        try:
            return self._fn(item)
        finally:
            self._spans[key] = Span(threading.get_ident(), start, ledger.noticed.count)

    def _encoded(self, key: str, value: Any) -> tuple[Any, bytes | None]:
        """Return a result as it is kept; None if it can't be."""
        session = self._loop.place.session
        try:
            return results.encode(value, session.namespace, session.secrets())
        except ValueRefused as error:
            if not self._is_told:
                text = f"the result of item {key} can't be kept: {error}; it runs again"
                sys.stderr.write(f"nbckpt: {text}\n")
            self._is_told = True
            return None, None


def call(fn: Callable[[Any], Any], path: str, item: Any) -> Any:
    """Work on one item, in whichever thread or process.

    Parameters
    ----------
    fn : callable
        Takes the item.
    path : str
        The item's key, with those of the items around it.
    item : object
        The item.

    Returns
    -------
    object
        What the function returns.
    """
    before = current.item.set(path)
    try:
        return fn(item)
    finally:
        current.item.reset(before)
