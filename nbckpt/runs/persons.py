"""Who is at the keyboard."""

from __future__ import annotations

import getpass
import time

from nbckpt.runs.moments import local


def person() -> str:
    """Return who is at the keyboard.

    Returns
    -------
    str
        The name that the system knows; ``somebody`` if it knows none.
    """
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"


def said_by() -> str:
    """Return who says something now, and when.

    Returns
    -------
    str
        In the zone of the machine.
    """
    return f"{person()} at {local(time.time())}"
