"""Objects that a process has one of: they come back as the one that is there.

``from random import gauss`` binds a method of the generator that ``random.seed`` sets;
with a copy of the generator, seeding would no longer reach what was drawn with it.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

PLACES = {
    "random.Random": ("random", "_inst"),
    "numpy.random.mtrand.RandomState": ("numpy.random.mtrand", "_rand"),
    "torch._C.Generator": ("torch", "default_generator"),
    "os._Environ": ("os", "environ"),
    "matplotlib.RcParams": ("matplotlib", "rcParams"),
}
"""Type → module and name of the one that the whole process shares."""


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


def the_one(module: str, name: str) -> Any:
    """Return what a module holds under a name; called while decoding."""
    return getattr(importlib.import_module(module), name)


@functools.cache
def _place(kind: Any) -> tuple[str, str] | None:
    """Return where the shared object of a type is held."""
    return PLACES.get(f"{kind.__module__}.{kind.__qualname__}")
