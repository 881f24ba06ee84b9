"""The browser goes away in the middle of a step; nothing that it printed is lost."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from tests.cases.session import fold
from tests.scenarios.stage import Stage, is_whole, ran

if TYPE_CHECKING:
    from collections.abc import Callable

    from jupyter_client.blocking.client import BlockingKernelClient

SETUP, SLOW = 0, 1
LINES = "".join(f"line {number}\n" for number in range(20))


def read_lines(client: BlockingKernelClient, msg_id: str, count: int) -> None:
    """Read what a cell prints until it has printed some lines."""
    text = ""
    while text.count("\n") < count:
        try:
            message = client.get_iopub_msg(timeout=1)
        except queue.Empty:
            continue
        if message["parent_header"].get("msg_id") == msg_id:
            text += message["content"].get("text", "")


def test_step_that_nobody_watched_shows_all_its_lines(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("19_browser_closed_during_step")
    kernel = stage.kernel()
    cells = stage.cells()
    kernel.run(cells[SETUP])
    msg_id = kernel.send(cells[SLOW])
    read_lines(kernel.client, msg_id, 3)
    kernel.leave()
    replies = stage.run_all(kernel)
    assert is_whole(replies)
    assert replies[SLOW].text() == LINES
    kernel.close()
    again = stage.run_fresh()
    assert ran(replies, again) == set()
    assert again[SLOW].text() == LINES
    started = [k for k in stage.records().records if k.startswith("attempt/")]
    assert len(started) == 1


def test_folding_is_that_of_a_front_end() -> None:
    """The reader of these tests joins, updates and clears as front ends do."""
    outputs: list[dict[str, object]] = []
    for text in ("a", "b"):
        fold(outputs, "stream", {"name": "stdout", "text": text})
    assert outputs == [{"t": "stream", "name": "stdout", "text": "ab"}]
    fold(outputs, "clear_output", {"wait": False})
    assert outputs == []
