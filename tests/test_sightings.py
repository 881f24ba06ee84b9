"""What a kernel sends, seen by audit events: requests and mails, not reads."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from nbckpt import sightings
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SENDER = """
import sys, http.client, urllib.request
from nbckpt import sightings
sightings.note_into(sys.argv[1])
base = sys.argv[2]
urllib.request.urlopen(base + "/read").read()
urllib.request.urlopen(base + "/paid", b"x").read()
request = urllib.request.Request(base + "/put", b"x", method="PUT")
urllib.request.urlopen(request).read()
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"POST /charges HTTP/1.1\r\nHost: x\r\n\r\n", "POST /charges"),
        (b"PUT /a?b=c HTTP/1.1\r\n", "PUT /a?b=c"),
        (b"PATCH /a HTTP/1.0\r\n", "PATCH /a"),
        (b"DELETE /a HTTP/1.1\r\n", "DELETE /a"),
        (bytearray(b"POST /a HTTP/1.1\r\n"), "POST /a"),
        ("POST /a HTTP/1.1\r\n", "POST /a"),
        (b"mail FROM:<a@b>\r\n", "mail"),
        ("MAIL FROM:<a@b>\r\n", "mail"),
        (b"GET /charges HTTP/1.1\r\n", ""),
        (b"HEAD / HTTP/1.1\r\n", ""),
        (b'{"POST": "/charges HTTP/"}', ""),
        (b"rcpt TO:<a@b>\r\n", ""),
        (iter([b"POST /a HTTP/1.1"]), ""),
        (None, ""),
    ],
)
def test_only_what_asks_for_a_change_is_seen(data: object, found: str) -> None:
    assert sightings.sent(data) == found


def test_file_that_nobody_wrote_holds_nothing(tmp_path: Path) -> None:
    assert sightings.read(tmp_path / "none") == Counter()


def test_equal_lines_are_counted_by_step(tmp_path: Path) -> None:
    path = tmp_path / "sent"
    path.write_text("pay\tPOST /a\npay\tPOST /a\n\tmail\n")

    assert sightings.read(path) == Counter({("pay", "POST /a"): 2, ("", "mail"): 1})


def test_requests_of_a_process_are_written_as_they_are_sent(
    tmp_path: Path, receiver: Receiver
) -> None:
    path = tmp_path / "sent"
    subprocess.run(
        [sys.executable, "-c", SENDER, str(path), receiver.base],
        check=True,
        timeout=60,
    )

    assert sightings.read(path) == Counter({("", "POST /paid"): 1, ("", "PUT /put"): 1})
    assert receiver.asked == ["GET /read", "POST /paid", "PUT /put"]
