"""``nbckpt.progress()``: the same panel in a widget of the user's own layout."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

import nbckpt
from nbckpt.errors import BadStep
from nbckpt.panel.live import panel
from nbckpt.panel.view import RunView, StepView
from nbckpt.panel.widget import Progress

if TYPE_CHECKING:
    from tests.notebook import Notebook

STEP = "%%step a\nx = 1"


def html(widget: Progress) -> str:
    return "".join(child.value for child in widget.children)


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let widgets follow the run."""
    monkeypatch.setattr("nbckpt.panel.preference.NbCkpt.mode", lambda *_: "live")


@pytest.mark.usefixtures("looked_at")
def test_widget_follows_the_run(notebook: Notebook) -> None:
    notebook.run("import nbckpt\nwidget = nbckpt.progress()")
    widget = notebook.names["widget"]
    assert "no step has run yet" in html(widget)
    notebook.run(STEP)
    assert "1 of 1 steps done" in html(widget)
    assert "<tr class=done>" in html(widget)


@pytest.mark.usefixtures("looked_at")
def test_widget_is_no_work_of_the_step_that_it_follows(notebook: Notebook) -> None:
    notebook.run("import nbckpt\nwidget = nbckpt.progress()")
    notebook.run(STEP)
    assert notebook.journal.steps(notebook.session.run_id)["a"].contents.bound == ("x",)
    assert notebook.told() == ""


@pytest.mark.usefixtures("looked_at")
def test_widget_of_a_step_comes_back_alive(notebook: Notebook) -> None:
    cell = "%%step make\nimport nbckpt\nwidget = nbckpt.progress()"
    notebook.run(cell)
    notebook.restart()
    notebook.run(cell)
    assert notebook.decision("make") == "Skip"
    notebook.run(STEP)
    assert "<tr class=done>" in html(notebook.names["widget"])


@pytest.mark.usefixtures("looked_at")
def test_widget_that_is_gone_is_told_nothing(notebook: Notebook) -> None:
    notebook.run("1")
    widget = nbckpt.progress()
    widget.close()
    del widget
    gc.collect()
    assert list(panel()._widgets) == []


def test_widget_is_constant_where_nobody_looks(notebook: Notebook) -> None:
    notebook.run("import nbckpt\nwidget = nbckpt.progress()")
    before = html(notebook.names["widget"])
    notebook.run(STEP)
    assert html(notebook.names["widget"]) == before
    assert repr(notebook.names["widget"]) == "<nbckpt progress>"


def test_steps_are_drawn_again_only_when_one_changed() -> None:
    widget, run = Progress(), RunView("r-1", (StepView(1, "a"),))
    widget.tell(run)
    steps = widget.children[1]
    steps.value = "as the reader left it"
    widget.tell(RunView("r-1", run.steps, at=5.0))
    assert steps.value == "as the reader left it"
    widget.tell(run.put(StepView(2, "b")))
    assert "2 b" in steps.value


def test_widget_needs_the_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbckpt.panel.live.panels", [])
    with pytest.raises(BadStep, match="load_ext"):
        nbckpt.progress()
