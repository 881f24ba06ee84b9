"""Who was replaced is ended before the heir acts; nobody else is ever touched."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from nbckpt.errors import Fenced, StopForHuman
from nbckpt.records import Attempt, Holder, Lease, StepState
from nbckpt.runs import takeover
from nbckpt.runs.history import Reader
from nbckpt.runs.leases import Leases
from nbckpt.runs.processes import this_process
from nbckpt.store import Store
from nbckpt.trust import Secret
from tests.former import a_process, holder_of

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from nbckpt.store import Transaction

ME = this_process()
POLITE = "import signal; print('up', flush=True); [signal.pause() for _ in range(9)]"
DEAF = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {POLITE}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store", Secret(b"s" * 32))
    yield store
    store.close()


@pytest.fixture
def child(request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that waits; without a mark it ends by SIGINT."""
    with a_process(getattr(request, "param", POLITE)) as process:
        yield process


def leave(
    store: Store,
    holder: Holder,
    duration: float = 30.0,
    state: StepState = StepState.RUNNING,
) -> None:
    """Have a holder hold the run, with a step in this state."""
    lease = Lease(5, holder, duration=duration).to_json()
    attempt = Attempt("r", "s", 1, 5, 1, state, 0.0).to_json()

    def change(transaction: Transaction) -> None:
        transaction.put("lease/r", lease)
        transaction.put("attempt/r/s", attempt)

    store.transact(change)


def displaced(store: Store) -> list[str]:
    return [key for key, _ in store.scan("displaced/r/")]


def ends(store: Store) -> list[str]:
    return [e.reason for _, e in Reader(store).history("r") if "former" in e.kind]


def test_replaced_process_is_interrupted_before_an_effect(
    store: Store, child: subprocess.Popen[str]
) -> None:
    leave(store, holder_of(child.pid))
    hold = Leases(store).hold("r", "replace")
    assert child.poll() is None
    hold.alone()
    assert child.wait() == -signal.SIGINT
    assert "ended by SIGINT" in ends(store)[0]
    assert displaced(store) == []
    hold.release()


@pytest.mark.parametrize("state", [StepState.COMPLETED, StepState.FAILED])
def test_idle_holder_is_left_alone(
    store: Store, child: subprocess.Popen[str], state: StepState
) -> None:
    """The fence refuses whatever it begins."""
    leave(store, holder_of(child.pid), state=state)
    hold = Leases(store).hold("r", "replace")
    hold.alone()
    assert child.poll() is None
    hold.release()


def test_holder_in_the_middle_of_an_effect_alone_is_ended(
    store: Store, child: subprocess.Popen[str]
) -> None:
    """Its step failed, but a thread of it may still be in the call."""
    leave(store, holder_of(child.pid), state=StepState.FAILED)
    effect = {"token": 5, "state": "intent"}
    store.transact(lambda tx: tx.put("effect/r/s/pay", effect))
    hold = Leases(store).hold("r", "replace")
    hold.alone()
    assert child.wait() == -signal.SIGINT
    hold.release()


def test_step_that_its_heir_began_anew_does_not_hide_the_former_holder(
    store: Store, child: subprocess.Popen[str]
) -> None:
    leave(store, holder_of(child.pid))
    hold = Leases(store).hold("r", "replace")
    again = Attempt("r", "s", 2, hold.token, 2, StepState.RUNNING, 0.0).to_json()
    store.transact(lambda tx: tx.put("attempt/r/s", again))
    hold.alone()
    assert child.wait() == -signal.SIGINT
    hold.release()


@pytest.mark.parametrize("child", [DEAF], indirect=True)
def test_process_that_ignores_the_interrupt_is_killed_after_the_grace(
    store: Store, child: subprocess.Popen[str]
) -> None:
    leave(store, holder_of(child.pid))
    hold = Leases(store).hold("r", "replace")
    hold.alone(grace=0.1)
    assert child.wait() == -signal.SIGKILL
    assert "ended by SIGKILL" in ends(store)[0]
    hold.release()


def test_stopped_process_is_killed(store: Store, child: subprocess.Popen[str]) -> None:
    leave(store, holder_of(child.pid))
    os.kill(child.pid, signal.SIGSTOP)
    hold = Leases(store).hold("r", "replace")
    hold.alone(grace=0.1)
    assert child.wait() == -signal.SIGKILL
    hold.release()


def test_first_of_two_replaced_ones_is_ended_though_the_second_died(
    store: Store, child: subprocess.Popen[str]
) -> None:
    leave(store, holder_of(child.pid))
    Leases(store).hold("r", "replace").release()
    hold = Leases(store).hold("r")
    hold.alone()
    assert child.wait() == -signal.SIGINT
    hold.release()


@pytest.mark.parametrize("field", ["ticks", "boot", "namespace", "host"])
def test_process_of_another_identity_is_never_touched(
    store: Store, child: subprocess.Popen[str], field: str
) -> None:
    """Each part of the identity decides alone, also between the look and the signal."""
    other: object = 7 if field == "ticks" else "another"
    stranger = replace(holder_of(child.pid), **{field: other})  # type: ignore[arg-type]
    leave(store, stranger, duration=0.05)
    hold = Leases(store).hold("r", "replace")
    hold.alone(grace=0.1)
    assert takeover._end_process(stranger, 0.1) == ""
    assert child.poll() is None
    hold.release()


def test_without_the_look_at_its_identity_a_stranger_would_be_ended(
    child: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the test above can fail."""
    monkeypatch.setattr(takeover, "_is_exactly", lambda _: True)
    takeover._end_process(replace(holder_of(child.pid), ticks=7), 5)
    assert child.wait() == -signal.SIGINT


def test_parent_is_never_ended_and_a_person_is_asked(store: Store) -> None:
    leave(store, holder_of(os.getppid()))
    hold = Leases(store).hold("r", "replace")
    with pytest.raises(StopForHuman, match="parent of this one"):
        hold.alone(grace=0.1)
    assert displaced(store)
    hold.release()


def test_own_process_is_never_ended(store: Store) -> None:
    Leases(store).hold("r")
    hold = Leases(store).hold("r", "replace")
    hold.alone()
    hold.release()


def test_holder_elsewhere_is_waited_for_by_the_own_clock(store: Store) -> None:
    leave(store, replace(ME, host="far-away"), duration=0.3)
    begun = time.monotonic()
    hold = Leases(store).hold("r", "replace")
    hold.alone()
    assert time.monotonic() - begun >= 0.3
    assert "its lease ran out" in ends(store)[0]
    hold.release()


def test_who_was_replaced_itself_ends_nobody(
    store: Store, child: subprocess.Popen[str]
) -> None:
    leave(store, holder_of(child.pid))
    old = Leases(store).hold("r", "replace")
    new = Leases(store).hold("r", "replace")
    with pytest.raises(Fenced):
        old.alone()
    assert child.poll() is None
    new.release()


def test_process_that_does_not_end_leaves_it_to_a_person(
    store: Store, child: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(store, holder_of(child.pid))
    hold = Leases(store).hold("r", "replace")
    monkeypatch.setattr(takeover, "_ended", lambda _handle, _seconds: False)
    with pytest.raises(StopForHuman, match="does not end"):
        hold.alone()
    assert displaced(store)
    hold.release()
