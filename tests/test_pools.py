"""Executors whose workers die, and what becomes of the items that they had."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.loops.pools import Outcome, Pool

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"))


def work(key: str, folder: str) -> str:
    """Kill the process where a key says so: once, or always."""
    with (Path(folder) / key).open("a") as file:
        file.write("x")
    if key.startswith("fail"):
        raise ValueError(key)
    tries = (Path(folder) / key).stat().st_size
    if key.startswith("dies") or (key.startswith("once") and tries == 1):
        os.kill(os.getpid(), signal.SIGKILL)
    return key.upper()


def run(pool: Executor, keys: list[str], folder: Path) -> dict[str, Outcome]:
    def submit(executor: Executor, key: str) -> Future[Any]:
        return executor.submit(work, key, str(folder))

    with pool:
        found = Pool(pool, submit)
        try:
            return {outcome.key: outcome for outcome in found.run(keys)}
        finally:
            found.close()


@pytest.mark.parametrize("kind", [processes, lambda: ThreadPoolExecutor(2)])
def test_each_item_has_its_outcome(
    kind: Callable[[], Executor], tmp_path: Path
) -> None:
    found = run(kind(), ["a", "fail", "b"], tmp_path)
    assert found["a"].value == "A"
    assert isinstance(found["fail"].error, ValueError)
    assert len(found) == 3


def test_item_that_kills_its_process_once_is_done_in_the_end(tmp_path: Path) -> None:
    keys = ["a", "once", *(f"n{n}" for n in range(20))]
    found = run(processes(), keys, tmp_path)
    assert {key: outcome.value for key, outcome in found.items()} == {
        key: key.upper() for key in keys
    }


def test_item_that_kills_its_process_twice_has_failed_alone(tmp_path: Path) -> None:
    keys = [*(f"n{n}" for n in range(10)), "dies", *(f"m{n}" for n in range(10))]
    found = run(processes(), keys, tmp_path)
    failed = {key for key, outcome in found.items() if outcome.error}
    assert failed == {"dies"}
    assert isinstance(found["dies"].error, BrokenExecutor)
    assert 2 <= (tmp_path / "dies").stat().st_size <= 3


def test_stopped_pool_begins_no_more_items(tmp_path: Path) -> None:
    begun: list[str] = []

    def submit(executor: Executor, key: str) -> Future[Any]:
        begun.append(key)
        return executor.submit(work, key, str(tmp_path))

    with ThreadPoolExecutor(1) as executor:
        pool = Pool(executor, submit)
        for _ in pool.run([f"n{n}" for n in range(50)]):
            pool.stop()
    assert len(begun) < 50


def test_item_that_its_executor_gives_up_has_failed_and_the_others_have_not(
    tmp_path: Path,
) -> None:
    def submit(executor: Executor, key: str) -> Future[Any]:
        if key != "given up":
            return executor.submit(work, key, str(tmp_path))
        future: Future[Any] = Future()
        future.cancel()
        return future

    with ThreadPoolExecutor(1) as executor:
        pool = Pool(executor, submit)
        found = {each.key: each for each in pool.run(["a", "given up", "b"])}
    assert isinstance(found["given up"].error, CancelledError)
    assert {key for key, each in found.items() if each.error} == {"given up"}


def test_harvest_leaves_out_what_was_given_up(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        pool = Pool(executor, lambda pool, key: pool.submit(work, key, str(tmp_path)))
        done: Future[Any] = Future()
        done.set_result("A")
        given_up: Future[Any] = Future()
        given_up.cancel()
        pool._flying = {done: "a", given_up: "b"}
        assert [each.key for each in pool.harvest()] == ["a"]
