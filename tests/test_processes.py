"""Which process this is, and whether another still runs: see also test_leases."""

from __future__ import annotations

import os
from dataclasses import replace

from nbckpt.runs.processes import is_alive, this_process, ticks


def test_process_is_known_by_its_start_in_ticks_whatever_the_wall_clock_says() -> None:
    me = this_process()
    assert me.ticks == ticks(os.getpid()) > 0
    assert is_alive(replace(me, started=me.started - 3600))
    assert not is_alive(replace(me, ticks=me.ticks + 1))


def test_without_ticks_the_start_time_decides() -> None:
    me = replace(this_process(), ticks=0)
    assert is_alive(me)
    assert not is_alive(replace(me, started=me.started - 3600))


def test_number_that_nobody_has_tells_no_start() -> None:
    assert ticks(2**22 + 1) == 0
