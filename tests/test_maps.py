"""A function over items: results in order, those of done items restored."""

from __future__ import annotations

import builtins
import datetime as dt
import multiprocessing
import os
import signal
import threading
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import nbckpt
from nbckpt import current
from nbckpt.loops import begun, maps
from nbckpt.loops.pools import AHEAD

if TYPE_CHECKING:
    from tests.notebook import Notebook


ALONE, THREADS = "None", "POOL(3)"
MAP = """%%step a
found = nbckpt.map(WORK, range(8), executor={executor}, on_error="{on_error}")
"""


class Work:
    """What the notebook maps: notes its items, and fails at some."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.items: list[str] = []
        self.bad: set[int] = set()
        self.error: type[BaseException] = ValueError
        self.make: Any = lambda n: n * n

    def __call__(self, item: int) -> Any:
        self.items.append(current.item.get())
        if item in self.bad:
            raise self.error(item)
        self.seen.append(item)
        return self.make(item)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    found = Work()
    monkeypatch.setattr(builtins, "WORK", found, raising=False)
    monkeypatch.setattr(builtins, "POOL", ThreadPoolExecutor, raising=False)
    return found


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    notebook.run("import nbckpt")
    return notebook


def cell(executor: str, on_error: str = "stop") -> str:
    return MAP.format(executor=executor, on_error=on_error)


def again(notebook: Notebook, work: Work, source: str) -> list[int]:
    """Run a cell in a new kernel without failures; return what was worked on."""
    notebook.restart()
    notebook.run("import nbckpt")
    work.seen.clear()
    work.bad.clear()
    notebook.run(source)
    return sorted(work.seen)


both = pytest.mark.parametrize("executor", [ALONE, THREADS])


@both
def test_results_come_in_the_order_of_the_items(
    notebook: Notebook, work: Work, executor: str
) -> None:
    notebook.run(cell(executor))
    assert notebook.names["found"] == [n * n for n in range(8)]
    assert sorted(work.items) == [str(n) for n in range(8)]


@both
@pytest.mark.parametrize(
    "make",
    [
        lambda n: n * n,
        lambda n: (n, str(n)),
        lambda n: {n: dt.date(2024, 1, n + 1)},
        lambda _: None,
    ],
    ids=["number", "tuple", "dates", "none"],
)
def test_results_of_done_items_are_restored_as_they_were(
    notebook: Notebook, work: Work, executor: str, make: Any
) -> None:
    work.make, work.bad = make, {5}
    source = cell(executor)
    assert isinstance(notebook.error(source), ValueError)
    done = set(work.seen)
    assert again(notebook, work, source) == sorted(set(range(8)) - done)
    assert notebook.names["found"] == [make(n) for n in range(8)]


@both
def test_map_that_continues_lists_errors_and_leaves_none(
    notebook: Notebook, work: Work, executor: str
) -> None:
    work.bad = {2, 5}
    notebook.run(cell(executor, "continue"))
    assert notebook.names["found"] == [0, 1, None, 9, 16, None, 36, 49]
    (loop,) = notebook.journal.loops(notebook.session.run_id)
    assert sorted(error.item for error in loop.errors) == ["2", "5"]
    assert "2 of its items failed" in notebook.told()


def test_item_in_a_thread_has_the_files_that_it_wrote_itself(
    notebook: Notebook, work: Work
) -> None:
    """Item 0 is half way while all others begin and end; each moves its file."""
    others = threading.Semaphore(0)

    def write(n: int) -> int:
        Path(f"{n}.new").touch()
        if n == 0:
            assert all(others.acquire(timeout=60) for _ in range(1, 8))
        Path(f"{n}.new").replace(f"{n}.txt")
        others.release()
        return n

    work.make = write
    source = f"{cell(THREADS)}\n1 / 0"
    assert isinstance(notebook.error(source), ZeroDivisionError)
    Path("0.txt").unlink()
    Path("5.txt").unlink()
    work.make = lambda n: n
    assert again(notebook, work, source.replace("1 / 0", "")) == [0, 5]


def test_loop_inside_an_item_may_begin_while_the_items_are_written(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Busy(dict[str, Any]):
        def __contains__(self, key: object) -> bool:
            others.append(threading.Thread(target=ledger.inside, args=(f"{key}!",)))
            others[-1].start()
            others[-1].join(0.05)
            return False

    def probe() -> None:
        nonlocal ledger
        (ledger,) = (loop.ledger for loop in begun.running())
        monkeypatch.setattr(ledger, "done", Busy())
        assert ledger.inside("1") != ledger.inside("2")
        ledger.write()
        for thread in others:
            thread.join()
        monkeypatch.undo()

    ledger: Any = None
    others: list[threading.Thread] = []
    monkeypatch.setattr(builtins, "probe", probe, raising=False)
    notebook.run("%%step a\nloop = nbckpt.items([1])\nprobe()\nfor n in loop: pass")
    assert len(others) == 2


@both
def test_interrupt_keeps_what_is_done(
    notebook: Notebook, work: Work, executor: str
) -> None:
    work.bad, work.error = {6}, KeyboardInterrupt
    source = cell(executor)
    notebook.run(source, fine=False)
    done = set(work.seen)
    assert len(done) >= 4
    assert again(notebook, work, source) == sorted(set(range(8)) - done)
    assert notebook.names["found"] == [n * n for n in range(8)]


def test_result_that_can_not_be_kept_makes_its_item_run_again(
    notebook: Notebook, work: Work
) -> None:
    work.make = lambda n: (m for m in ()) if n == 1 else n
    work.bad = {5}
    source = cell(ALONE)
    notebook.error(source)
    assert "the result of item 1 can't be kept" in notebook.told()
    work.make = lambda n: n
    assert again(notebook, work, source) == [1, 5, 6, 7]


def test_result_that_is_lost_makes_its_item_run_again(
    notebook: Notebook, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.make, work.bad = (lambda n: (n,)), {5}
    source = cell(ALONE)
    notebook.error(source)

    def lost(*_: object) -> Any:
        raise OSError("bad sector")

    monkeypatch.setattr(maps.results, "restore", lost)
    assert again(notebook, work, source) == list(range(8))


def test_results_go_from_the_store_when_the_step_is_complete(
    notebook: Notebook, work: Work
) -> None:
    work.make = lambda n: (n,)
    notebook.run(cell(ALONE))
    assert notebook.session.store.keys("result/") == []


def kill_once(item: int) -> int:
    """Note the item; kill the process that is the first to come to item 30."""
    path = Path("worked.log")
    with path.open("a") as file:
        file.write(f"{item}\n")
    if item == 30 and path.read_text().split().count("30") == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_worker_is_replaced_and_only_what_is_not_done_is_sent_again(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = 2
    fork = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, mp_context=fork)
    monkeypatch.setattr(builtins, "WORK", kill_once, raising=False)
    monkeypatch.setattr(builtins, "POOL", lambda: pool, raising=False)
    with pool:
        notebook.run(
            "%%step a --ignore found\n"
            "found = nbckpt.map(WORK, range(60), executor=POOL())"
        )
    assert notebook.names["found"] == [n * n for n in range(60)]
    times = Counter(map(int, Path("worked.log").read_text().split()))
    again = [item for item, count in times.items() if count > 1]
    assert set(times) == set(range(60))
    assert 30 in again
    # What else was in the broken pool, which the other worker may have taken far on.
    assert len(again) <= workers * AHEAD
    assert max(times.values()) == 2


BAD = {
    "map": "nbckpt.map(bad, [1, 2])",
    "threads": "with ThreadPoolExecutor(1) as pool: nbckpt.map(bad, [1], executor=pool)",
    "key": "for o in nbckpt.items([1, 2], key=bad): pass",
    "effect": "nbckpt.effect('x', perform=bad)",
    "decide": "nbckpt.decide('q', lambda: bad(1))",
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_error_of_the_users_function_is_shown_without_our_frames(
    notebook: Notebook, call: str
) -> None:
    """The error itself keeps them all."""
    notebook.run("import nbckpt\nfrom concurrent.futures import ThreadPoolExecutor")
    notebook.run("def bad(x):\n    raise KeyError(x)")
    notebook.shown()
    error = notebook.error(f"%%step a\n{call}")
    frames = traceback.extract_tb(error.__traceback__)
    assert any("nbckpt" in frame.filename for frame in frames)
    shown = notebook.shown()
    assert "----> 2 " in shown
    assert "skipping hidden" in shown
    assert str(Path(nbckpt.__file__).parent) not in shown
