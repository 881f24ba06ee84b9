"""Pings of a URL: a real server on loopback, and work that nothing of it stops."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from nbckpt.errors import BadStep
from nbckpt.runs import pings
from nbckpt.runs.pings import Pings, check_url, post
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def service() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pings, "TIMEOUT", 0.2)
    monkeypatch.setattr(pings, "PAUSE", 0.01)


def until(true: Callable[[], object]) -> None:
    end, pause = time.monotonic() + 30, threading.Event()
    while not true():
        assert time.monotonic() < end, "it never came true"
        pause.wait(0.01)


def nowhere() -> str:
    """Return a URL at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{found.getsockname()[1]}/secret"


def started(url: str, **more: object) -> tuple[Pings, list[str]]:
    """Start pings that never beat by themselves; return them and what they told."""
    told: list[str] = []
    beat = more.pop("beat", lambda: 0)
    return Pings(url, beat, told.append, **more), told  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["", "/fail"])
def test_start_and_end_are_told_in_order(service: Receiver, end: str) -> None:
    found, told = started(f"{service.base}/uuid")
    found.end(end, "step load: ValueError")
    assert service.asked == ["POST /uuid/start", f"POST /uuid{end}"]
    assert service.bodies == ["", "step load: ValueError"]
    assert told == []


def test_nothing_is_told_of_an_end_that_is_anothers(service: Receiver) -> None:
    found, _ = started(f"{service.base}/u")
    found.end(None)
    assert service.asked == ["POST /u/start"]


def test_sign_of_life_is_sent_only_while_the_run_beats(service: Receiver) -> None:
    """A hung kernel must look hung, though ``nbckpt run`` itself lives."""
    looks: list[int] = []

    def beat() -> int:
        """Move at every second look, up to the tenth."""
        looks.append(1)
        return min(len(looks) // 2, 5)

    found, _ = started(f"{service.base}/u", beat=beat, interval=0.01)
    until(lambda: len(looks) > 30)
    found.end("")
    assert service.asked == [*["POST /u/start"] * 6, "POST /u"]


def test_no_sign_of_life_claims_success(service: Receiver) -> None:
    """Until the end there is nothing but starts: a plain ping means that it is through."""
    found, _ = started(f"{service.base}/u", beat=object, interval=0.01)
    until(lambda: len(service.asked) > 5)
    assert set(service.asked) == {"POST /u/start"}
    found.end("/fail", "why")
    assert service.asked.count("POST /u/fail") == 1
    assert "POST /u" not in service.asked


@pytest.mark.usefixtures("quick")
def test_end_is_told_although_earlier_pings_hang(service: Receiver) -> None:
    service.gate.clear()
    found, told = started(f"{service.base}/u", beat=object, interval=0.01)
    until(lambda: told)
    service.gate.set()
    found.end("", "completed")
    assert service.asked[-1] == "POST /u"


@pytest.mark.usefixtures("quick")
def test_end_that_is_refused_is_tried_again(service: Receiver) -> None:
    service.statuses += [200, 503, 503, 200]
    found, told = started(f"{service.base}/u")
    found.end("/fail", "why")
    assert service.asked[1:] == ["POST /u/fail"] * 3
    assert told == ["Service Unavailable", ""]


@pytest.mark.usefixtures("quick")
def test_silent_service_delays_the_end_by_no_more_than_its_time(
    service: Receiver,
) -> None:
    service.gate.clear()
    found, told = started(f"{service.base}/u")
    begun = time.monotonic()
    found.end("")
    assert time.monotonic() - begun < 10
    assert len(told) == 1


@pytest.mark.usefixtures("quick")
def test_failing_pings_are_told_once_and_once_when_they_get_through(
    service: Receiver,
) -> None:
    service.statuses += [500] * 4
    found, told = started(f"{service.base}/u", beat=object, interval=0.01)
    until(lambda: len(service.asked) > 8)
    found.end("")
    assert told == ["Internal Server Error", ""]


@pytest.mark.usefixtures("quick")
def test_url_at_which_nobody_listens_is_told_without_the_url() -> None:
    url = nowhere()
    found, told = started(url)
    found.end("")
    assert len(told) == 1
    assert "refused" in told[0]
    assert "secret" not in told[0]


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 x y\r\n\r\n"])
def test_server_that_speaks_otherwise_is_a_failed_ping(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        assert post(f"http://127.0.0.1:{server.getsockname()[1]}/u")
        thread.join()


def test_long_and_odd_bodies_are_sent_as_far_as_they_go(service: Receiver) -> None:
    assert post(f"{service.base}/u", "ä\ud800" + "x" * 20_000) == ""
    assert len(service.bodies[0]) < 10_001
    assert service.bodies[0].startswith("ä?xx")


@pytest.mark.parametrize(
    "url",
    ["", "hc-ping.com/u", "file:///etc/passwd", "ftp://h/u", "https://", "http://[1/u"],
)
def test_url_that_can_not_be_pinged_is_refused_without_naming_it(url: str) -> None:
    with pytest.raises(BadStep, match="no http or https URL") as refused:
        check_url(url)
    assert "passwd" not in str(refused.value)


def test_slash_at_the_end_makes_no_difference() -> None:
    assert check_url("https://hc-ping.com/u/") == "https://hc-ping.com/u"
