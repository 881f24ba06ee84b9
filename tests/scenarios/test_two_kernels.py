"""Two kernels on one run: one works, the other is told so; a zombie is fenced out."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.stage import Stage, is_whole, ran, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cases.session import Reply, Session

CASE = "38_two_kernels_one_run"
GATE = "while not os.path.exists('go'): time.sleep(0.01)"
HELD = "RunHeld"


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    stage = stage_of(CASE)
    # A number that is the same in each pass: as an input of the steps it counts.
    stage.edit("fd = os.open(", "fd = 99\n_ = os.dup2(os.open(")
    stage.edit("os.O_WRONLY)", "os.O_WRONLY), fd)")
    return stage


@pytest.fixture
def gated(stage: Stage) -> Stage:
    """The notebook whose step w2 waits for a file, so that no timing decides."""
    stage.edit("b'w2\\n'); time.sleep(0.5)", f"b'w2\\n')\n{GATE}\n_ = 0")
    return stage


def bodies(stage: Stage) -> Counter[str]:
    log = stage.work / "log.txt"
    return Counter(log.read_text("utf-8").split() if log.exists() else [])


def start_all(stage: Stage, session: Session) -> list[str]:
    return [session.send(source) for source in stage.cells()]


def collect(session: Session, ids: list[str]) -> list[Reply]:
    return [session.collect(msg_id) for msg_id in ids]


def reach_w2(stage: Stage) -> tuple[Session, list[str]]:
    """Return a kernel in the middle of the body of w2, and its cells."""
    session = stage.kernel()
    ids = start_all(stage, session)
    wait_until(lambda: bodies(stage)["w2"])
    return session, ids


def test_of_two_kernels_at_once_one_runs_and_the_other_is_refused(stage: Stage) -> None:
    kernels = [stage.kernel(), stage.kernel()]
    for kernel in kernels:
        assert kernel.value("1") == "1"
    sent = [(kernel, start_all(stage, kernel)) for kernel in kernels]
    passes = [collect(kernel, ids) for kernel, ids in sent]
    assert bodies(stage) == {"w1": 1, "w2": 1}
    (winner,) = [n for n, replies in enumerate(passes) if is_whole(replies)]
    loser = 1 - winner
    refused = next(reply for reply in passes[loser] if reply.error)
    assert HELD in refused.complaint
    assert str(kernels[winner].pid) in refused.complaint
    kernels[winner].close()
    assert is_whole(stage.run_all(kernels[loser]))
    assert bodies(stage) == {"w1": 1, "w2": 1}


def test_killed_holder_is_taken_over_and_only_its_step_runs_again(gated: Stage) -> None:
    first, _ = reach_w2(gated)
    second = gated.kernel()
    refused = gated.run_all(second)[-1]
    assert HELD in refused.complaint
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: not first.alive)
    (gated.work / "go").touch()
    assert is_whole(gated.run_all(second))
    assert bodies(gated) == {"w1": 1, "w2": 2}


def test_stopped_holder_is_not_taken_over_unasked(gated: Stage) -> None:
    first, ids = reach_w2(gated)
    os.kill(first.pid, signal.SIGSTOP)
    second = gated.kernel()
    assert HELD in gated.run_all(second)[-1].complaint
    os.kill(first.pid, signal.SIGCONT)
    (gated.work / "go").touch()
    assert is_whole(collect(first, ids))
    assert bodies(gated) == {"w1": 1, "w2": 1}


def replace_zombie(gated: Stage, plant: str = "") -> tuple[Session, list[str]]:
    """Stop a holder in w2, let another kernel take over and finish; the zombie waits."""
    zombie = gated.kernel()
    if plant:
        assert zombie.run(plant).status == "ok"
    ids = start_all(gated, zombie)
    wait_until(lambda: bodies(gated)["w2"])
    os.kill(zombie.pid, signal.SIGSTOP)
    (gated.work / "go").touch()
    heir = gated.kernel(NBCKPT_OVERLAP="replace")
    assert is_whole(gated.run_all(heir))
    assert bodies(gated) == {"w1": 1, "w2": 2}
    heir.close()
    return zombie, ids


def test_zombie_is_fenced_out_and_told_so(gated: Stage) -> None:
    zombie, ids = replace_zombie(gated)
    before = gated.records().records
    os.kill(zombie.pid, signal.SIGCONT)
    replies = collect(zombie, ids)
    assert any("Fenced" in reply.complaint for reply in replies)
    assert gated.records().records == before
    assert not is_whole(gated.run_all(zombie))
    assert gated.records().records == before
    again = gated.run_fresh()
    assert is_whole(again)
    assert bodies(gated) == {"w1": 1, "w2": 2}


def test_without_the_fence_the_zombie_would_write(gated: Stage) -> None:
    """Negative control: the test above can fail."""
    plant = "from tests.crash import sabotage; sabotage.PLANTS['no_fence']()"
    zombie, ids = replace_zombie(gated, plant)
    before = gated.records().records
    os.kill(zombie.pid, signal.SIGCONT)
    collect(zombie, ids)
    after = gated.records().records
    assert any(after[key] != before[key] for key in before if key.startswith("step/"))


def test_take_over_by_magic_and_concurrent_run(gated: Stage) -> None:
    first, ids = reach_w2(gated)
    aside = gated.kernel()
    assert aside.run("%load_ext nbckpt").status == "ok"
    assert aside.run("%nbckpt start --overlap concurrent").status == "ok"
    (gated.work / "go").touch()
    assert is_whole(gated.run_all(aside))
    assert is_whole(collect(first, ids))
    assert bodies(gated) == {"w1": 2, "w2": 2}
    runs = [key for key in gated.records().records if key.startswith("run/")]
    assert len(runs) == 2
    heir = gated.kernel()
    assert heir.run("%load_ext nbckpt").status == "ok"
    assert heir.run("%nbckpt start --overlap replace").status == "ok"
    assert is_whole(gated.run_all(heir))
    assert bodies(gated) == {"w1": 2, "w2": 2}


def test_overlap_skip_headless_leaves_with_code_4(gated: Stage) -> None:
    first, ids = reach_w2(gated)
    refused = gated.cli("run", "case.ipynb")
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert str(first.pid) in refused.stderr + refused.stdout
    (gated.work / "go").touch()
    assert is_whole(collect(first, ids))
    assert ran([], gated.run_all(first)) == {"w1", "w2"}
    assert bodies(gated) == {"w1": 1, "w2": 1}
