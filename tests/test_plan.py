"""The step line and the plan: what is understood, and what is refused with an example."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from nbckpt.errors import BadStep
from nbckpt.plan import (
    EXAMPLE,
    FLAGS,
    LISTS,
    TEXTS,
    Step,
    doubles,
    read_duration,
    read_lines,
    read_plan,
    read_step,
    step_line,
    step_parser,
    twice,
    wrong_lines,
)


def parse(source: str) -> list[ast.stmt]:
    return ast.parse(source).body


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        ("clean", "name", "clean"),
        ("01.load-raw_x", "name", "01.load-raw_x"),
        ("a --reads raw.csv", "reads", ("raw.csv",)),
        ("a --reads x.csv y/*.csv", "reads", ("x.csv", "y/*.csv")),
        ("a --reads x --reads y z", "reads", ("x", "y", "z")),
        ("a --reads 'my file.csv'", "reads", ("my file.csv",)),
        ("a --reads ~/x.csv", "reads", ("~/x.csv",)),
        ("a --writes out/**/*.png", "writes", ("out/**/*.png",)),
        ('a --check "len(df) > 0"', "checks", ("len(df) > 0",)),
        ("a --check x --check y", "checks", ("x", "y")),
        ("a --check \"d['k'] == 'v'\"", "checks", ("d['k'] == 'v'",)),
        ("a --effects mail db", "effects", ("mail", "db")),
        ("a --ignore logger con", "ignore", ("logger", "con")),
        ("a --env HOME LANG", "env", ("HOME", "LANG")),
        ("a --drop con", "drop", ("con",)),
        ("a --always", "always", True),
        ("a", "always", False),
        ("a --version 2", "version", "2"),
        ("a --version 'two words'", "version", "two words"),
        ("a --max-age 12h", "max_age", 43200.0),
        ("a", "max_age", 0.0),
        ("a --note looked at it, all fine", "note", "looked at it, all fine"),
        ("a --note 'two  spaces'", "note", "two  spaces"),
        ("a --retries 3", "retries", 3),
        ("a --retries 0", "retries", 0),
        ("a --backoff 2m", "backoff", 120.0),
        ("a", "backoff", 1.0),
        ("a --stop-on-redo", "stop_on_redo", True),
        ("--always a", "name", "a"),
        ("--version 2 a", "name", "a"),
        ("--version=2 a", "version", "2"),
        ("  a  ", "name", "a"),
        ("a  # a comment --always", "always", False),
        ("a --check 'x # 1'", "checks", ("x # 1",)),
    ],
)
def test_step_line_is_read(line: str, field: str, expected: object) -> None:
    assert getattr(read_step(line), field) == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "name"),
        ("--always", "name"),
        ("--reads", "expected at least one argument"),
        ("a b", "unrecognized arguments: b"),
        ("a --bogus", "unrecognized arguments: --bogus"),
        ("a --read x", "unrecognized arguments"),
        ("a --alway", "unrecognized arguments"),
        ("a -x", "unrecognized arguments"),
        ("a --reads", "expected at least one argument"),
        ("a --version", "expected one argument"),
        ("a --check", "expected one argument"),
        ("a --retries two", "invalid int value"),
        ("a --retries -1", r"below 0|expected one argument"),
        ("a --retries=-1", "below 0"),
        ("a --max-age soon", "no duration"),
        ("a --max-age 1y", "no duration"),
        ("a --backoff -1s", r"no duration|expected one argument"),
        ("a --check 'x ='", "is no expression"),
        ("a --check 'x = 1'", "is no expression"),
        ("a --check ''", "is no expression"),
        ("a --check 'import os'", "is no expression"),
        ("a --note 'open", "No closing quotation"),
        ("a \\", "No escaped character"),
        ("a/b", "is no step name"),
        ("'a b'", "is no step name"),
        (".a", "is no step name"),
        ("ä", "is no step name"),
        ("''", "is no step name"),
        ("../../etc", "is no step name"),
        ("a --help", "unrecognized arguments"),
        ("# only a comment", "name"),
    ],
)
def test_wrong_step_line_is_refused_and_says_what_is_wrong(
    line: str, message: str
) -> None:
    with pytest.raises(BadStep, match=message) as caught:
        read_step(line)
    assert caught.value.remedy


@pytest.mark.parametrize("line", ["", "a --bogus", "a/b", "a --retries x"])
def test_refusal_of_a_step_line_shows_an_example_that_works(line: str) -> None:
    with pytest.raises(BadStep) as caught:
        read_step(line)
    assert caught.value.remedy == EXAMPLE
    assert read_step(EXAMPLE.split("%%step ", 1)[1]).name == "clean"


def test_wrong_line_does_not_leave_the_process() -> None:
    with pytest.raises(BadStep):
        step_parser().parse_args(["--nonsense"])


def test_help_names_every_option() -> None:
    text = step_parser().format_help()
    for option in [*LISTS, *TEXTS, *FLAGS, "check", "note", "retries"]:
        assert f"--{option}" in text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("2m", 120.0),
        ("12h", 43200.0),
        ("7d", 604800.0),
        ("1w", 604800.0),
        ("1.5h", 5400.0),
        ("0.25s", 0.25),
        ("0", 0.0),
        (" 3 d ", 259200.0),
    ],
)
def test_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert read_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "-1s", "1 h 2 m", "1y", "1e3", "inf", "1,5h", "1H", ".5s", "x1s"]
)
def test_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadStep, match="is no duration") as caught:
        read_duration(text)
    assert "12h" in caught.value.remedy


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("%%step a", "a"),
        ("%%step a --always\nx = 1", "a --always"),
        ("%%step\tb", "b"),
        ("%%step   c  \n", "c"),
        ("%%step", ""),
        ("%step a\nx = 1", "a"),
        ("%%steps a", None),
        ("%%stepper", None),
        ("%%step_a", None),
        ("%%step-a", None),
        (" %%step a", None),
        ("\n%%step a", None),
        ("# a comment\n%%step a", None),
        ("x = 1", None),
        ("", None),
        ("x = '%%step a'", None),
        ("%%time\n%%step a", None),
        ("%%STEP a", None),
        ("step a", None),
    ],
)
def test_step_cell_is_told_by_its_first_line(source: str, line: str | None) -> None:
    assert step_line(source) == line


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([], set()),
        (["%%step a", "%%step b"], set()),
        (["%%step a", "x", "%%step a --always"], {"a"}),
        (["%%step a", "%%step a", "%%step a", "%%step b", "%%step b"], {"a", "b"}),
        (["%%step", "%%step"], set()),
        (["x = 1", "x = 1"], set()),
        (["%%step a", "# %%step a"], set()),
    ],
)
def test_names_that_two_cells_bear_are_found(
    sources: list[str], expected: set[str]
) -> None:
    assert doubles(sources) == expected


SOURCES = [
    "import os",
    '%%step load --reads r.csv --writes w.csv --check "x" --effects mail\nx = 1',
    "k = 2",
    "%%step fit\ny = x",
]


def test_plan_lists_the_steps_in_order_with_what_they_declare() -> None:
    plan = read_plan(SOURCES, parse)
    assert [step.name for step in plan.steps] == ["load", "fit"]
    assert [step.number for step in plan.steps] == [1, 2]
    assert plan.source == "notebook"
    load = plan.steps[0]
    assert (load.reads, load.writes) == (("r.csv",), ("w.csv",))
    assert (load.checks, load.effects) == (("x",), ("mail",))


def test_notebook_without_steps_has_an_empty_plan() -> None:
    assert read_plan(["x = 1", ""], parse).steps == ()
    assert read_plan([], parse).steps == ()


@pytest.mark.parametrize(
    ("number", "source", "changes"),
    [
        (1, SOURCES[1] + "  # why", []),
        (1, SOURCES[1].replace("x = 1", "x = 2"), ["load.code"]),
        (1, SOURCES[1].replace("--effects mail", ""), ["load.effects"]),
        (0, "import sys", ["load.before", "fit.before"]),
        (2, "k = 3", ["fit.before"]),
        (3, "%%step fit\ny = x + 1", ["fit.code"]),
        (3, "%%step fit --always\ny = x", []),
        (0, "import os  # why", []),
    ],
)
def test_edit_shows_in_the_plan_exactly_where_it_counts(
    number: int, source: str, changes: list[str]
) -> None:
    edited = [*SOURCES]
    edited[number] = source
    before, after = read_plan(SOURCES, parse), read_plan(edited, parse)
    found = [
        f"{one.name}.{field}"
        for one, other in zip(before.steps, after.steps, strict=True)
        for field in ("number", "name", "code", "effects", "before", "checks")
        if getattr(one, field) != getattr(other, field)
    ]
    assert found == changes


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            ["%%step a", "%%step a"],
            r"code cell 2 \(%%step a\): two cells are named 'a'",
        ),
        (["x = 1", "%%step a --bogus"], r"code cell 2 \(%%step a --bogus\): unrec"),
        (["%%step"], r"code cell 1 \(%%step\): the following arguments"),
        (["%%step good", "%step a/b"], r"code cell 2 \(%step a/b\): 'a/b' is no step"),
        (["%%step a 'b"], r"code cell 1 \(%%step a 'b\): "),
    ],
)
def test_wrong_step_line_is_told_with_its_cell(
    sources: list[str], message: str
) -> None:
    (wrong,) = wrong_lines(sources)
    assert re.match(message, wrong.what)
    assert wrong.remedy


def test_each_cell_is_a_step_or_wrong_or_plain() -> None:
    found = read_lines(["x = 1", "%%step a", "%%step b --bogus"])
    assert found[:2] == [None, Step("a")]
    assert isinstance(found[2], BadStep)
    assert wrong_lines(["x = 1", "%%step a"]) == []


def test_plan_leaves_cells_with_wrong_lines_out() -> None:
    sources = ["%%step a", "%%step b --bogus", "%%step a\nx = 2", "%%step c"]
    plan = read_plan(sources, parse)
    assert [(step.number, step.name) for step in plan.steps] == [(1, "a"), (2, "c")]


def test_cell_that_is_no_python_counts_by_its_text() -> None:
    one = read_plan(["%%step a\nx = ="], parse).steps[0].code
    other = read_plan(["%%step a\nx = = "], parse).steps[0].code
    assert one != other
    assert one == read_plan(["%%step a\nx = ="], parse).steps[0].code


def test_error_for_two_cells_of_one_name_names_it() -> None:
    assert "'clean'" in str(twice("clean"))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"version": "1"}, {"version": "2"}, False),
        ({"version": ""}, {"version": "1"}, False),
        ({"always": True}, {"always": False}, True),
        ({"note": "a"}, {"note": "b"}, True),
        ({"checks": ("x",)}, {"checks": ()}, True),
        ({"reads": ("x",)}, {"reads": ("y",)}, True),
        ({"retries": 1}, {"retries": 2}, True),
        ({"version": "1"}, {"version": "1"}, True),
    ],
)
def test_only_the_version_option_changes_what_a_step_means(
    one: dict[str, Any], other: dict[str, Any], same: bool
) -> None:
    first, second = Step("a", **one), Step("a", **other)
    assert (first.options_fingerprint == second.options_fingerprint) is same
