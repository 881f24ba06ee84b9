"""No room for a checkpoint: the cell fails, the values stay, the next try saves."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.stage import Stage, is_whole, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cases.session import Session

LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, -1))"
BIG = 2


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    return stage_of("33_disk_full_on_checkpoint")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MiB, where that can be made."""
    place = tmp_path / "disk"
    place.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", str(place)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def enlarge(place: Path) -> None:
    command = ["mount", "-o", "remount,size=512m", str(place)]
    subprocess.run(command, check=True)


def judge_failed_save(stage: Stage, kernel: Session) -> None:
    """See that the cell of ``big`` failed with a remedy, and that its value is there."""
    replies = stage.run_all(kernel)
    complaint = replies[-1].complaint
    assert len(replies) == BIG + 1, complaint
    assert "SaveFailed" in complaint
    assert "big" in complaint
    assert kernel.value("blob.nbytes") == str(64 << 20)
    assert "small" in {key.split("/")[-1] for key in stage_steps(stage)}


def stage_steps(stage: Stage) -> list[str]:
    return list(stage.records().steps)


def judge_second_try(stage: Stage, kernel: Session, **extra: str) -> None:
    """See that the cell, run again, saves without its body, and that a restart skips."""
    token = kernel.value("tok_big")
    assert kernel.run(stage.cells()[BIG]).status == "ok"
    assert kernel.value("tok_big") == token
    kernel.close()
    again = stage.run_fresh(**extra)
    assert is_whole(again)
    assert repr(tokens(again)["big"]) == token


def test_too_large_a_file_is_saved_by_the_second_try(stage: Stage) -> None:
    kernel = stage.kernel()
    kernel.run(LIMIT.format(8 << 20))
    judge_failed_save(stage, kernel)
    assert stage.records().dangling() == []
    kernel.run(LIMIT.format(-1))
    judge_second_try(stage, kernel)


def test_after_a_restart_only_the_unsaved_step_runs_again(stage: Stage) -> None:
    kernel = stage.kernel()
    kernel.run(LIMIT.format(8 << 20))
    replies = stage.run_all(kernel)
    token = kernel.value("tok_big")
    kernel.close()
    again = stage.run_fresh()
    assert is_whole(again)
    assert tokens(again)["small"] == tokens(replies)["small"]
    assert repr(tokens(again)["big"]) != token
    assert stage.records().stray() == []


def test_full_disk_keeps_what_was_recorded(stage: Stage, small_disk: Path) -> None:
    store = small_disk / "store"
    stage_store = {"NBCKPT_STORE": str(store)}
    kernel = stage.kernel(**stage_store)
    replies = stage.run_all(kernel)
    assert len(replies) == BIG + 1
    assert "SaveFailed" in replies[-1].complaint
    assert "room" in replies[-1].complaint or "space" in replies[-1].complaint
    assert kernel.value("blob.nbytes") == str(64 << 20)
    status = stage.cli("status", "--json", **stage_store)
    assert status.returncode == 0, status.stderr
    enlarge(small_disk)
    judge_second_try(stage, kernel, **stage_store)
