"""A poisoned store executes nothing: under no verb, at no opening, in no Run All."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.scenarios import poison
from tests.scenarios.stage import Stage, is_whole, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

# A big array has a pack of its own; the small values lie among the records.
BIG = "arr = np.arange(3); large = np.arange(200_000)"
VERBS = (
    ["status"], ["status", "--json"], ["plan", "case.ipynb"], ["show", "a"],
    ["show", "a", "--json"], ["explain", "a"], ["runs"], ["runs", "--json"], ["verify"],
    ["verify", "--json"], ["rerun", "a"], ["accept", "a"], ["gc"],
)  # fmt: skip
RUN_VERBS = """
import contextlib, io, json, sys, traceback
from nbckpt import cli
told = []
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            cli.main()
        except SystemExit:
            pass
        except BaseException:
            told.append([words, traceback.format_exc()])
print(json.dumps(told))
"""


@pytest.fixture
def stage(stage_of: Callable[[str], Stage]) -> Stage:
    stage = stage_of("46_poisoned_store")
    stage.edit("arr = np.arange(3)", BIG)
    return stage


def run_verbs(stage: Stage) -> list[tuple[list[str], str]]:
    """Run every verb in one process; return those that ended in a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_VERBS, json.dumps(VERBS)],
        cwd=stage.work,
        env=stage.env(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[tuple[list[str], str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def another_store(stage: Stage, stage_of: Callable[[str], Stage]) -> Stage:
    """Return the store of another user who ran the same notebook, with other values."""
    other = stage_of("46_poisoned_store")
    shutil.copy(stage.notebook, other.notebook)
    other.edit("{'k': [1, 2]}", "{'k': ['planted']}")
    assert is_whole(other.run_fresh())
    return other


@pytest.mark.parametrize("change", poison.POISONS, ids=lambda change: change.__name__)
def test_poisoned_store_executes_nothing(
    change: Callable[..., None], stage: Stage, stage_of: Callable[[str], Stage]
) -> None:
    first = stage.run_fresh()
    assert is_whole(first)
    other = another_store(stage, stage_of) if "another" in change.__name__ else stage
    change(stage.store, target=stage.pwned, other=other.store)
    assert run_verbs(stage) == []
    assert not stage.pwned.exists()
    kernel = stage.kernel()
    replies = stage.run_all(kernel)
    assert not stage.pwned.exists()
    if is_whole(replies):
        assert kernel.value("(x, arr.tolist(), int(large.sum()))") == str(
            ({"k": [1, 2]}, [0, 1, 2], 19999900000)
        )
        return
    complaint = replies[-1].complaint
    assert complaint.startswith(("Store", "UsageError", "NotFound")), complaint
    assert tokens(first)["a"] not in kernel.value("globals().get('tok_a', '')")


def test_bait_is_not_removed(stage: Stage) -> None:
    assert is_whole(stage.run_fresh())
    poison.file_names(stage.store, stage.pwned)
    run_verbs(stage)
    stage.run_fresh()
    assert stage.pwned.with_name("bait.pickle").exists()


def test_another_users_store_is_only_looked_at_until_trusted(
    stage: Stage, stage_of: Callable[[str], Stage]
) -> None:
    other = another_store(stage, stage_of)
    shutil.copytree(other.store, stage.store)
    before = stage.records().records
    looked = stage.cli("status")
    assert looked.returncode == 0, looked.stderr
    refused = stage.run_fresh()[-1].complaint
    assert "nbckpt trust" in refused
    assert stage.records().records == before
    trusted = stage.cli("trust", ".nbckpt")
    assert trusted.returncode == 0, trusted.stderr
    assert is_whole(stage.run_fresh())
