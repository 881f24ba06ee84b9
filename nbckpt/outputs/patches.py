"""Attributes of other people's objects, wrapped for a while and given back.

Also the mark of a thread whose own output is not to be recorded.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MISSING = object()
_thread = threading.local()


class Patch:
    """An attribute of one instance, replaced until `undo`.

    Parameters
    ----------
    owner : object
        The instance; its class stays as it is.
    name : str
        Name of the attribute, a callable.
    wrap : callable
        Gets the present attribute and returns the new one.

    Notes
    -----
    If someone else wrapped the attribute again, `undo` leaves it alone, for their
    wrapper still calls ours. So ours must do nothing but forward while it is idle.
    """

    def __init__(
        self,
        owner: object,
        name: str,
        wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._owner = owner
        self._name = name
        self._old = vars(owner).get(name, _MISSING)
        self._new = wrap(getattr(owner, name))
        setattr(owner, name, self._new)

    def undo(self) -> None:
        """Give the attribute back; more than once is allowed."""
        if vars(self._owner).get(self._name) is not self._new:
            return
        if self._old is _MISSING:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._old)


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Keep what this thread sends out of any recording.

    Yields
    ------
    None
        Other threads are recorded all the same.
    """
    before = is_muted()
    _thread.muted = True
    try:
        yield
    finally:
        _thread.muted = before


def is_muted() -> bool:
    """Return whether this thread is within `muted`.

    Returns
    -------
    bool
        False in a thread that never was.
    """
    return getattr(_thread, "muted", False)
