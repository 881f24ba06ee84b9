"""Names that a body binds in a branch or a loop only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.notebook import Notebook

FIRST = "%%step first\nseen = []\nfor i in range(3): seen.append(i * i)"
SECOND = "%%step second\ntotal = 0\nfor i in range(3): total += i"
PARTS = (
    "%%step parts\nwhole = [[1], [2]]\nfound = []\n"
    "for _ in range(2):\n    pair = list(whole)\n    for part in pair:\n"
    "        found.append(part[0])"
)
MODE = "%%step choose\nif len(rows) > 5:\n    mode = 'many'\nsize = len(rows)"


def test_loop_variable_left_by_another_step_is_no_input(notebook: Notebook) -> None:
    notebook.run(FIRST)
    notebook.run(SECOND)
    notebook.restart()
    notebook.run(FIRST.replace("range(3)", "range(7)"))
    notebook.run(SECOND)
    assert notebook.decision("second") == "Skip"
    assert notebook.names["i"] == 2


def test_step_edited_and_run_again_in_this_kernel_is_skipped_in_the_next(
    notebook: Notebook,
) -> None:
    edited = FIRST.replace("i * i", "i + i")
    notebook.run(FIRST)
    notebook.run(edited)
    notebook.restart()
    notebook.run(edited)
    assert notebook.decision("first") == "Skip"
    assert (notebook.names["seen"], notebook.names["i"]) == ([0, 2, 4], 2)


def test_loop_variables_that_share_objects_are_the_steps_own(
    notebook: Notebook,
) -> None:
    notebook.run(PARTS)
    notebook.run(PARTS)
    assert notebook.decision("parts") == "Skip"
    edited = PARTS.replace("part[0]", "part[0] + 1")
    notebook.run(edited)
    notebook.restart()
    notebook.run(edited)
    assert notebook.decision("parts") == "Skip"
    assert notebook.names["found"] == [2, 3, 2, 3]


def test_loop_that_makes_objects_anew_lets_go_of_those_it_left_before(
    notebook: Notebook,
) -> None:
    show = "%%step show\nlines = []\nfor n in range(2):\n    row = [n]\n    lines.append(n)"
    after = "%%step after\nkept = {'row': row}"
    edited = show + "\nlines.append('.')"
    for source in (show, after, edited):
        notebook.run(source)
    notebook.restart()
    for source in (edited, after):
        notebook.run(source)
        assert notebook.decision(source.split()[1]) == "Skip"
    assert notebook.names["row"] is notebook.names["kept"]["row"]


def test_name_of_a_branch_that_was_not_taken_is_an_input(notebook: Notebook) -> None:
    notebook.run("%%step make\nrows, mode = [1], 'few'")
    notebook.run(MODE)
    assert notebook.names["mode"] == "few"
    notebook.restart()
    notebook.run("%%step make\nrows, mode = [1], 'none'")
    notebook.run(MODE)
    assert notebook.decision("choose") == "Run"
    assert notebook.names["mode"] == "none"


def test_name_of_a_branch_that_is_changed_through_another_is_an_input(
    notebook: Notebook,
) -> None:
    body = "%%step change\nif len(rows) > 5:\n    other = 'many'\nrows.append(2)"
    for _ in range(2):
        notebook.run("%%step make\nrows = [1]; other = rows")
        notebook.run(body)
        decided = notebook.decision("change")
        notebook.restart()
    assert decided == "Skip"
    notebook.run("%%step make\nrows = [1]; other = [1]")
    notebook.run(body)
    assert notebook.decision("change") == "Run"
    assert notebook.names["other"] == [1]


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("for k in []: pass", "a"),
        ("for k in 'xy': pass", "y"),
        ("for k in 'xy': 1 / 0", "x"),
        ("if False: k = 'z'\n1 / 0", "a"),
        ("for k in 'xy': pass\ndel k", None),
    ],
)
def test_constant_is_back_whatever_became_of_the_body(
    notebook: Notebook, body: str, left: str | None
) -> None:
    notebook.run("k = 'a'")
    notebook.run(f"%%step some\n{body}", fine=False)
    assert notebook.names.get("k") == left


def test_function_that_the_body_calls_reads_what_stood_before(
    notebook: Notebook,
) -> None:
    notebook.run("k = 'a'\ndef told(): return k")
    notebook.run("%%step some\nfound = [told()]\nfor k in 'xy': found.append(told())")
    assert notebook.names["found"] == ["a", "x", "y"]


@pytest.mark.parametrize("value", [2, 0.5, "a", b"b", None, (1, 2)])
def test_name_can_be_read_by_ways_that_no_source_tells(
    notebook: Notebook, value: object
) -> None:
    notebook.names["k"] = value
    notebook.run("def told(): return globals()['k'], eval('k')")
    notebook.run("%%step some\nfound = told()\nfor k in []: pass")
    assert notebook.names["found"] == (value, value)
    assert notebook.names["k"] is value
    notebook.restart()
    notebook.names["k"] = value
    notebook.run("def told(): return globals()['k'], eval('k')")
    notebook.run("%%step some\nfound = told()\nfor k in []: pass")
    assert notebook.decision("some") == "Skip"
    assert type(notebook.names["found"][0]) is type(value)


def test_large_value_is_free_as_soon_as_the_body_binds_its_name(
    notebook: Notebook,
) -> None:
    notebook.run("import weakref, numpy\nmodel = numpy.arange(90000)")
    notebook.run("gone = weakref.ref(model)")
    body = "for k in '1':\n    model = k\nfree = gone() is None"
    notebook.run(f"%%step fit --ignore gone\n{body}")
    assert notebook.names["free"] is True
