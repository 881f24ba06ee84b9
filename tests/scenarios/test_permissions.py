"""Nobody else can read a store, and one that others could change is not opened."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.stage import Stage, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    stage = stage_of("47_store_directory_permissions")
    assert is_whole(stage.run_fresh())
    return stage


def refusal(stage: Stage) -> str:
    """Return why Run All is refused; the step's body must not have run."""
    kernel = stage.kernel()
    reply = stage.run_all(kernel)[-1]
    assert kernel.value("'tok_a' in globals()") == "False"
    kernel.close()
    return reply.complaint


def test_store_is_closed_to_others_under_any_umask(stage: Stage) -> None:
    entries = [stage.store, *stage.store.rglob("*")]
    assert len(entries) > 5
    opened = [str(path) for path in entries if path.lstat().st_mode & 0o077]
    assert opened == []


def test_store_open_to_others_is_refused(stage: Stage) -> None:
    stage.store.chmod(0o777)
    complaint = refusal(stage)
    assert "StoreRefused" in complaint
    assert str(stage.store) in complaint
    done = stage.cli("status")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_symbolic_link_in_place_of_a_store_is_refused(stage: Stage) -> None:
    aside = stage.root / "aside"
    stage.store.rename(aside)
    stage.store.symlink_to(aside)
    complaint = refusal(stage)
    assert "StoreRefused" in complaint
    assert "link" in complaint


def test_store_of_another_user_is_refused(stage: Stage) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder away")
    shutil.chown(stage.store, 12345)
    complaint = refusal(stage)
    assert "StoreRefused" in complaint
    assert "another user" in complaint


def test_secret_open_to_others_is_refused(stage: Stage) -> None:
    (secret,) = (stage.root / "jupyter").rglob("secret")
    assert secret.stat().st_mode & 0o077 == 0
    secret.chmod(0o644)
    assert "chmod 600" in refusal(stage)
