"""The notebook of ``make demo``, in JupyterLab: the main job on its real data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.states import states

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.page import NotebookPage

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "quickstart.ipynb"
VICTIM = "forest"
FOREST = 7
"""The victim's place among the code cells; the longest step. The panel stands in 0."""


def test_quickstart_survives_a_kill_in_its_longest_step(
    open_page: Callable[..., NotebookPage], folder: Path
) -> None:
    page = open_page("lab", QUICKSTART)
    page.run_all()
    page.await_true(lambda: states(folder).get(VICTIM) == "running")
    page.kill_kernel()
    first = page.outputs()
    assert states(folder)[VICTIM] == "interrupted"

    second = page.run_all_and_wait(300)
    assert second[1:FOREST] == first[1:FOREST]
    assert all(second[FOREST:])
    page.save()
    page.reload()
    assert page.outputs() == second
    page.restart()
    assert page.run_all_and_wait(300)[1:] == second[1:]
    assert set(states(folder).values()) == {"completed"}
