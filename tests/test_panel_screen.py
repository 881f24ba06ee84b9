"""Two displays: what changes often, and the steps; a few updates a second at most."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from nbckpt.outputs.patches import is_muted
from nbckpt.panel import screen
from nbckpt.panel.screen import Screen, Ticker, show_names
from nbckpt.panel.view import LoopView, RunView, State, StepView

STEP = StepView(1, "a", State.RUNNING, started_at=100.0)
RUN = RunView("r-1", (STEP,), 100.0, 100.2)


class Kernel:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []
        self.display_pub = SimpleNamespace(session=self, pub_socket=None, topic=b"")
        self.parent = {"header": {"msg_id": "m-1"}}

    def get_parent(self) -> Any:
        return self.parent

    def send(
        self, _: Any, kind: str, content: Any, parent: Any, *, ident: bytes
    ) -> None:
        del parent, ident
        assert is_muted()
        data = content["data"]
        assert set(data) == {"text/plain", "text/html"}
        self.sent.append((kind, content["transient"]["display_id"], data["text/plain"]))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return a clock that the test turns."""
    found = SimpleNamespace(now=0.0)
    found.monotonic = lambda: found.now
    monkeypatch.setattr(screen, "time", found)
    return found


def a_screen(kernel: Any) -> tuple[Screen, SimpleNamespace]:
    """Return a screen that was shown, and where the run stands that it shows."""
    run = SimpleNamespace(view=RUN)
    found = Screen(kernel, lambda: run.view)
    found.show()
    kernel.sent.clear()
    return found, run


def test_head_alone_changes_while_a_step_runs(clock: SimpleNamespace) -> None:
    kernel = Kernel()
    shown, run = a_screen(kernel)
    run.view = replace(RUN, at=101.2, items=(LoopView("1", 3, 9),))
    assert shown.refresh()
    [(kind, _, text)] = kernel.sent
    assert kind == "update_display_data"
    assert "running for 1 s, 3 of 9 items" in text
    assert clock.now == 0.0


def test_nothing_is_sent_while_nothing_has_changed(clock: SimpleNamespace) -> None:
    kernel = Kernel()
    shown, run = a_screen(kernel)
    run.view = replace(RUN, at=100.9)
    assert shown.refresh()
    assert kernel.sent == []
    assert clock.now == 0.0


def test_steps_change_when_one_of_them_does(clock: SimpleNamespace) -> None:
    kernel = Kernel()
    shown, run = a_screen(kernel)
    run.view = RUN.put(replace(STEP, state=State.DONE))
    shown.refresh()
    assert len({display for _, display, _ in kernel.sent}) == 2
    assert "done" in kernel.sent[1][2]
    assert clock.now == 0.0


def test_at_most_four_updates_are_sent_in_a_second(clock: SimpleNamespace) -> None:
    kernel = Kernel()
    shown, run = a_screen(kernel)
    for hundredth in range(100):
        clock.now = hundredth / 100
        run.view = replace(RUN, items=(LoopView("1", hundredth),))
        shown.refresh()
    assert len(kernel.sent) == 4


def test_last_word_is_told_at_once(clock: SimpleNamespace) -> None:
    kernel = Kernel()
    shown, run = a_screen(kernel)
    run.view = replace(RUN, items=(LoopView("1", 1),))
    assert shown.refresh()
    run.view = RUN.put(replace(STEP, state=State.FAILED))
    assert not shown.refresh()
    assert shown.refresh(at_once=True)
    assert "failed" in kernel.sent[-1][2]
    assert clock.now == 0.0


def test_each_screen_has_displays_of_its_own() -> None:
    kernel = Kernel()
    for _ in range(2):
        Screen(kernel, lambda: RUN).show()
    assert len({display for _, display, _ in kernel.sent}) == 4
    assert {kind for kind, _, _ in kernel.sent} == {"display_data"}


def test_sealed_screen_holds_one_line() -> None:
    kernel = Kernel()
    shown, _ = a_screen(kernel)
    shown.seal("it is elsewhere")
    assert [text for _, _, text in kernel.sent] == ["it is elsewhere", ""]


def test_names_are_the_same_whatever_the_run_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda said, **_: shown.append(said))
    show_names(RunView("r-1", (STEP, StepView(2, "<b>"))))
    show_names(RunView("", (replace(STEP, state=State.DONE), StepView(2, "<b>"))))
    line = "nbckpt: a, {}. To see how far they are: %nbckpt status"
    said = {
        "text/plain": line.format("<b>"),
        "text/html": f"<p>{line.format('&lt;b&gt;')}</p>",
    }
    assert shown == [said, said]


def test_ticker_calls_until_it_is_told_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "INTERVAL", 0.001)
    calls: list[int] = []
    rested = threading.Event()

    def tick() -> bool:
        calls.append(threading.get_ident())
        if len(calls) % 3 == 0:
            rested.set()
        return len(calls) % 3 != 0

    ticker = Ticker(tick)
    for total in (3, 6):
        rested.clear()
        ticker.wake()
        assert rested.wait(20)
        assert len(calls) == total
    ticker.stop()
    assert len(set(calls)) == 1
    assert calls[0] != threading.get_ident()


def test_ticker_that_was_stopped_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "INTERVAL", 0.001)
    calls: list[int] = []
    ticker = Ticker(lambda: bool(calls.append(1)))
    ticker.stop()
    ticker.wake()
    ticker.stop()
    assert calls == []
