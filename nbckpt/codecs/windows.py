"""Windows onto what another object holds: views of dicts and of memory.

A copy in place of a window would be equal and no longer follow its object. Where the
place of a window can't be told, it is refused.
"""

from __future__ import annotations

import array
import gc
import sys
import types
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Reduction = tuple[Any, ...] | str
BUFFERS = {bytearray, array.array}
"""Types whose memory numpy arrays may stand on, beside the variable that holds it."""


def reducer(kind: type) -> Callable[[Any], Reduction] | None:
    """Return the reducer of a type of windows.

    Parameters
    ----------
    kind : type
        Type of a value.

    Returns
    -------
    callable or None
        As of `nbckpt.codecs.handles.reducer`.
    """
    return _BY_TYPE.get(kind)


def _part(view: Any) -> Reduction:
    """Reduce a view of a dict to the dict and what it shows."""
    (mapping,) = gc.get_referents(view)
    name = type(view).__name__.rpartition("_")[2]
    return revive_part, (mapping, name)


def revive_part(mapping: Any, name: str) -> Any:
    """Return a view of a dict; called while decoding."""
    kind = OrderedDict if isinstance(mapping, OrderedDict) else dict
    return getattr(kind, name)(mapping)


def _proxy(proxy: types.MappingProxyType[Any, Any]) -> Reduction:
    """Reduce a read-only view of a mapping."""
    return types.MappingProxyType, tuple(gc.get_referents(proxy))


def _memory(view: memoryview) -> Reduction:
    """Reduce a memoryview of all that an object holds."""
    try:
        whole = memoryview(view.obj)
    except ValueError:
        return "a released memoryview"
    if view.nbytes != whole.nbytes or not view.c_contiguous:
        return "a memoryview of a part of an object; make it bytes"
    return revive_memory, (view.obj, view.format, view.shape, view.readonly)


def revive_memory(
    obj: Any, layout: str, shape: tuple[int, ...], readonly: bool
) -> memoryview:
    """Return a memoryview of an object; called while decoding."""
    view: Any = memoryview(obj)
    if (view.format, view.shape) != (layout, shape):
        view = view.cast("B").cast(layout, shape)
    found: memoryview = view.toreadonly() if readonly else view
    return found


def owner(array: Any) -> Any:
    """Return the object on whose memory an array stands, if others hold it too.

    Parameters
    ----------
    array : numpy.ndarray
        Owns no memory of another array.

    Returns
    -------
    bytearray or array.array or None
        None too for memory that nobody else can reach, as that of a restored array.
    """
    base = array.base
    if type(base) is not memoryview or base.readonly or type(base.obj) not in BUFFERS:
        return None
    return base.obj if _references(base) > _ALONE else None


def _references(view: memoryview) -> int:
    """Return how often the object behind a memoryview is referred to."""
    obj = view.obj
    return sys.getrefcount(obj)


_ALONE = _references(memoryview(bytearray(1)))
_PARTS: list[Any] = [
    part(kind())
    for kind in (dict, OrderedDict)
    for part in (kind.keys, kind.values, kind.items)
]
_BY_TYPE: dict[type, Callable[[Any], Reduction]] = {
    **{type(view): _part for view in _PARTS},
    memoryview: _memory,
    types.MappingProxyType: _proxy,
}
