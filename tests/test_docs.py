"""The documents say what the code and the project file say."""

from __future__ import annotations

import ast
import re
import socket
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import nbckpt
from nbckpt.cli import commands
from nbckpt.plan import step_parser

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
OVERVIEW = (ROOT / "docs/overview.md").read_text("utf-8")
DISCIPLINE = (ROOT / "docs/discipline.md").read_text("utf-8")
OFF = ("skip", "xfail")
"""Marks of tests that show nothing."""


def section(text: str, title: str) -> str:
    """Return what stands under a heading, up to the next one."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def first_columns(text: str) -> list[str]:
    """Return the first cell of each row of the tables in a text, heads left out."""
    bodies = re.findall(r"^\|[-|]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE)
    return [row.split("|")[1].strip() for body in bodies for row in body.splitlines()]


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of each row that begins with a number."""
    found = re.findall(r"^\| \d+ \|.*\|$", text, re.MULTILINE)
    return [[cell.strip() for cell in row[1:-1].split(" |")] for row in found]


def named_in(row: list[str]) -> list[str]:
    """Return the tests that a row of the discipline names."""
    return re.findall(r"`([^`]+)`", row[3])


def exists(named: str) -> bool:
    """Say whether a test ``FILE::[CLASS::]NAME``, or ``FILE::NAME[CASE]``, runs."""
    file, _, rest = named.partition("::")
    whole, _, case = rest.partition("[")
    owner, _, name = whole.rpartition("::")
    path = ROOT / "tests" / file
    if not path.is_file():
        return False
    body = ast.parse(path.read_text("utf-8")).body
    if owner:
        classes = [n for n in body if isinstance(n, ast.ClassDef) and n.name == owner]
        body = [node for each in classes for node in each.body]
    found = [n for n in body if isinstance(n, ast.FunctionDef) and n.name == name]
    marks = [ast.unparse(mark) for node in found for mark in node.decorator_list]
    left_out = any(
        mark.startswith(f"pytest.mark.{no}(") for mark in marks for no in OFF
    )
    is_case = not case or (ROOT / "tests/cases/data" / case.rstrip("]")).is_dir()
    return bool(found) and is_case and not left_out


def names_of(requirements: list[str]) -> set[str]:
    """Return the packages that requirements name."""
    return {re.split(r"[<>=\[; ]", each)[0] for each in requirements}


def test_overview_lists_every_option_of_a_step() -> None:
    words = re.findall(
        r"--[a-z-]+", "\n".join(first_columns(section(OVERVIEW, "A step")))
    )
    options = [
        text for action in step_parser()._actions for text in action.option_strings
    ]

    assert sorted(words) == sorted(options)


def test_overview_lists_every_call_of_a_notebook() -> None:
    cells = first_columns(section(OVERVIEW, "Calls"))

    assert sorted(re.findall(r"\w+", " ".join(cells))) == sorted(nbckpt.HOMES)


def test_overview_lists_every_command() -> None:
    listed = re.findall(r"`([a-z]+)[ A-Z]*`", section(OVERVIEW, "Commands"))

    assert set(commands.commands) <= set(listed)


@pytest.mark.parametrize("name", sorted(commands.commands))
def test_command_has_help_with_an_example(name: str) -> None:
    told = commands.commands[name].help or ""

    assert f"nbckpt {name}" in told


def test_contributing_shows_the_layers_as_they_are_enforced() -> None:
    enforced = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    shown = first_columns(section(CONTRIBUTING, "Layers"))

    assert [re.findall(r"\w+", row) for row in shown] == [
        re.findall(r"\w+", layer) for layer in enforced
    ]


def test_contributing_names_the_layers_of_the_verbs_in_their_order() -> None:
    (verbs,) = (
        contract
        for contract in PROJECT["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["nbckpt.verbs"]
    )
    told = section(CONTRIBUTING, "Layers").partition("The verbs have layers")[2]

    names = re.findall(r"\w+", " ".join(verbs["layers"]))
    assert [name for name in re.findall(r"`(\w+)`", told) if name in names] == names


def test_contributing_gives_the_reason_of_each_dependency() -> None:
    told = section(CONTRIBUTING, "Dependencies")
    explained = {name.strip() for row in first_columns(told) for name in row.split(",")}
    extras = PROJECT["project"]["optional-dependencies"]
    needed = [*PROJECT["project"]["dependencies"], *chain(*extras.values())]

    assert explained == names_of(needed)


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_make_targets_that_are_named_exist(text: str) -> None:
    named = set(re.findall(r"\bmake ([a-z-]+)\b(?=`| {2,})", text))

    assert named
    assert named <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def test_changelog_tells_of_the_next_release() -> None:
    assert "## [Unreleased]" in CHANGELOG


def test_overview_says_where_the_state_lives_and_what_is_atomic() -> None:
    told = section(OVERVIEW, "Where things are kept")

    for word in ("`.nbckpt/`", "diskcache", "run and step", "one\ntransaction"):
        assert word in told


@pytest.mark.parametrize("name", ["panel.png", "terminal.svg"])
def test_picture_of_the_readme_is_small_and_tells_nothing_of_a_machine(
    name: str,
) -> None:
    content = (ROOT / "docs" / name).read_bytes()

    assert f"](docs/{name})" in README
    assert len(content) < 60_000
    for word in (b"/tmp", b"/home", b"/root", b"://", socket.gethostname().encode()):
        assert word not in content.replace(b"http://www.w3.org", b"")


def test_no_cell_of_the_discipline_is_empty() -> None:
    rows = rows_of(DISCIPLINE)

    assert len(rows) > 50
    for row in rows:
        assert len(row) == 4, row
        assert all(row), row
        assert named_in(row), row


def test_rows_of_the_discipline_are_numbered_without_a_gap() -> None:
    texts = DISCIPLINE.split("\n## ")[1:]
    numbers = [[int(row[0]) for row in rows_of(text)] for text in texts]

    assert [len(of_text) for of_text in numbers] == [12, 16, 37]
    for of_text in numbers:
        assert of_text == list(range(1, len(of_text) + 1))


@pytest.mark.parametrize(
    "named", sorted({name for row in rows_of(DISCIPLINE) for name in named_in(row)})
)
def test_test_that_the_discipline_names_exists(named: str) -> None:
    assert exists(named)


@pytest.mark.parametrize(
    "named",
    [
        "test_docs.py::test_of_nothing",
        "test_docs.py::TestOfNothing::test_test_that_is_not_there_is_noticed",
        "test_of_nothing.py::test_docs",
        "cases/test_cases.py::test_case_behaves_as_it_states[no_such_case]",
    ],
)
def test_test_that_is_not_there_is_noticed(named: str) -> None:
    assert not exists(named)
