"""A payment service on this machine, with the faults of a real one.

It charges once for each idempotency key, refuses too many requests, is down now and then,
and sometimes charges and then answers with an error, closes the connection, or hangs. Its
ledger is a SQLite file and outlives every process.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CREATED, CONFLICT, BUSY, BAD_GATEWAY, DOWN = 201, 409, 429, 502, 503
KINDS = 64
FAULTS = {
    **dict.fromkeys(range(4), "busy"),
    **dict.fromkeys(range(4, 8), "down"),
    **dict.fromkeys(range(8, 12), "late"),
    **dict.fromkeys(range(12, 15), "silent"),
    15: "hung",
}
"""What happens to the first try of a key, by its digest modulo `KINDS`: two refusals; and
charged, but answered by an error, by a closed connection, or not in time."""
REFUSED = {"busy": BUSY, "down": DOWN}
PATIENCE = 1.0
"""Seconds that a client waits for an answer."""
TABLES = """
CREATE TABLE IF NOT EXISTS charge
  (key TEXT PRIMARY KEY, customer TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS try (key TEXT, fault TEXT);
"""


class Busy(Exception):
    """The service refused: too many requests. Nothing was charged."""


class Conflict(Exception):
    """The key was used before with another request. Nothing was charged."""


def start(ledger: Path) -> str:
    """Start the service in a process of its own.

    Parameters
    ----------
    ledger : Path
        The file of what was charged.

    Returns
    -------
    str
        Host and port. It ends when the process that started it does.
    """
    server = subprocess.Popen(
        [sys.executable, __file__, str(ledger)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    _alive.append(server)
    assert server.stdout is not None
    return server.stdout.readline().strip()


_alive: list[subprocess.Popen[str]] = []


def charge(address: str, key: str, customer: str, cents: int) -> str:
    """Charge a customer.

    Parameters
    ----------
    address : str
        From `start`.
    key : str
        Idempotency key: the service charges once for each.
    customer : str
        Who pays.
    cents : int
        How much.

    Returns
    -------
    str
        Number of the receipt.

    Raises
    ------
    Busy
        If the service refused; nothing was charged.
    Conflict
        If the key was used for another request.
    OSError
        If it is unknown whether it was charged.
    """
    line = HTTPConnection(address, timeout=PATIENCE)
    with closing(line):
        body = json.dumps({"customer": customer, "cents": cents})
        line.request("POST", "/charges", body, {"Idempotency-Key": key})
        response = line.getresponse()
        answer = json.loads(response.read())
    if response.status in ERRORS:
        raise ERRORS[response.status](response.reason)
    if response.status != CREATED:
        raise ConnectionError(f"{response.status} {response.reason}")
    return str(answer["receipt"])


ERRORS: dict[int, type[Exception]] = {CONFLICT: Conflict, BUSY: Busy}


def charged(ledger: Path) -> list[tuple[str, str, int]]:
    """Return all that was charged: key, customer, cents.

    Parameters
    ----------
    ledger : Path
        The service's file.

    Returns
    -------
    list of tuple
        In order of the keys.
    """
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as book:
        return book.execute("SELECT * FROM charge ORDER BY key").fetchall()


class _Book:
    """The ledger; one request at a time writes to it."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._lines = sqlite3.connect(path, check_same_thread=False)
        # What a process has written outlives it without a sync of the disk.
        self._lines.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {TABLES}"
        )

    def take(self, key: str, asked: Any) -> tuple[str, int]:
        """Charge once for each key; return the fault of this try, and the status."""
        with self._lock, self._lines as lines:
            tries = lines.execute("SELECT 1 FROM try WHERE key = ?", (key,)).fetchall()
            fault = "" if tries else FAULTS.get(_number(key) % KINDS, "")
            lines.execute("INSERT INTO try VALUES (?, ?)", (key, fault))
            if fault in REFUSED:
                return fault, REFUSED[fault]
            row = (key, asked["customer"], asked["cents"])
            lines.execute("INSERT OR IGNORE INTO charge VALUES (?, ?, ?)", row)
            found = lines.execute("SELECT * FROM charge WHERE key = ?", (key,))
            return fault, CREATED if found.fetchone() == row else CONFLICT


def _number(key: str) -> int:
    """Return a number that a key always has."""
    return int(hashlib.sha256(key.encode()).hexdigest(), 16)


class _Desk(BaseHTTPRequestHandler):
    """Answers one request."""

    protocol_version = "HTTP/1.1"
    book: _Book

    def do_POST(self) -> None:
        """Charge, with the fault that this key's first try meets."""
        key = self.headers["Idempotency-Key"]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault, status = self.book.take(key, asked)
        if fault == "hung":
            self.rfile.read(1)  # until the client has had enough
        if fault in {"hung", "silent"}:
            self.close_connection = True
            return
        self._answer(BAD_GATEWAY if fault == "late" else status, key)

    def _answer(self, status: int, key: str) -> None:
        """Send an answer."""
        receipt = {"receipt": f"{_number(key):064x}"[:12]} if status == CREATED else {}
        body = json.dumps(receipt).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _serve(ledger: str) -> None:
    """Serve until standard input ends, which it does with the process that began."""
    _Desk.book = _Book(ledger)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Desk)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1])
