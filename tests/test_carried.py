"""What a loop's source tells of the names that it builds up."""

from __future__ import annotations

import ast

import pytest

from nbckpt.source.carried import carried


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
    assert carried(ast.parse(source).body) == names


def test_loop_over_a_mapping_is_none_over_items() -> None:
    source = "for k, v in d.items():\n  results.append(v)"
    assert carried(ast.parse(source).body) == set()


def test_loop_inside_a_function_or_branch_is_seen() -> None:
    source = "def f():\n if 1:\n  for x in items(xs):\n   out.append(x)"
    assert carried(ast.parse(source).body) == {"out"}
