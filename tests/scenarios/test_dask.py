"""Items on the workers of Dask, one of which is killed."""

from __future__ import annotations

import builtins
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.notebook import Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

# Whatever the cluster says of its own start and end.
pytestmark = pytest.mark.filterwarnings("ignore")

ITEMS = 30
TOLERATED = 1
"""How many workers an item may kill before Dask gives it up."""
CELL = """%%step a
found = nbckpt.map(WORK, range({items}), executor=POOL(), on_error="{on_error}")
"""


def work(item: int, folder: str, times: int) -> int:
    """Note the item; item 12 kills its worker, so many times."""
    path = Path(folder) / str(item)
    with path.open("a") as file:
        file.write("x")
    if item == 12 and path.stat().st_size <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": TOLERATED}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Notebook]:
    monkeypatch.chdir(tmp_path)
    found = Notebook(capsys)
    found.run("import nbckpt")
    yield found
    found.close()


def lend(
    monkeypatch: pytest.MonkeyPatch, client: Any, folder: Path, times: int
) -> None:
    """Let cells map `work` over the workers."""
    folder.mkdir()

    def doing(item: int, where: str = str(folder)) -> int:
        return work(item, where, times)

    monkeypatch.setattr(builtins, "WORK", doing, raising=False)
    monkeypatch.setattr(builtins, "POOL", client.get_executor, raising=False)


def counted(folder: Path) -> dict[int, int]:
    """Return how often each item was begun."""
    return {int(path.name): path.stat().st_size for path in folder.iterdir()}


def test_killed_worker_costs_what_it_had_and_results_are_whole(
    notebook: Notebook, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend(monkeypatch, client, tmp_path / "noted", times=1)
    notebook.run(CELL.format(items=ITEMS, on_error="stop"))
    assert notebook.names["found"] == [n * n for n in range(ITEMS)]
    times = counted(tmp_path / "noted")
    assert set(times) == set(range(ITEMS))
    assert times[12] == 2


def test_item_that_kills_each_worker_has_failed_alone_and_runs_again_later(
    notebook: Notebook, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lend(monkeypatch, client, tmp_path / "noted", times=99)
    source = CELL.format(items=ITEMS, on_error="stop")
    assert type(notebook.error(source)).__name__ == "KilledWorker"
    (loop,) = notebook.journal.loops(notebook.session.run_id)
    assert [error.item for error in loop.errors] == ["12"]
    done = set(notebook.journal.items_done(loop))
    assert counted(tmp_path / "noted")[12] == 1 + TOLERATED
    notebook.restart()
    notebook.run("import nbckpt")
    lend(monkeypatch, client, tmp_path / "again", times=0)
    notebook.run(source)
    assert notebook.names["found"] == [n * n for n in range(ITEMS)]
    assert set(counted(tmp_path / "again")) == set(range(ITEMS)) - set(map(int, done))
