"""What a loop builds up: kept without being asked where it can be, never lost silently."""

from __future__ import annotations

import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nbckpt.loops.builtup import _carried, is_plain
from nbckpt.source.carried import Carried

if TYPE_CHECKING:
    from tests.notebook import Notebook

LOOP = """for item in nbckpt.items(range(6)):
    worked.append(item)
    if item == stop: 1 / 0
    {body}"""
STEP = "%%step a --ignore worked --ignore stop --check True\n"


class Mine:
    """A type of the user's own."""


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    prepare(notebook)
    return notebook


def prepare(notebook: Notebook, stop: object = None) -> None:
    notebook.run("import nbckpt")
    notebook.names.update(worked=[], stop=stop)


def resumed(notebook: Notebook, source: str, *cells: str) -> list[Any]:
    """Run a step that fails at item 4, then again in a new kernel; return what it did."""
    notebook.names["stop"] = 4
    for cell in cells:
        notebook.run(cell)
    assert isinstance(notebook.error(source), ZeroDivisionError)
    notebook.restart()
    prepare(notebook)
    for cell in cells:
        notebook.run(cell)
    notebook.told()
    notebook.run(source)
    found: list[Any] = notebook.names["worked"]
    return found


@pytest.mark.parametrize(
    ("begin", "body", "whole"),
    [
        ("out = []", "out.append(item)", [*range(6)]),
        ("out = 0", "out += item", 15),
        ("out = None", "out = min(out or 9, item + 1)", 1),
        ("out = {}", "out[item % 3] = item", {0: 3, 1: 4, 2: 5}),
    ],
)
def test_plain_names_come_back_without_being_asked_for(
    notebook: Notebook, begin: str, body: str, whole: object
) -> None:
    source = f"{STEP}{begin}\n{LOOP.format(body=body)}".replace("(6)", "(6), every=1")
    assert resumed(notebook, source) == [4, 5]
    assert notebook.names["out"] == whole
    assert notebook.told() == ""


def test_items_that_are_kept_do_not_bring_their_loop_along(
    notebook: Notebook,
) -> None:
    body = LOOP.format(body="out.append(item)").replace("range(6)", "rows, every=1")
    loop = body.replace("for item in", "loop =").replace(
        ":\n", "\nfor item in loop:\n", 1
    )
    source = f"{STEP}rows = [[n] for n in range(6)]\nout = []\n{loop}\ndel loop"
    source = source.replace("item == stop", "item == [stop]")
    resumed(notebook, source)
    out, rows = notebook.names["out"], notebook.names["rows"]
    assert out == rows == [[n] for n in range(6)]
    assert notebook.told() == ""


def test_function_that_changes_a_list_of_the_notebook_has_it_back(
    notebook: Notebook,
) -> None:
    body = LOOP.format(body="out.append(item)").replace("(6)", "(6), every=1")
    function = "def go():\n    " + body.replace("\n", "\n    ")
    assert resumed(notebook, f"{STEP}out = []\ngo()", function) == [4, 5]
    assert notebook.names["out"] == [*range(6)]


FUNCTION = "def go():\n    out = []\n    {loop}\n    return out"
GATHER = "def one(x):\n    worked.append(x)\n    return 1 / 0 if x == stop else x"


def test_names_of_a_function_begin_anew_and_say_so(notebook: Notebook) -> None:
    loop = LOOP.format(body="out.append(item)").replace("\n", "\n    ")
    worked = resumed(notebook, STEP + "out = go()", FUNCTION.format(loop=loop))
    assert worked == notebook.names["out"] == [*range(6)]
    assert "its items begin anew: out can't be kept" in notebook.told()


@pytest.mark.parametrize(
    "gather",
    [
        "[one(x) for x in nbckpt.items(range(6))]",
        "list(map(one, nbckpt.items(range(6))))",
    ],
)
def test_what_an_expression_gathers_begins_anew_and_says_so(
    notebook: Notebook, gather: str
) -> None:
    worked = resumed(notebook, f"{STEP}out = {gather}", GATHER)
    assert worked == notebook.names["out"] == [*range(6)]
    assert "what an expression gathers can't be kept" in notebook.told()


def test_function_that_builds_nothing_up_goes_on(notebook: Notebook) -> None:
    loop = LOOP.format(body="last = item").replace("\n", "\n    ")
    worked = resumed(notebook, STEP + "out = go()", FUNCTION.format(loop=loop))
    assert worked == [4, 5]


def test_inner_loop_begins_anew_where_its_names_are_not_asked_for(
    notebook: Notebook,
) -> None:
    loop = LOOP.format(body="out.append((outer, item))").replace("\n", "\n    ")
    source = f"{STEP}out = []\nfor outer in nbckpt.items('ab', every=1):\n    {loop}"
    source = source.replace("item == stop", "(outer, item) == ('b', stop)")
    worked = resumed(notebook, source)
    assert worked == [*range(6)]
    assert notebook.names["out"] == [(o, i) for o in "ab" for i in range(6)]


def test_object_and_what_can_not_be_kept_is_told(notebook: Notebook) -> None:
    mine = "class Mine: n = 0"
    begin = "mine, out = Mine(), []"
    body = "mine.n = item; out.append(open('in.txt', 'w')) if item == 3 else 0"
    source = f"{STEP}{begin}\n{LOOP.format(body=body)}\ndel out"
    worked = resumed(notebook, source.replace("(6)", "(6), every=1"), mine)
    assert worked[-1] == 5
    assert re.search("what they left in mine.* is not kept", notebook.told())


@pytest.mark.parametrize("value", [0, None, "", [1], {1: 2}, Counter(), np.zeros(2)])
def test_data_of_known_types_is_plain(value: object) -> None:
    assert is_plain(value)


@pytest.mark.parametrize(
    "value", [Mine(), Mine, len, pytest, (n for n in ()), sys.stdin]
)
def test_handles_functions_and_own_types_are_not(value: object) -> None:
    assert not is_plain(value)


def test_code_whose_source_is_not_known_carries_nothing() -> None:
    code = compile("for x in items(xs): out.append(x)", "<nowhere>", "exec")
    assert _carried(code, 4) == Carried()
