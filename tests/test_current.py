"""Where the code that calls us stands, and what it may do there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import nbckpt
from nbckpt import current
from nbckpt.errors import BadStep
from nbckpt.records import Question

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.notebook import Notebook


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """Begin and end without a session."""
    current.enter(None)
    yield
    current.enter(None)


def a_place(name: str) -> current.Place:
    found: Any = SimpleNamespace(name=name)
    return current.Place(found, found, found, found)


def test_nothing_runs_where_nbckpt_is_not_loaded() -> None:
    assert current.running() is None
    with pytest.raises(BadStep, match="%load_ext nbckpt"):
        current.session()
    with pytest.raises(BadStep, match="not loaded"):
        current.place("evidence")


def test_call_outside_of_a_step_is_refused_by_its_name() -> None:
    session: Any = SimpleNamespace()
    current.enter(session)
    assert current.session() is session
    with pytest.raises(BadStep, match=r"nbckpt\.check was called outside of a step"):
        current.place("check")


def test_step_runs_from_its_begin_to_its_end() -> None:
    session: Any = SimpleNamespace()
    current.enter(session)
    one, two = a_place("a"), a_place("b")
    current.begin(one)
    assert current.place("check") is one
    current.begin(two)
    assert current.running() is two
    current.end()
    assert current.running() is None


def test_two_bodies_gather_for_themselves() -> None:
    one, two = a_place("a"), a_place("b")
    one.gathered.notes.append("seen")
    one.gathered.refused["x"] = BadStep("x")
    assert two.gathered == current.Gathered()


def test_unloading_forgets_the_body_that_ran() -> None:
    session: Any = SimpleNamespace()
    current.enter(session)
    current.begin(a_place("a"))
    current.enter(None)
    assert current.running() is None


def test_item_is_empty_outside_of_items() -> None:
    assert current.item.get() == ""
    token = current.item.set("o-1")
    assert current.item.get() == "o-1"
    current.item.reset(token)


def test_question_is_shown_once() -> None:
    current.asked[:] = [Question("r", "i", "t")]
    assert [current.asked.pop().id] == ["i"]
    assert current.asked == []


def test_run_is_looked_at_from_a_plain_cell(notebook: Notebook) -> None:
    notebook.run("import nbckpt\nrun = nbckpt.current_run()")
    run: current.RunView = notebook.names["run"]
    assert notebook.session.is_held
    assert (run.run_id, run.version, run.steps) == (notebook.session.run_id, "", {})
    assert (run.step, run.attempt, run.item) == ("", 0, "")
    with pytest.raises(AttributeError):
        run.run_id = "other"  # type: ignore[misc]


def test_view_tells_the_step_the_attempt_and_the_item(notebook: Notebook) -> None:
    notebook.run("%nbckpt start mine --version 3")
    notebook.run("import nbckpt\nrun, seen = nbckpt.current_run(), []")
    notebook.run("%%step one\n1")
    look = "seen.append((run.step, run.attempt, run.item, run.steps))"
    notebook.run(
        f"%%step two\nfor it in nbckpt.items(['a'], keep=('seen',)):\n    {look}"
    )
    assert notebook.names["seen"] == [
        ("two", 1, "a", {"one": "completed", "two": "running"})
    ]
    assert notebook.names["run"].version == "3"
    assert notebook.names["run"].steps == {"one": "completed", "two": "completed"}


def test_view_in_a_variable_is_the_same_input_at_every_resume(
    notebook: Notebook,
) -> None:
    cells = [
        "import nbckpt\nrun = nbckpt.current_run()",
        "%%step one\nname = run.run_id",
        "%%step two\nseen = run.steps",
    ]
    for cell in cells:
        notebook.run(cell)
    notebook.restart()
    for cell in cells:
        notebook.run(cell)
    assert [notebook.decision(step) for step in ("one", "two")] == ["Skip", "Skip"]


def test_step_whose_process_died_is_shown_as_interrupted(notebook: Notebook) -> None:
    source = "%%step one\nimport nbckpt\nraise KeyboardInterrupt"
    notebook.run(source, fine=False)
    run = nbckpt.current_run()
    assert run.steps == {"one": "interrupted"}
    row = notebook.session.store.get(f"attempt/{run.run_id}/one")
    notebook.journal.write(
        lambda tx: tx.put(f"attempt/{run.run_id}/one", {**row, "state": "running"})
    )
    assert run.steps == {"one": "interrupted"}


def test_view_of_a_finished_run_stays_and_begins_no_other(notebook: Notebook) -> None:
    notebook.run("%%step one\n1")
    run = nbckpt.current_run()
    notebook.run("%nbckpt finish")
    assert run.steps == {"one": "completed"}
    assert not notebook.session.is_held
