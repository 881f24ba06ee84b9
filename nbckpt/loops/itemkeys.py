"""The items of a loop: the key of each, and the digest of its value."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nbckpt.codecs import Canonical
from nbckpt.errors import BadStep
from nbckpt.keys import is_huge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nbckpt.codecs.canonical import Classes
    from nbckpt.current import Place
    from nbckpt.loops.ledger import Ledger

T = TypeVar("T")
ITSELF = (str, int)
"""Of an item of these types the key says it all."""
IN_MEMORY = (Sequence, Mapping, AbstractSet, deque)
"""Iterables whose items are there already, so that all keys are looked at first."""


class Source(Generic[T]):
    """The items of a loop, each with its key and the digest of its value.

    Parameters
    ----------
    items : iterable
        The items.
    key : callable or None
        Takes an item, returns its key.
    place : Place
        The body that the loop stands in.
    """

    def __init__(
        self, items: Iterable[T], key: Callable[[T], Any] | None, place: Place
    ) -> None:
        self.is_lazy = not isinstance(items, IN_MEMORY)
        self._items = items
        self._key = key
        self._place = place
        self._hidden = place.session.secrets()
        self._seen: dict[str, None] = {}
        self._classes: Classes = {}

    @property
    def keys(self) -> list[str]:
        """Keys of the items that were looked at, in order."""
        return list(self._seen)

    def pairs(self, ledger: Ledger) -> Iterable[tuple[str, str, T]]:
        """Return key, digest of the value, and item.

        Parameters
        ----------
        ledger : Ledger
            Is told of the number of items, and of their keys.

        Returns
        -------
        iterable of tuple
            Of items in memory all keys were looked at; of others each in its turn.

        Raises
        ------
        BadStep
            If two items have the same key.
        """
        seen = self._seen
        if self.is_lazy:
            ledger.expect(_length(self._items))
            return (self._pair(item, seen) for item in self._items)
        found = [(self._key_of(item, seen), item) for item in self._items]
        ledger.expect(len(found), seen)
        return ((key, self._value(item), item) for key, item in found)

    def _pair(self, item: T, seen: dict[str, None]) -> tuple[str, str, T]:
        """Return one item with its key and the digest of its value."""
        return self._key_of(item, seen), self._value(item), item

    def _key_of(self, item: T, seen: dict[str, None]) -> str:
        """Return an item's key, which no other may have; it holds no credential."""
        key = item if self._key is None else self._key(item)
        if self._key is not None and key is None:
            raise self._bad("key gave None", "Let it return what tells an item apart")
        is_plain = _is_plain(key)
        text = self._hidden.mask(str(key)) if is_plain else self._digest(key)
        if text in seen:
            told = repr(text) if is_plain else self._hidden.mask(repr(key))
            raise self._bad(
                f"two items have the key {told:.200}",
                "Give items(…, key=) something that no two of them share",
            )
        seen[text] = None
        return text

    def _digest(self, key: Any) -> str:
        """Return the text of a key that is none: two equal ones have the same."""
        found = self._canonical(key)
        if found.unknown:
            what = "an item" if self._key is None else "a key"
            raise self._bad(
                f"{what} holds a {found.unknown}, which has no lasting content",
                "Give items(…, key=) a function that returns a text or a number",
            )
        return found.digest

    def _value(self, item: T) -> str:
        """Return the digest of an item's value; empty if its key says it all, or none can."""
        if self._key is None and type(item) in ITSELF:
            return ""
        found = self._canonical(item)
        return "" if found.unknown else found.digest

    def _canonical(self, item: Any) -> Canonical:
        """Return the digest of an item; its classes count as they were at first sight.

        So they do in the kernel that resumes the loop: what the body does to a class
        while the loop runs is not there when the loop begins.
        """
        return Canonical(item, self._place.session.namespace, self._classes)

    def _bad(self, what: str, remedy: str) -> BadStep:
        """Return the error for items that can't be told apart."""
        return BadStep(f"step {self._place.step.name}: {what}", remedy)


def _is_plain(key: object) -> bool:
    """Tell whether a key is its own text: a text, or an integer that Python spells."""
    is_number = isinstance(key, Integral) and not isinstance(key, bool)
    return isinstance(key, str) or (is_number and not is_huge(key))


def _length(iterable: object) -> int | None:
    """Return the number of items if the iterable knows it."""
    try:
        return len(iterable)  # type: ignore[arg-type]
    except TypeError:
        return None
