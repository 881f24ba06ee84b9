"""What a kernel sends over the network, as Python's audit events show it.

Limit: what goes through ``http.client`` (urllib, requests, boto3) and ``smtplib`` is
seen; clients with sockets of their own (httpx, gRPC, database drivers) are not.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from nbckpt import current
from nbckpt.errors import NbckptError

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = re.compile(rb"(POST|PUT|PATCH|DELETE) (\S+) HTTP/")
MAIL = re.compile(rb"(?i)mail from:")


def note_into(path: str) -> None:
    """Write a line to a file for each request or mail that this process sends.

    Parameters
    ----------
    path : str
        The file; lines are added.

    Notes
    -----
    An audit hook stays for the life of the process: for rehearsals only.
    """

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"http.client.send", "smtplib.send"}:
            what = sent(arguments[-1])
            if what:
                _add(path, f"{_step()}\t{what}\n")

    sys.addaudithook(hook)


def sent(data: Any) -> str:
    """Return what data on its way to a server asks for; empty if it only reads.

    Parameters
    ----------
    data : object
        Bytes, or anything else that a client sends.

    Returns
    -------
    str
        Such as ``POST /charges`` or ``mail``.
    """
    text = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if not isinstance(text, (bytes, bytearray)):
        return ""
    found = REQUEST.match(text)
    if found:
        return f"{found[1].decode()} {found[2].decode('utf-8', 'replace')}"
    return "mail" if MAIL.match(text) else ""


def _step() -> str:
    """Return the step that runs; empty outside of steps."""
    try:
        return current.place("sightings").step.name
    except NbckptError:
        return ""


def _add(path: str, line: str) -> None:
    """Add a line to a file, in one write: a kill leaves it whole or out."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def read(path: Path) -> Counter[tuple[str, str]]:
    """Return how often each step sent what.

    Parameters
    ----------
    path : Path
        The file of `note_into`; it may be missing.

    Returns
    -------
    Counter
        Of step and request.
    """
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = (line.partition("\t") for line in lines)
    return Counter((step, what) for step, _, what in pairs)
