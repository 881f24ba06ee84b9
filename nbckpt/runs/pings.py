"""Pings of a URL, as services that watch scheduled jobs take them.

A start is told to ``URL/start``, the end to ``URL`` or ``URL/fail``. While the run beats,
the start is told again: the service's grace time then runs from the last sign of life,
and nothing claims success before the end. A ping that fails is told and never stops or
slows the work.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from nbckpt.errors import BadStep

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT = 5.0
INTERVAL = 60.0
LAST = 3
"""The end is told so many times at most, until it gets through."""
PAUSE = 0.5
BODY_BYTES = 10_000


def check_url(url: str) -> str:
    """Return a URL that can be pinged, or refuse it.

    Parameters
    ----------
    url : str
        From the user.

    Returns
    -------
    str
        Without a slash at its end.

    Raises
    ------
    BadStep
        If it is none of http or https.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not host:
        # The address itself can be a secret.
        raise BadStep(
            "the address is no http or https URL",
            "Give for example https://hc-ping.com/UUID",
        )
    return url.rstrip("/")


def post(url: str, body: str = "", kind: str = "text/plain; charset=utf-8") -> str:
    """Send one ping.

    Parameters
    ----------
    url : str
        From `check_url`.
    body : str, optional
        What is said with it.
    kind : str, optional
        The body's content type.

    Returns
    -------
    str
        Why it failed, without the URL, which can be a secret; empty if it did not.
    """
    data = body.encode("utf-8", "replace")[:BODY_BYTES]
    request = Request(url, data, {"Content-Type": kind}, method="POST")  # noqa: S310
    try:
        with urlopen(request, timeout=TIMEOUT):  # noqa: S310 - check_url saw the scheme
            return ""
    except URLError as error:
        return str(getattr(error, "reason", "") or type(error).__name__)
    except Exception as error:  # also those of http.client
        return type(error).__name__


class Pings:
    """Pings one URL for one run, in a thread of its own.

    Parameters
    ----------
    url : str
        From `check_url`.
    beat : callable
        Returns what moves as long as the run lives; called in the thread.
    tell : callable
        Told why when pings begin to fail, and an empty text when they get through
        again; called in the thread.
    interval : float, optional
        Seconds between two signs of life.

    Notes
    -----
    Nothing is queued: a sign of life that can't be sent is dropped, the end is not. Who
    is killed tells no end; the service notices that nothing came.
    """

    def __init__(
        self,
        url: str,
        beat: Callable[[], object],
        tell: Callable[[str], None],
        interval: float = INTERVAL,
    ) -> None:
        self._url = url
        self._beat = beat
        self._tell = tell
        self._interval = interval
        self._why = ""
        self._end: tuple[str, str] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._send_on, name="nbckpt-pings", daemon=True
        )
        self._thread.start()

    def end(self, path: str | None, body: str = "") -> None:
        """Say how it ended, and wait a few seconds until that is sent.

        Parameters
        ----------
        path : str or None
            Empty for a success, ``/fail`` for a failure; None: nothing is said.
        body : str, optional
            What is said with it.
        """
        if path is not None:
            self._end = (path, body)
        self._ended.set()
        # One that is under way first, then the last ones.
        self._thread.join((LAST + 1) * (TIMEOUT + PAUSE))

    def _send_on(self) -> None:
        """Tell the start, signs of life, and the end."""
        seen = self._beat()
        self._send("/start", "")
        while not self._ended.wait(self._interval):
            before, seen = seen, self._beat()
            if seen != before:
                self._send("/start", "")
        for _ in range(LAST):
            if self._end is None or self._send(*self._end):
                return
            threading.Event().wait(PAUSE)

    def _send(self, path: str, body: str) -> bool:
        """Send one; tell when they begin to fail, and when they get through again."""
        before, self._why = self._why, post(self._url + path, body)
        if bool(before) != bool(self._why):
            self._tell(self._why)
        return not self._why
