"""What a loop's source tells of the names that it builds up."""

from __future__ import annotations

import ast

import pytest

from nbckpt.source.carried import Carried, carried_at


def at_items(source: str) -> Carried:
    """Look at the loop over what ``items`` is called with."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (call,) = [node for node in calls if ast.unparse(node.func).endswith("items")]
    last, end = call.end_lineno or 0, call.end_col_offset or 0
    return carried_at(tree, (call.lineno, last, call.col_offset, end))


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("results.append(x)", {"results"}),
        ("table[x] = 1", {"table"}),
        ("state.part.count = x", {"state"}),
        ("del table[x]", {"table"}),
        ("total += x", {"total"}),
        ("total = total + x", {"total"}),
        ("last, now = now, x", {"now"}),
        ("y = x + 1\nprint(y)", set()),
        ("rows = []\nrows.append(x)", set()),
        ("x.append(1)", set()),
        ("found = results.pop()", set()),
        ("if x:\n  optimizer.step()", {"optimizer"}),
    ],
)
def test_names_built_up_are_told_from_those_of_one_item(
    body: str, names: set[str]
) -> None:
    indented = body.replace("\n", "\n  ")
    source = f"for x in nbckpt.items(xs):\n  {indented}"
    assert at_items(source) == Carried(frozenset(names))


@pytest.mark.parametrize(
    "head",
    [
        "for x in tqdm(items(xs)):",
        "for i, x in enumerate(items(xs), 1):",
        "for x in (y for y in items(xs)):",
        "loop = items(xs)\nfor x in loop:",
        "loop = tqdm(items(xs))\nfor x in loop:",
    ],
)
def test_loop_is_found_over_a_call_that_is_wrapped_or_named(head: str) -> None:
    assert at_items(f"{head}\n out.append(x)") == Carried(frozenset({"out"}))


def test_other_loops_beside_it_are_none_of_it() -> None:
    source = "for y in ys:\n a += y\nfor x in items(xs):\n b += x\nc = []\nc.append(1)"
    assert at_items(source).names == {"b"}


def test_names_of_a_function_are_told_as_its_own() -> None:
    source = "def f():\n if 1:\n  for x in items(xs):\n   out.append(x)"
    assert at_items(source) == Carried(frozenset({"out"}), is_local=True)


@pytest.mark.parametrize(
    "source",
    [
        "r = [f(x) for x in items(xs)]",
        "r = {x: 1 for x in items(xs)}",
        "r = sum(f(x) for x in items(xs))",
        "r = list(items(xs))",
        "for x in items(xs):\n yield x",
    ],
)
def test_expression_that_gathers_is_told(source: str) -> None:
    assert at_items(source) == Carried(is_gathered=True)


@pytest.mark.parametrize(
    "source", ["items(xs)", "loop = items(xs)", "next(f)\nitems(x)"]
)
def test_call_without_a_loop_carries_nothing(source: str) -> None:
    assert at_items(source) == Carried()


def test_place_where_no_call_stands_carries_nothing() -> None:
    assert carried_at(ast.parse("x = 1"), (7, 7, 0, 3)) == Carried()
