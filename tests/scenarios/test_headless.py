"""`nbckpt run` from anywhere, the plan beside what then happens, and one step forced."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from tests.scenarios.stage import COMMAND, Stage, is_whole, ran
from tests.scenarios.test_status import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cases.session import Reply


def predicted(stage: Stage) -> dict[str, str]:
    """Return step → what the plan says of it; nothing may change by asking."""
    before = snapshot(stage.store) if stage.store.exists() else None
    told = stage.told("plan", "case.ipynb")
    after = snapshot(stage.store) if stage.store.exists() else None
    assert after == before
    return {line["name"]: line["prediction"] for line in told["steps"]}


def judge(forecast: dict[str, str], happened: set[str]) -> None:
    """Compare a forecast with the steps that ran."""
    assert set(forecast.values()) <= {"run", "skip", "unknown"}
    for step, word in forecast.items():
        assert word == "unknown" or (word == "run") == (step in happened), step


def test_plan_agrees_with_what_run_all_does(stage_of: Callable[[str], Stage]) -> None:
    stage = stage_of("69_plan_agrees_with_run")
    last: list[Reply] = []

    def compare() -> dict[str, str]:
        nonlocal last
        forecast, replies = predicted(stage), stage.run_fresh()
        assert is_whole(replies)
        judge(forecast, ran(last, replies))
        last = replies
        return forecast

    assert compare() == dict.fromkeys("abc", "run")
    assert "run" not in compare().values()
    stage.edit("x + 1", "x + 2")
    assert compare()["b"] != "skip"
    (stage.work / "b.txt").unlink()
    assert compare()["b"] == "run"


def test_launched_from_another_folder_the_same_store_is_found(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("62_launched_from_other_directory")
    first = stage.run_fresh()
    assert is_whole(first)
    done = subprocess.run(
        [*COMMAND, "run", "w/case.ipynb"],
        cwd=stage.root,
        env=stage.env(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (stage.root / ".nbckpt").exists()
    assert not (stage.root / "out.txt").exists()
    assert (stage.work / "out.txt").read_text("utf-8") == "hi"
    history = events(stage)
    assert history.count(("completed", "a")) == 1
    assert ("skipped", "a") in history


def events(stage: Stage) -> list[tuple[str, str]]:
    records = stage.records().records
    lines: list[Any] = [
        v for k, v in sorted(records.items()) if k.startswith("history/")
    ]
    return [(line["kind"], line["step"]) for line in lines]


def test_forced_step_runs_and_what_follows_only_if_its_value_differs(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("70_force_one_step")
    first = stage.run_fresh()
    world = stage.work / "world.txt"
    world.write_text(world.read_text("utf-8") + " more", "utf-8")
    second = stage.run_fresh()
    assert ran(first, second) == set()
    assert stage.cli("rerun", "fetch").returncode == 0
    third = stage.run_fresh()
    assert ran(second, third) == {"fetch", "calc"}
    assert stage.cli("rerun", "fetch").returncode == 0
    fourth = stage.run_fresh()
    assert ran(third, fourth) == {"fetch"}
    assert events(stage).count(("completed", "fetch")) == 3
    assert ran(fourth, stage.run_fresh()) == set()


def test_rerun_and_after_runs_all_that_follows(
    stage_of: Callable[[str], Stage],
) -> None:
    stage = stage_of("70_force_one_step")
    first = stage.run_fresh()
    assert stage.cli("rerun", "calc", "--and-after").returncode == 0
    assert ran(first, stage.run_fresh()) == {"calc", "other"}


def test_accepted_code_change_is_skipped(stage_of: Callable[[str], Stage]) -> None:
    stage = stage_of("69_plan_agrees_with_run")
    first = stage.run_fresh()
    stage.edit("z = 5", "z = 2 + 3")
    assert stage.cli("accept", "c").returncode == 0
    assert ran(first, stage.run_fresh()) == set()
