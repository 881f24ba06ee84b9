"""One holder for a run: tokens grow, the fenced write nothing, the dead give way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest

from nbckpt.errors import Fenced, RunHeld
from nbckpt.records import Holder, Lease
from nbckpt.runs import leases, lines
from nbckpt.runs.history import Reader
from nbckpt.runs.leases import Leases, describe, is_free
from nbckpt.runs.processes import is_alive, is_here, this_process, ticks
from nbckpt.store import Store
from nbckpt.trust import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbckpt.runs.leases import Hold
    from nbckpt.store import Transaction

ME = this_process()
AWAY = replace(ME, host="far-away", pid=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store", Secret(b"s" * 32))
    yield store
    store.close()


def gone() -> Holder:
    """Return a holder whose process has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    holder = replace(ME, pid=child.pid)
    child.wait()
    return holder


def leave(store: Store, holder: Holder, **changes: object) -> Lease:
    """Put a lease into the store as if somebody had taken run r."""
    lease = Lease(token=5, holder=holder, taken_at=1.0, beat=3, duration=30.0)
    lease = replace(lease, **changes)  # type: ignore[arg-type]
    store.transact(lambda tx: tx.put("lease/r", lease.to_json()))
    return lease


def lease_of(store: Store) -> Lease:
    return Lease.from_json(store.get("lease/r"))


def write(store: Store, hold: Hold) -> None:
    def change(tx: Transaction) -> None:
        hold.guard(tx)
        tx.put("written", hold.token)

    store.transact(change)


def test_first_holder_has_the_first_token(store: Store) -> None:
    hold = Leases(store).hold("r")
    assert hold.token == 1
    assert lease_of(store).holder.pid == ME.pid
    hold.release()


def test_token_grows_with_every_taking_also_after_a_release(store: Store) -> None:
    tokens = []
    for _ in range(4):
        hold = Leases(store).hold("r")
        tokens.append(hold.token)
        hold.release()
    assert tokens == [1, 2, 3, 4]


def test_living_holder_is_not_disturbed(store: Store) -> None:
    hold = Leases(store).hold("r")
    with pytest.raises(RunHeld, match=f"process {ME.pid} on {ME.host}") as caught:
        Leases(store).hold("r")
    assert "--overlap replace" in caught.value.remedy
    write(store, hold)
    hold.release()


def test_refused_start_leaves_one_line_and_the_holder_undisturbed(store: Store) -> None:
    hold = Leases(store).hold("r")
    before, observer = lease_of(store), Leases(store)
    for _ in range(2):
        with pytest.raises(RunHeld):
            observer.hold("r")
    (line,) = [event for _, event in Reader(store).history("r")]
    assert line.kind == "skipped start"
    assert f"process {ME.pid}" in line.reason
    assert lease_of(store) == before
    assert lines.broken(store, "r") == ""
    write(store, hold)
    hold.release()


def test_two_runs_have_two_holders(store: Store) -> None:
    one, other = Leases(store).hold("r"), Leases(store).hold("s")
    write(store, one)
    write(store, other)
    one.release()
    other.release()


def test_replaced_holder_can_write_nothing_more(store: Store) -> None:
    old = Leases(store).hold("r")
    write(store, old)
    new = Leases(store).hold("r", "replace")
    assert new.token == 2
    with pytest.raises(Fenced, match="taken over by process") as caught:
        write(store, old)
    assert "Restart" in caught.value.remedy
    write(store, new)
    assert store.get("written") == 2
    new.release()


def test_fence_is_no_exception_that_a_cell_could_swallow(store: Store) -> None:
    old = Leases(store).hold("r")
    Leases(store).hold("r", "replace").release()
    assert not issubclass(Fenced, Exception)
    with pytest.raises(Fenced), contextlib.suppress(Exception):
        write(store, old)


def test_released_holder_can_write_nothing_more(store: Store) -> None:
    hold = Leases(store).hold("r")
    hold.release()
    hold.release()
    assert lease_of(store).released
    with pytest.raises(Fenced):
        write(store, hold)


def test_release_of_a_fenced_holder_leaves_the_new_one_alone(store: Store) -> None:
    old = Leases(store).hold("r")
    new = Leases(store).hold("r", "replace")
    old.release()
    assert not lease_of(store).released
    write(store, new)
    new.release()


def test_holder_whose_lease_is_gone_is_fenced(store: Store) -> None:
    hold = Leases(store).hold("r")
    store.transact(lambda tx: tx.delete("lease/r"))
    with pytest.raises(Fenced, match="lease is gone"):
        write(store, hold)
    hold.release()


def test_run_of_a_dead_process_is_taken_at_once(store: Store) -> None:
    leave(store, gone())
    hold = Leases(store).hold("r")
    assert hold.token == 6
    hold.release()


def test_pid_that_another_process_has_now_is_no_holder(store: Store) -> None:
    leave(store, replace(ME, ticks=ME.ticks - 1000))
    hold = Leases(store).hold("r")
    assert hold.token == 6
    hold.release()


def test_dead_process_after_a_reboot_counts_by_its_beats(store: Store) -> None:
    leave(store, replace(gone(), boot="another"))
    with pytest.raises(RunHeld):
        Leases(store).hold("r")


def test_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        started = psutil.Process(child.pid).create_time()
        holder = replace(ME, pid=child.pid, started=started, ticks=ticks(child.pid))
        # Waits for its end, and leaves it in the table of processes.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_alive(holder)
    finally:
        child.wait()


@pytest.mark.parametrize("beats", [0, 1, 3])
def test_holder_elsewhere_lives_as_long_as_it_beats(
    store: Store, monkeypatch: pytest.MonkeyPatch, beats: int
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    observer = Leases(store)
    for beat in range(beats + 1):
        leave(store, AWAY, beat=beat)
        with pytest.raises(RunHeld, match="far-away"):
            observer.hold("r")
        clock[0] += 29.0
    clock[0] += 2.0
    hold = observer.hold("r")
    assert hold.token == 6
    hold.release()


def test_wall_clock_of_another_host_decides_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    leave(store, AWAY, beat_at=1.0, taken_at=1.0)
    with pytest.raises(RunHeld):
        Leases(store).hold("r")


@pytest.mark.parametrize(
    ("field", "value"),
    [("host", "x"), ("boot", "x"), ("namespace", "pid:[0]")],
)
def test_other_host_boot_or_container_is_not_here(field: str, value: str) -> None:
    other = replace(ME, **{field: value})  # type: ignore[arg-type]
    assert is_here(ME)
    assert not is_here(other)


def test_nonce_tells_two_holders_of_one_process_apart() -> None:
    assert this_process() != this_process()
    assert replace(this_process(), nonce="") == replace(this_process(), nonce="")


@pytest.mark.parametrize("lease", [None, Lease(1, ME, released=True)])
def test_run_that_nobody_holds_is_free(lease: Lease | None) -> None:
    assert is_free(lease, {}, "r")


def test_first_beats_of_a_new_holder_elsewhere_are_signs_of_life() -> None:
    held = Lease(2, replace(ME, host="elsewhere"))
    long_ago = time.monotonic() - 2 * held.duration
    assert not is_free(held, {"r": ((1, 0), long_ago)}, "r")
    assert is_free(held, {"r": ((2, 0), long_ago)}, "r")


def test_beat_shows_life_and_keeps_the_token(store: Store) -> None:
    hold = Leases(store).hold("r")
    before = lease_of(store)
    store.transact(hold._beat, durable=False)
    after = lease_of(store)
    assert after.beat == before.beat + 1
    assert replace(after, beat=before.beat, beat_at=before.beat_at) == before
    hold.release()


def test_fenced_holder_does_not_beat(store: Store) -> None:
    old = Leases(store).hold("r")
    new = Leases(store).hold("r", "replace")
    with pytest.raises(Fenced):
        store.transact(old._beat)
    assert lease_of(store).beat == 0
    new.release()


def test_what_is_written_on_taking_is_written_with_the_lease(store: Store) -> None:
    def note(tx: Transaction, before: Lease | None) -> None:
        tx.put("before", before.token if before else 0)

    Leases(store).hold("r", on_taken=note).release()
    Leases(store).hold("r", on_taken=note).release()
    assert store.get("before") == 1


def test_refused_taking_writes_nothing(store: Store) -> None:
    hold = Leases(store).hold("r")
    with pytest.raises(RunHeld):
        Leases(store).hold("r", on_taken=lambda tx, _: tx.put("taken", 1))
    assert store.get("taken") is None
    hold.release()


@pytest.mark.parametrize(
    ("lease", "word"),
    [
        (None, "free"),
        (Lease(1, ME, released=True), "free"),
        (Lease(1, ME, beat_at=9e9), "alive"),
        (Lease(1, ME, beat_at=0.0), "late"),
        (Lease(1, AWAY), "unknown"),
        (Lease(1, replace(ME, ticks=1)), "dead"),
    ],
)
def test_standing_of_a_holder_is_one_word(lease: Lease | None, word: str) -> None:
    assert leases.standing(lease) == word


def test_holder_is_described_for_people() -> None:
    text = describe(Lease(1, AWAY, taken_at=0.0))
    assert text.startswith("process 1 on far-away since 19")
