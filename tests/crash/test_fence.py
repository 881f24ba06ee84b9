"""A process that was stopped, replaced and continued can write nothing more."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.crash import tidy
from tests.crash.lab import Lab, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = ("load", "big", "files", "last")
REPLACE = {"NBCKPT_OVERLAP": "replace"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def changed_by_zombie(lab: Lab, step: str, **job: Any) -> tuple[list[str], str]:
    """Return the records that a zombie changed after its run was taken, and its error.

    It is stopped in the body of a step, another process takes the run over and
    completes it, and then it goes on.
    """
    folder = lab.new_folder()
    zombie = lab.run(folder, stop=step, **job)
    assert zombie.status == -signal.SIGSTOP
    heir = lab.run(folder, env=REPLACE)
    assert heir.error == ""
    before = tidy.read(folder / ".nbckpt").records
    (folder / "report.json").unlink()
    ended = outcome(folder, lab.ask(**{"continue": zombie.pid}))
    after = tidy.read(folder / ".nbckpt").records
    last = lab.run(folder)
    assert (last.error, last.digest) == ("", heir.digest)
    keys = before.keys() | after.keys()
    return [key for key in keys if before.get(key) != after.get(key)], ended.error


@pytest.mark.parametrize("step", STEPS)
def test_zombie_writes_no_record_and_is_told_why(lab: Lab, step: str) -> None:
    changed, error = changed_by_zombie(lab, step)
    assert changed == []
    assert error.startswith("Fenced")
    assert "taken over" in error


def test_without_the_fence_a_zombie_would_write(lab: Lab) -> None:
    """Negative control: the test above can fail."""
    changed, error = changed_by_zombie(lab, "big", sabotage="no_fence")
    assert error == ""
    assert any(key.startswith("step/") for key in changed)
