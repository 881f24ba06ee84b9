"""Who is at the keyboard."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime


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
    return f"{person()} at {datetime.now(UTC).astimezone():%Y-%m-%d %H:%M:%S}"
