"""Times as people read them."""

from __future__ import annotations

from datetime import UTC, datetime


def local(at: float) -> str:
    """Return a time of the wall clock, in the zone of the machine.

    Parameters
    ----------
    at : float
        Seconds since the epoch.

    Returns
    -------
    str
        Date and time, to the second.
    """
    return f"{datetime.fromtimestamp(at, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
