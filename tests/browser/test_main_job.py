"""The main job in JupyterLab and Notebook 7: killed in a step, it goes on there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.states import states

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.page import NotebookPage

APPS = pytest.mark.parametrize("app", ["lab", "notebook"])

# Each step says which process ran its body: a replayed output names one that is gone.
IMPORTS = """\
import os
from pathlib import Path
from threading import Event

import matplotlib.pyplot as plt"""
ROWS = """\
%%step rows
rows = list(range(5))
print("rows were made by", os.getpid())"""
DOUBLE = """\
%%step double --writes rows.txt --check "len(rows) == 5"
rows[:] = [2 * row for row in rows]
Path("rows.txt").write_text(str(rows))
print("rows were doubled by", os.getpid())
rows"""
FIGURE = """\
%%step figure
figure, axes = plt.subplots(figsize=(3, 2))
axes.plot(rows);"""
FLIGHT = """\
%%step flight --ignore Event
print("in flight in", os.getpid(), flush=True)
is_first = not Path("tried").exists()
Path("tried").touch()
if is_first:
    Event().wait()
total = sum(rows)"""
CELLS = ("%load_ext nbckpt", IMPORTS, ROWS, DOUBLE, FIGURE, FLIGHT, "total")
FLIES, SUM = 5, 6


@APPS
def test_killed_notebook_goes_on_at_the_step_in_flight(
    app: str, open_page: Callable[..., NotebookPage], folder: Path
) -> None:
    page = open_page(app, CELLS)
    page.run_all()
    page.await_text(FLIES, "in flight in")
    page.picture("in-flight")
    first = page.outputs()
    victim = page.kill_kernel()
    assert f"in flight in {victim}" in page.text(FLIES)
    page.picture("killed")
    assert list(states(folder).values()) == [*["completed"] * 3, "interrupted"]

    second = page.run_all_and_wait()
    page.picture("resumed")
    assert second[1:FLIES] == first[1:FLIES]
    assert [len(cell) for cell in second] == [2, 0, 1, 2, 1, 1, 1]
    assert str(page.kernel_pid) in page.text(FLIES)
    assert page.text(SUM) == "20"

    page.save()
    page.reload()
    assert page.outputs() == second
    page.restart()
    assert page.run_all_and_wait()[1:] == second[1:]
    assert page.kernel_pid != victim
    assert set(states(folder).values()) == {"completed"}
