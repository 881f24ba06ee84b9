"""What a second process sees of a run: where it is, and that a dead one is dead."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.scenarios.stage import Stage, is_whole, ran, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cases.session import Session

GATE = (
    "import time\nopen('started', 'w').close()\n"
    "while not os.path.exists('go'): time.sleep(0.01)"
)


def gated(stage: Stage, old: str) -> tuple[Session, list[str]]:
    """Start a notebook whose step waits in its body; return its kernel and cells."""
    stage.edit(old, f"{GATE}\n{old}")
    kernel = stage.kernel()
    ids = [kernel.send(source) for source in stage.cells()]
    wait_until((stage.work / "started").exists)
    return kernel, ids


def state_of(told: Any, step: str) -> str:
    (found,) = [line for line in told["steps"] if line["name"] == step]
    state: str = found["state"]
    return state


def snapshot(store: Path) -> dict[str, bytes]:
    """Return the bytes of a store's files, but for the shared index of SQLite.

    A log of no bytes, which SQLite makes for a reader, counts as none.
    """
    found = {
        str(p.relative_to(store)): p.read_bytes()
        for p in store.rglob("*")
        if p.is_file()
    }
    return {k: v for k, v in found.items() if not k.endswith("-shm") and v}


def test_dead_run_is_shown_as_dead_with_the_step_it_died_in(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("54_dead_run_is_not_running")
    kernel, _ = gated(stage, "z = 0\n")
    alive = stage.told("status")
    assert alive["holder"]["standing"] == "alive"
    assert state_of(alive, "burn") == "running"
    os.kill(kernel.pid, signal.SIGKILL)
    wait_until(lambda: not kernel.alive)
    dead = stage.told("status")
    assert dead["holder"]["standing"] == "dead"
    assert dead["died_in"]["step"] == "burn"
    assert dead["holder"]["beat_age"] >= 0
    assert state_of(dead, "quick") == "completed"
    assert state_of(dead, "burn") == "interrupted"
    assert "dead" in stage.cli("status").stdout


def test_stopped_run_is_alive_again_when_it_goes_on(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("54_dead_run_is_not_running")
    kernel, ids = gated(stage, "z = 0\n")
    os.kill(kernel.pid, signal.SIGSTOP)
    assert stage.told("status")["holder"]["standing"] in {"alive", "late"}
    os.kill(kernel.pid, signal.SIGCONT)
    (stage.work / "go").touch()
    assert all(kernel.collect(msg_id).status == "ok" for msg_id in ids)
    assert state_of(stage.told("status"), "burn") == "completed"


def test_running_step_is_seen_from_outside_without_touching_the_store(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("57_reconnect_shows_where_it_is")
    kernel, ids = gated(stage, "for i in range(10):")
    before = snapshot(stage.store)
    told = stage.told("status")
    assert told["run"] == "case-1"
    assert (told["done"], told["total"], told["current"]["step"]) == (1, 3, "crunch")
    assert [state_of(told, step) for step in ("first", "crunch")] == [
        "completed",
        "running",
    ]
    assert told["holder"]["standing"] == "alive"
    assert told["holder"]["pid"] == kernel.pid
    after = snapshot(stage.store)
    assert after == before
    (stage.work / "go").touch()
    assert all(kernel.collect(msg_id).status == "ok" for msg_id in ids)


def test_store_that_cannot_be_written_can_be_looked_at(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("57_reconnect_shows_where_it_is")
    first = stage.run_fresh()
    assert is_whole(first)
    for path in [*stage.store.rglob("*"), stage.store]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    told = stage.told("status")
    assert {state_of(told, step) for step in ("first", "crunch", "last")} == {
        "completed"
    }
    for path in [stage.store, *stage.store.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    assert ran(first, stage.run_fresh()) == set()


@pytest.mark.parametrize("words", [["status", "nowhere-1"], ["show", "nothing"]])
def test_unknown_run_or_step_is_one_clear_line(
    words: list[str], stage_of: Callable[[str], Stage]
) -> None:
    stage = stage_of("57_reconnect_shows_where_it_is")
    assert is_whole(stage.run_fresh())
    done = stage.cli(*words)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert words[-1] in done.stderr
