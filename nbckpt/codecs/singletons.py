"""Objects that a process has one of: they come back as the one that is there.

``from random import gauss`` binds a method of the generator that ``random.seed`` sets;
with a copy of the generator, seeding would no longer reach what was drawn with it.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
from typing import Any

from nbckpt.codecs.code import is_local

PLACES = {
    "random.Random": ("random", "_inst"),
    "numpy.random.mtrand.RandomState": ("numpy.random.mtrand", "_rand"),
    "torch._C.Generator": ("torch", "default_generator"),
    "os._Environ": ("os", "environ"),
    "matplotlib.RcParams": ("matplotlib", "rcParams"),
}
"""Type → module and name of the one that the whole process shares."""

CONTAINERS = {list, dict, set}


def reduction(obj: Any) -> tuple[Any, ...] | None:
    """Return the reduction of an object that the whole process shares.

    Parameters
    ----------
    obj : object
        Any value; what it holds is looked after as ambient state.

    Returns
    -------
    tuple or None
        None for everything else, such as a generator of the user's own.
    """
    kind: Any = type(obj)
    place = _place(kind)
    if place is None or getattr(sys.modules.get(place[0]), place[1], None) is not obj:
        return None
    return the_one, place


def of_classes(kinds: set[type]) -> set[int]:
    """Return the ids of containers that installed classes share among their instances.

    Parameters
    ----------
    kinds : set of type
        Types of values.

    Returns
    -------
    set of int
        That two frames name the empty list of their class does not make them one.
    """
    held = itertools.chain.from_iterable(map(_shared, kinds))
    return {id(vars(base).get(name)) for base, name in held}


@functools.cache
def _shared(kind: type) -> tuple[tuple[type, str], ...]:
    """Return where the installed classes of a type hold containers."""
    return tuple(
        (base, name)
        for base in kind.__mro__
        if not _is_the_users(base)
        for name, value in vars(base).items()
        if type(value) in CONTAINERS
    )


def _is_the_users(kind: type) -> bool:
    """Tell whether a class is the notebook's, or of a module of the user's."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or is_local(file)


def the_one(module: str, name: str) -> Any:
    """Return what a module holds under a name; called while decoding."""
    return getattr(importlib.import_module(module), name)


@functools.cache
def _place(kind: Any) -> tuple[str, str] | None:
    """Return where the shared object of a type is held."""
    return PLACES.get(f"{kind.__module__}.{kind.__qualname__}")
