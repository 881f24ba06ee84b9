"""What the cases say in words beyond their phases."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.stage import Stage, is_whole, ran

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EDITS = 12
RESULT_BYTES = 4_000_000
FRAME_BYTES = 40_000_000
SECRET = "s3cr3t-9f8e7d"  # noqa: S105 - a made one


def size(store: Path) -> int:
    """Return the bytes of a store, without SQLite's passing files."""
    files = (path for path in store.rglob("*") if path.is_file())
    return sum(p.stat().st_size for p in files if not p.name.endswith(("-wal", "-shm")))


def test_error_in_a_step_shows_the_users_line_last(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("52_error_in_step_stops_the_run")
    reply = stage.run_all(stage.kernel())[-1]
    assert reply.error is not None
    assert reply.error["ename"] == "ValueError"
    text = "\n".join(reply.error["traceback"])
    assert "int(" in text
    assert "nbckpt" not in text
    assert "----> 4" in text.replace("\x1b[32m", "").replace("\x1b[39m", "")


@pytest.mark.parametrize("line", ["", "a,b", "a --no-such-option", "../up"])
def test_bad_step_line_is_quoted_and_a_right_one_shown(
    line: str, stage_of: Callable[[str], Stage]
) -> None:
    stage = stage_of("68_bad_arguments_are_refused")
    kernel = stage.kernel()
    assert kernel.run(stage.cells()[0]).status == "ok"
    reply = kernel.run(f"%%step {line}\nopen('ran.txt', 'w').close()")
    complaint = reply.complaint
    assert complaint.startswith(("UsageError", "BadStep")), complaint
    assert (line.rsplit(maxsplit=1)[-1] if line else "name") in complaint
    assert "%%step clean" in complaint
    assert not (stage.work / "ran.txt").exists()
    assert stage.records().steps == {}


def test_progress_bar_is_stored_in_two_kilobytes(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("56_carriage_return_progress")
    assert is_whole(stage.run_fresh())
    (record,) = stage.records().steps.values()
    assert record["contents"]["size"] < 2000


def test_store_keeps_at_most_three_results_over_many_edits(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("58_store_growth_over_edits")
    kernel = stage.kernel()
    for seed in range(EDITS):
        assert is_whole(stage.run_all(kernel))
        stage.edit(f"seed = {seed}\n", f"seed = {seed + 1}\n")
    assert size(stage.store) < 3 * RESULT_BYTES
    kernel.close()
    assert stage.cli("gc").returncode == 0
    assert size(stage.store) < 1.5 * RESULT_BYTES
    stage.edit(f"seed = {EDITS}\n", f"seed = {EDITS - 1}\n")
    first = stage.run_fresh()
    assert is_whole(first)
    assert ran(first, stage.run_fresh()) == set()


def test_unchanged_frame_is_stored_once_and_a_changed_column_adds_a_part(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("59_big_unchanged_variable_once")
    kernel = stage.kernel()
    sizes = []
    for source in stage.cells():
        assert kernel.run(source).status == "ok"
        sizes.append(size(stage.store) if stage.store.exists() else 0)
    _, load, *reads, alter, _ = sizes
    assert load < 1.05 * FRAME_BYTES
    assert all(b - a < 200_000 for a, b in zip([load, *reads], reads, strict=False))
    # The aim is the column alone; columns that pandas moved to a block of their own
    # lie at other places in their chunks, so half of the frame is written again.
    assert alter - reads[-1] < 0.6 * FRAME_BYTES


def test_value_of_an_environment_variable_is_nowhere_in_the_store(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("48_secret_in_variables_and_output")
    first = stage.run_fresh(CASE_TOKEN=SECRET)
    assert is_whole(first)
    forms = [SECRET.encode(), base64.b64encode(SECRET.encode())[:-4]]
    files = [path.read_bytes() for path in stage.store.rglob("*") if path.is_file()]
    assert not [form for form in forms for data in files if form in data]
    kernel = stage.kernel(CASE_TOKEN=SECRET)
    again = stage.run_all(kernel)
    assert is_whole(again)
    assert kernel.value("api_key") == repr(SECRET)
    assert again[1].text() == first[1].text()


def test_volatile_names_are_the_reason_that_is_told(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("66_volatile_setup_values")
    assert is_whole(stage.run_fresh())
    assert is_whole(stage.run_fresh())
    told = stage.cli("explain", "use").stdout
    assert "STARTED" in told
    assert "TMP" in told
    stage.edit("%%step use", "%%step use --ignore STARTED TMP log")
    first = stage.run_fresh()
    assert ran(first, stage.run_fresh()) == set()
