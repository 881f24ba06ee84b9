"""The way from a variable to a value inside it, for messages."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from nbckpt.codecs.definitions import attribute_of

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 12
BREADTH = 20_000
_NOTHING = object()
METHODS = (types.MethodType, types.BuiltinMethodType)


def path_to(values: dict[str, Any], target: Any) -> str:
    """Return how a value is reached from the variables.

    Parameters
    ----------
    values : dict
        Name → value.
    target : object
        The value that is looked for.

    Returns
    -------
    str
        For example ``cfg['db'].conn``; the names alone if no way is found.
    """
    if target is not values:
        seen: set[int] = set()
        level = list(values.items())
        for _ in range(DEPTH):
            for path, value in level:
                if value is target:
                    return path
            level = [
                step for path, value in level for step in _inside(path, value, seen)
            ]
            if not level or len(seen) > BREADTH:
                break
    return ", ".join(values)


def _inside(path: str, value: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield what is one step inside a value."""
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type)):
        return
    seen.add(id(value))
    yield from _items(path, value)
    yield from ((f"{path}.{key}", part) for key, part in _attributes(value))


def _items(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a container."""
    if isinstance(value, dict):
        yield from ((f"{path}[{key!r}]", part) for key, part in list(value.items()))
    elif isinstance(value, (list, tuple)):
        yield from ((f"{path}[{number}]", part) for number, part in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from ((f"{path}{{…}}", part) for part in value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that hold a value's state."""
    yield from list(attribute_of(value, "__dict__", {}).items())
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if (part := attribute_of(value, slot, _NOTHING)) is not _NOTHING:
                yield slot, part
    yield from _closure(value)
    if isinstance(value, METHODS) and not isinstance(value.__self__, types.ModuleType):
        yield "__self__", value.__self__


def _closure(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function's closure holds."""
    if not isinstance(value, types.FunctionType):
        return
    cells = value.__closure__ or ()
    for name, cell in zip(value.__code__.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue
