"""The page of JSON shapes says what the code says, and each verb is on it."""

from __future__ import annotations

import pytest

from nbckpt.cli import commands
from tests import shapes

TAKES_JSON = sorted(
    name
    for name, command in commands.commands.items()
    if any("--json" in parameter.opts for parameter in command.params)
)


def test_page_is_as_the_code_makes_it() -> None:
    assert shapes.PAGE.read_text("utf-8") == shapes.page(), "python -m tests.shapes"


@pytest.mark.parametrize("verb", TAKES_JSON)
def test_verb_that_takes_json_has_its_shape_on_the_page(verb: str) -> None:
    told = shapes.page().partition(f"\n## {verb}\n")[2].partition("\n## ")[0]
    assert told.count("\n| `") >= 2


def test_shapes_of_one_name_are_not_two() -> None:
    """The page names shapes without their modules."""
    names = [
        line
        for path in (shapes.ROOT / "nbckpt").rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if line.startswith("class ") and "(TypedDict" in line
    ]
    assert len(names) == len(set(names))
