"""A replay is no faster than front ends can take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nbckpt.outputs import playback
from nbckpt.outputs.playback import _lines, _Pace

if TYPE_CHECKING:
    from collections.abc import Callable


class Pause:
    """Counts the waits instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []
        self.wait = self.waits.append


def test_only_what_exceeds_a_burst_is_slowed_down() -> None:
    pace = _Pace()
    pause = Pause()
    pace._pause = pause  # type: ignore[assignment]
    for _ in range(500):
        pace.keep(100)
    assert pause.waits == []

    for _ in range(3):
        pace.keep(100)
    assert pause.waits == [0.001] * 3


def test_the_queue_is_emptied_before_it_holds_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(playback, "flush", lambda *_: flushed.append(1))
    pace = _Pace()
    for _ in range(12):
        pace.keep(1 << 20)

    assert len(flushed) == 2


@pytest.mark.parametrize("wrap", [bytes, memoryview])
@pytest.mark.parametrize("size", [0, 1, 99, 3_000_000])
def test_lines_are_found_in_data_of_any_size(
    wrap: Callable[[bytes], bytes | memoryview], size: int
) -> None:
    lines = [b"a" * size, b"b", b"c" * size]
    data = wrap(b"".join(line + b"\n" for line in lines))

    assert list(_lines(data)) == lines


def test_no_data_are_no_lines() -> None:
    assert list(_lines(b"")) == []


def test_data_that_break_off_are_refused_after_the_whole_lines() -> None:
    lines = _lines(b"a\nb")

    assert next(lines) == b"a"
    with pytest.raises(ValueError, match="break off"):
        next(lines)
