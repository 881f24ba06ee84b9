"""Figures: the parts of their state that drawing or pickling them changes by itself."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PASSING: dict[str, Any] = {"_stale": True, "stale": True, "_cachedRenderer": None}
"""Attributes that only say whether a figure must be drawn again."""
ADDRESSES = {"_parents"}
"""Attributes of transforms whose keys are addresses."""


@contextmanager
def none_opened() -> Iterator[None]:
    """Let pyplot have the figures that it had: a decoded one opens itself there.

    Yields
    ------
    None
        Decode figures that are thrown away inside.
    """
    helpers: Any = sys.modules.get("matplotlib._pylab_helpers")
    before = dict(helpers.Gcf.figs) if helpers else {}
    try:
        yield
    finally:
        helpers = sys.modules.get("matplotlib._pylab_helpers")
        if helpers:
            for number in [n for n in helpers.Gcf.figs if n not in before]:
                helpers.Gcf.destroy(number)


def steady(obj: Any, reduced: Any, left_out: Collection[str] = ()) -> Any:
    """Return a reduction without what looking at a figure changes in it.

    Parameters
    ----------
    obj : object
        Any value.
    reduced : object
        Its own reduction.
    left_out : collection of str, optional
        Attributes to leave out, for digests.

    Returns
    -------
    object
        The same for everything but matplotlib's objects.
    """
    if not type(obj).__module__.startswith("matplotlib."):
        return reduced
    if not isinstance(reduced, tuple) or len(reduced) < 3:  # noqa: PLR2004
        return reduced
    state = reduced[2]
    if not isinstance(state, dict):
        return reduced
    kept: dict[str, Any] = {
        key: PASSING.get(key, state[key])
        for key in sorted(state)
        if key not in left_out
    }
    if "_cid_gen" in kept:
        # The counter of callbacks moves with each pickling.
        numbers = [cid for by_cid in kept["callbacks"].values() for cid in by_cid]
        kept["_cid_gen"] = max(numbers, default=-1) + 1
    return (*reduced[:2], kept, *reduced[3:])
