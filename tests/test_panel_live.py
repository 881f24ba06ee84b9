"""The panel stands where the run is begun, follows it, and is in nobody's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
import pytest

from nbckpt.errors import BadStep
from nbckpt.panel import live, screen
from nbckpt.panel.live import panel
from nbckpt.panel.screen import head_bundle
from nbckpt.panel.view import LoopView, RunView, State
from tests.frontend import FrontEnd

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

STEP = "%%step a\nx = 1"
ITEMS = """\
%%step loop
import nbckpt
for item in nbckpt.items(range(3)):
    if item == 2:
        get_ipython().look()"""


@pytest.fixture
def page(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> FrontEnd:
    """Return a front end that looks at a notebook in which nothing ran."""
    monkeypatch.setenv("NBCKPT_PROGRESS", "live")
    monkeypatch.setattr(screen, "INTERVAL", 0.0)
    return FrontEnd(notebook, monkeypatch)


def states(page: FrontEnd) -> dict[str, State]:
    return {step.name: step.state for step in page.panel.view.steps}


def a_file(folder: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]  # type: ignore[no-untyped-call]
    file = folder / "job.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)  # type: ignore[no-untyped-call]
    return file


def test_panel_stands_below_the_cell_that_loads(
    notebook: Notebook, page: FrontEnd
) -> None:
    notebook.run("'the cell that loads'")
    assert [message.kind for message in page.sent] == ["display_data"] * 2
    assert page.displays()[0].startswith("no step has run yet")
    notebook.run("1")
    assert len(page.sent) == 2


def test_panel_follows_a_step_from_its_begin_to_its_end(
    notebook: Notebook, page: FrontEnd
) -> None:
    notebook.run("1")
    seen: list[State] = []
    notebook.shell.look = lambda: seen.append(states(page)["a"])
    notebook.run("%%step a\nget_ipython().look()")
    assert seen == [State.RUNNING]
    head, steps = page.displays()
    assert head.startswith("run notebook-1: 1 of 1 steps done, elapsed")
    assert "ran: it has no record yet" in steps
    notebook.run("%%step a\nget_ipython().look()")
    assert "verified, skipped" in page.displays()[1]


def test_failed_step_tells_its_error_at_once(
    notebook: Notebook, page: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("1")
    monkeypatch.setattr(screen, "INTERVAL", 1e9)
    notebook.error("%%step a\nraise KeyError('k')")
    assert states(page) == {"a": State.FAILED}
    assert "KeyError: 'k'" in page.displays()[1]


def test_interrupted_and_waiting_steps_are_told_apart(
    notebook: Notebook, page: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nbckpt.panel.buttons.Buttons.show", lambda _: None)
    notebook.run("1")
    notebook.error("%%step a\nraise KeyboardInterrupt")
    notebook.error("%%step b\nimport nbckpt\nnbckpt.ask('Go on?')")
    assert states(page) == {"a": State.INTERRUPTED, "b": State.WAITING}
    assert "question" in page.displays()[1]
    notebook.run(STEP.replace(" a", " c"))
    assert states(page)["b"] is State.WAITING


def test_items_are_told_while_the_body_runs(notebook: Notebook, page: FrontEnd) -> None:
    notebook.run("1")
    views: list[RunView] = []
    notebook.shell.look = lambda: views.append(page.panel.now())
    notebook.run(ITEMS)
    [view] = views
    assert view.items == (LoopView("1", 2, 3),)
    assert "2 of 3 items" in head_bundle(view)["text/plain"]
    assert "3 of 3 items" in page.displays()[1]


def test_updates_are_no_output_of_the_step(notebook: Notebook, page: FrontEnd) -> None:
    notebook.run("1")
    notebook.shell.look = page.panel._tick
    before = len(page.sent)
    notebook.run(ITEMS)
    assert len(page.sent) > before
    session = notebook.session
    record = session.journal.steps(session.run_id)["loop"]
    assert bytes(session.checkpoints.load(record.contents).outputs) == b""


def test_updates_go_out_under_the_request_that_runs(
    notebook: Notebook, page: FrontEnd
) -> None:
    notebook.run("1")
    page.parent = {"header": {"msg_id": "m-2"}, "content": {"allow_stdin": True}}
    notebook.run(STEP)
    assert page.sent[0].parent["header"]["msg_id"] == "m-1"
    assert page.sent[-1].parent["header"]["msg_id"] == "m-2"


@pytest.mark.usefixtures("page")
def test_new_kernel_shows_what_the_one_before_did(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run(STEP)
    notebook.restart()
    again = FrontEnd(notebook, monkeypatch)
    notebook.run("1")
    assert "not verified in this kernel yet" in again.displays()[1]
    notebook.run(STEP)
    assert states(again) == {"a": State.SKIPPED}
    assert again.displays()[0].startswith("run notebook-1: 1 of 1 steps done")


def test_panel_that_is_shown_late_knows_what_was_skipped(
    notebook: Notebook, page: FrontEnd
) -> None:
    notebook.run("%config NbCkpt.progress = 'off'")
    notebook.run(STEP)
    notebook.run(STEP)
    notebook.run("%config NbCkpt.progress = 'live'")
    assert page.sent == []
    notebook.run("%nbckpt start notebook-1")
    assert states(page) == {"a": State.SKIPPED}


def test_another_run_begins_with_nothing_done(
    notebook: Notebook, page: FrontEnd
) -> None:
    notebook.run(STEP)
    notebook.run("%nbckpt start other")
    notebook.run("%%step b\ny = 1")
    assert page.panel.view.run_id == "other"
    assert states(page) == {"b": State.DONE}


def test_cell_that_loads_leaves_the_panel_to_the_one_that_starts(
    notebook: Notebook, page: FrontEnd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = a_file(tmp_path, "%load_ext nbckpt", "%nbckpt start r", STEP)
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(file))
    notebook.restart()
    page = FrontEnd(notebook, monkeypatch)
    notebook.run("1")
    assert page.sent == []
    notebook.run("%nbckpt start r")
    head, steps = page.displays()
    assert head.startswith("run r: 0 of 1 steps done")
    assert "pending" in steps
    assert f"nbckpt run {file} --run-id r" in steps


def test_steps_of_the_file_are_shown_before_there_is_a_store(
    notebook: Notebook, page: FrontEnd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(a_file(tmp_path, STEP)))
    notebook.restart()
    page = FrontEnd(notebook, monkeypatch)
    notebook.run("1")
    assert states(page) == {"a": State.PENDING}
    assert not (tmp_path / ".nbckpt").exists()


def test_second_panel_seals_the_first(notebook: Notebook, page: FrontEnd) -> None:
    notebook.run("1")
    notebook.run("%nbckpt start other")
    first, empty, head, _ = page.displays()
    assert first == "nbckpt: the panel of the run stands in another cell"
    assert empty == ""
    assert head.startswith("run other")


def test_cell_that_fails_to_start_shows_nothing(
    notebook: Notebook, page: FrontEnd
) -> None:
    notebook.error("%nbckpt start --chek")
    assert page.sent == []
    notebook.run("1")
    assert page.sent == []


@pytest.mark.parametrize("word", ["off", "static"])
def test_nothing_changes_where_nothing_is_to_change(
    notebook: Notebook, page: FrontEnd, word: str
) -> None:
    notebook.run(f"%config NbCkpt.progress = {word!r}")
    notebook.run(STEP)
    assert page.sent == []
    names = "nbckpt: steps as they come. To see how far they are: %nbckpt status\n"
    assert (names in notebook.shown()) == (word == "static")


def test_panel_that_fails_does_not_hinder_the_step(
    notebook: Notebook, page: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("1")

    def broken(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(live.looking, "completed", broken)
    monkeypatch.setattr(page, "send", broken)
    notebook.run(STEP)
    assert notebook.names["x"] == 1
    assert page.panel._tick() is False


def test_ticker_goes_on_while_a_step_runs(notebook: Notebook, page: FrontEnd) -> None:
    notebook.run("1")
    went_on: list[bool] = []
    notebook.shell.look = lambda: went_on.append(page.panel._tick())
    notebook.run("%%step a\nget_ipython().look()")
    assert went_on == [True]
    assert page.woken == 1
    assert page.panel._tick() is False


def test_what_comes_too_soon_is_left_to_the_ticker(
    notebook: Notebook, page: FrontEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("1")
    notebook.run(STEP)
    monkeypatch.setattr(screen, "INTERVAL", 1e9)
    before = len(page.sent), page.woken
    seen: list[tuple[int, int]] = []
    notebook.shell.look = lambda: seen.append((len(page.sent), page.woken))
    notebook.run("%%step b\nget_ipython().look()")
    assert seen == [(before[0], before[1] + 1)]
    assert "2 of 2 steps done" in page.displays()[0]


def test_panel_needs_the_extension(notebook: Notebook, page: FrontEnd) -> None:
    assert panel() is page.panel
    notebook.close()
    with pytest.raises(BadStep, match="load_ext"):
        panel()
    notebook.shell = notebook._start()
