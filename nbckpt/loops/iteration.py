"""``nbckpt.items``: a loop that goes on where it was interrupted."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from nbckpt import current
from nbckpt.errors import BadStep, OwnFramesHidden, StopForHuman
from nbckpt.keys import STEP_NAME
from nbckpt.loops import begun
from nbckpt.loops.builtup import BuiltUp, built_up
from nbckpt.loops.itemkeys import Source
from nbckpt.loops.ledger import Ledger
from nbckpt.loops.savepoints import Savepoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nbckpt.current import Place
    from nbckpt.records import ItemError
    from nbckpt.state.checkpoints import Restored

T = TypeVar("T")
OnError = Literal["stop", "continue"]


class ItemLoop(Generic[T]):
    """A loop over items; made by `items`.

    Notes
    -----
    An item is done when the loop asks for the next one. It is then passed over until the
    step completes or is asked to run again, unless its value under the same key is
    another, or a file is gone that it was the first to write; with ``keep`` all items
    then begin anew, since what the one left can't be taken back (of an iterator, the
    step stops and says so).

    Killed, the process loses the item in flight and at most 20 ms of items before it, or
    the items since the last of ``every``. With ``keep`` items are written together with
    the names: those since the last save are lost, and the next save comes after nine
    times what it takes. An item in which an effect happened is written at once. What was
    written survives a loss of power once the loop ended or an effect followed. What items
    printed before a kill is not shown again: a log belongs into a kept name or a file.

    Names in ``keep`` come back as of the last item written as done, with what shares
    objects with them, the random streams and the generators that the body names. So does
    plain data that the loop's own lines change, unless ``--ignore`` names it; where
    nothing can bring it back (in a function, a comprehension) all items are done again.

    Examples
    --------
    ::

        results = []
        for order in nbckpt.items(orders, key=lambda o: o.id, keep="results"):
            results.append(price(order))

    What its body raises a loop can't see; to go on after an error, tell it::

        loop = nbckpt.items(orders, key=lambda o: o.id, on_error="continue")
        for order in loop:
            try:
                charge(order)
            except ApiError as error:
                loop.failed(error)
        print(loop.errors)

    Attributes
    ----------
    errors : tuple of ItemError
        Items that failed and were not done since: ``item``, ``error``, ``attempt``.
    """

    def __init__(
        self,
        place: Place,
        ledger: Ledger,
        source: Source[T],
        on_error: OnError,
        built: BuiltUp,
    ) -> None:
        self.place = place
        self.ledger = ledger
        self._source = source
        self._on_error = on_error
        self._built = built
        self._savepoint = Savepoint(place, built) if built.kept else None
        self._restored: Restored | None = None
        self._is_inner = begun.inside.get() is not None
        self._is_used = False
        self._left_at: tuple[Any, int] | None = None
        self.in_flight = ""
        self._failed: BaseException | None = None
        self._result: tuple[Any, bytes | None] = [], None

    @property
    def errors(self) -> tuple[ItemError, ...]:
        """Items that failed and were not done since."""
        return self.ledger.errors

    def failed(self, error: BaseException) -> None:
        """Note that the item at hand failed; called in the loop's body.

        Parameters
        ----------
        error : BaseException
            What went wrong. With ``on_error="stop"`` it is raised here.

        Raises
        ------
        BadStep
            If no item is at hand.
        """
        if not self.in_flight:
            raise BadStep("failed() was called outside of the loop's body")
        if self._on_error == "stop":
            raise error
        self._failed = error

    def __iter__(self) -> Iterator[T]:
        """Yield the items that are not done."""
        if self._is_used:
            raise BadStep(
                f"step {self.place.step.name}: a loop over items was begun twice",
                "Call nbckpt.items(…) where each loop begins",
            )
        self._is_used = True
        with OwnFramesHidden():
            return self._run(self.look())

    def look(self) -> Iterable[tuple[str, str, T]]:
        """Return key, digest of the value, and item, of all; take over what is done."""
        done = set(self.ledger.done)
        pairs = self._source.pairs(self.ledger)
        if self._savepoint is not None and done and not self._source.is_lazy:
            pairs = self._without_stale(list(pairs), done)
        self._go_on()
        return pairs

    def _without_stale(
        self, pairs: list[tuple[str, str, T]], done: set[str]
    ) -> list[tuple[str, str, T]]:
        """Begin anew if a done item is another now: what it left can't be taken back."""
        values = {key: value for key, value, _ in pairs}
        fresh = {k for k, v in values.items() if self.ledger.is_done(k, v)}
        stale = sorted(done - fresh)
        if stale:
            self.ledger.begin_anew()
            _say(
                self.place.step.name,
                f"its items begin anew: item {stale[0]} was done and is another now, or "
                "its file is gone, and what it left in the kept names can't be taken back",
            )
        return pairs

    @property
    def keys(self) -> list[str]:
        """Keys of all items that were looked at, in order."""
        return self._source.keys

    def returned(self, kept: Any, data: bytes | None) -> None:
        """Take what is kept of the item at hand; see `Ledger.end_item`."""
        self._result = kept, data

    def _run(self, pairs: Iterable[tuple[str, str, T]]) -> Iterator[T]:
        """Yield what is not done, and take note of what comes of it."""
        ledger, outer_item, outer = self.ledger, current.item.get(), begun.inside.get()
        for key, value, item in self._not_done(pairs):
            ledger.begin(key, item)
            self.in_flight = key
            current.item.set(begun.path(key))
            begun.inside.set((ledger, key))
            try:
                yield item
            except GeneratorExit:
                frame = sys._getframe().f_back  # None: it was collected, not left
                self._left_at = (frame.f_code, frame.f_lasti) if frame else None
                raise
            finally:
                current.item.set(outer_item)
                begun.inside.set(outer)
            self._end_item(key, value)
        self._bind()
        self.close()

    def _not_done(
        self, pairs: Iterable[tuple[str, str, T]]
    ) -> Iterator[tuple[str, str, T]]:
        """Pass over what is done; what was kept stands before the first that is not."""
        left = len(self.ledger.done)
        for key, value, item in pairs:
            if left and self.ledger.is_done(key, value):
                left -= 1
                if not left:
                    self._bind()
                continue
            if self._savepoint is not None and key in self.ledger.done:
                raise BadStep(
                    f"step {self.place.step.name}: item {key} was done and is another "
                    "now, or its file is gone; what it left in the kept names stays",
                    f"To do all items again: nbckpt rerun {self.place.step.name}",
                )
            self._bind()
            yield key, value, item

    def _end_item(self, key: str, value: str) -> None:
        """Take note of an item that is done or failed."""
        self.in_flight, failed, self._failed = "", self._failed, None
        ledger = self.ledger
        if failed is not None:
            ledger.fail_item(key, failed)
            return
        lasting = ledger.has_lasting
        (kept, data), self._result = self._result, ([], None)
        if kept is not None:
            ledger.end_item(key, value, kept, data)
        self._save(lasting=lasting)
        if lasting or (self._source.is_lazy and ledger.is_ready):
            ledger.write(durable=lasting)

    def _save(self, *, lasting: bool) -> None:
        """Save the kept names if it is time, or if the item did what lasts."""
        savepoint = self._savepoint
        if savepoint is not None and (lasting or self._is_save_due(savepoint)):
            self.ledger.keep(savepoint.take())

    def _is_save_due(self, savepoint: Savepoint) -> bool:
        """Tell whether the kept names are saved after this item."""
        return self.ledger.is_due if self.ledger.every else savepoint.is_due

    def close(self) -> None:
        """Write that the loop came to its end."""
        if self._savepoint and self.ledger.pending and not self.ledger.is_ready:
            self.ledger.keep(self._savepoint.take())
        self.ledger.end(durable=not self._is_inner)
        if self.errors:
            name, count = self.place.step.name, self.ledger.record.failed
            sys.stderr.write(
                f"nbckpt: step {name}: {count} of its items failed "
                f"(nbckpt show {name}); they run again if the step does\n"
            )

    def _go_on(self) -> None:
        """Take over what an attempt of the same lineage left, and say what is odd."""
        ledger, step = self.ledger, self.place.step.name
        before = ledger.earlier
        if before is None or not ledger.done:
            return
        if why := self._why_anew():
            ledger.begin_anew()
            _say(step, f"its items begin anew: {why}")
            return
        done = f"{len(ledger.done)} of {before.total or 'its'} items"
        if before.code != ledger.record.code:
            _say(
                step,
                f"its code was edited since {done} were done; they stay done. "
                f"To do them again: nbckpt rerun {step}",
            )
        self._tell_changed(done)

    def _tell_changed(self, done: str) -> None:
        """Say which names the items that are done changed without being kept."""
        step, restored = self.place.step, self._restored
        told = restored.values if restored is not None else {}
        names = [name for name in self._built.names if name not in told]
        changed = [name for name in names if self._is_data(name)]
        if changed:
            _say(
                step.name,
                f"{done} are done and passed over, but what they left in "
                f"{', '.join(changed)} is not kept; to keep it: "
                f"items(…, keep={tuple(changed)!r})",
            )

    def _why_anew(self) -> str:
        """Load what was kept; return why what done items left can't come back."""
        savepoint, before = self._savepoint, self.ledger.earlier
        if self._built.lost:
            return (
                f"{', '.join(self._built.lost)} can't be kept. Build it up in names of "
                "the notebook, or use nbckpt.map"
            )
        if savepoint is None or before is None:
            return ""
        new = set(self._built.kept) - set(before.kept)
        if new or before.contents is None:
            return (
                f"{', '.join(sorted(new)) or 'what it builds up'} was not kept before"
            )
        try:
            self._restored = savepoint.load(before.contents)
        except Exception as error:
            return f"what was kept can't be loaded: {type(error).__name__}: {error}"
        return ""

    def _bind(self) -> None:
        """Let the kept names stand as of the last item that is done, once."""
        restored, self._restored = self._restored, None
        if restored is not None and self._savepoint is not None:
            self._savepoint.bind(restored)

    def _is_data(self, name: str) -> bool:
        """Tell whether a name holds something that can be built up."""
        value = self.place.session.names.get(name)
        return value is not None and not isinstance(
            value, (types.ModuleType, types.FunctionType, type)
        )

    def ended(self, error: BaseException | None) -> None:
        """Take note that the step ended, maybe in the body of this loop.

        Parameters
        ----------
        error : BaseException or None
            What it raised; None: nothing, or not known.
        """
        key, self.in_flight = self.in_flight, ""
        if key and error is not None and _is_left_by(error, self._left_at):
            self.ledger.fail_item(key, error)
        self.ledger.flush(durable=error is not None)


def items(
    iterable: Iterable[T],
    *,
    key: Callable[[T], Any] | None = None,
    keep: str | tuple[str, ...] | list[str] = (),
    every: int | None = None,
    on_error: OnError = "stop",
    name: str = "",
) -> ItemLoop[T]:
    """Loop over items so that each is a checkpoint: what is done is passed over.

    Parameters
    ----------
    iterable : iterable
        The items.
    key : callable, optional
        Takes an item, returns what no other has and that stays; by default the item.
        Texts and whole numbers stand as they are, all else by its content.
    keep : names, optional
        Names of the notebook that the loop builds up: checkpointed with the items.
    every : int, optional
        Write after so many items; by default by time.
    on_error : {"stop", "continue"}, optional
        What `ItemLoop.failed` does: raise the error, or list it and go on.
    name : str, optional
        Name of the loop; by default its number among the step's.

    Returns
    -------
    ItemLoop
        For one ``for``; its documentation holds the guarantee and examples.

    Raises
    ------
    BadStep
        Outside of a step; if an argument is wrong; in the ``for``, if two items have one
        key: before any of them runs (of an iterator: before the second of the two).
    """
    place = current.place("items")
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    _check(place, every, on_error, name)
    built = built_up(sys._getframe(1), place, names)
    ledger = Ledger(place, *begun.identity(place, name), built.kept, every)
    loop = ItemLoop(place, ledger, Source(iterable, key, place), on_error, built)
    begun.note(loop)
    return loop


def _check(place: Place, every: int | None, on_error: str, name: str) -> None:
    """Refuse arguments that make no sense."""
    step = place.step.name
    if every is not None and (type(every) is not int or every < 1):
        raise BadStep(f"step {step}: every={every!r}", "Give a whole number from 1 on")
    if on_error not in {"stop", "continue"}:
        raise BadStep(f"step {step}: on_error={on_error!r}", "Give stop or continue")
    if name and not STEP_NAME.fullmatch(name):
        what = f"step {step}: name={name!r} of a loop"
        raise BadStep(what, "Use letters, digits and _ . -")


def _is_left_by(error: BaseException, left_at: tuple[Any, int] | None) -> bool:
    """Tell whether an error is the item's own: it left the loop's body at a place."""
    if not isinstance(error, Exception) or isinstance(error, StopForHuman):
        return False
    trace, places = error.__traceback__, []
    while trace is not None:
        places.append((trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    return left_at is None or left_at in places


def _say(step: str, text: str) -> None:
    """Tell the user one line."""
    sys.stderr.write(f"nbckpt: step {step}: {text}\n")
