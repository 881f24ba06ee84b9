"""Answers on a terminal hold all that they hold elsewhere."""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING

import pytest

from nbckpt.verbs.forms import drawing
from nbckpt.verbs.forms.pages import Diff, Table, Tree, plain

if TYPE_CHECKING:
    from nbckpt.verbs.forms.pages import Page

PAGE: Page = [
    "run etl-1: [bold]failed[/bold]",
    "",
    Table(
        ("step", "state", "note"),
        [("load", "completed", "out/" + "deep/" * 20 + "orders.parquet"),
         ("fit\x1b[2J", "failed", "ValueError: " + "x" * 90)],
    ),
    Tree(
        "record of [bold]fit[/bold]",
        [
            "values: " + "model_of_many_things, " * 9,
            Tree("files\x1b[2J", [Table(("file", "digest"), [("deep/" * 20, "d1")])]),
            Tree("failed", ["why: " + "so " * 40 + "\nand more"]),
        ],
    ),
]  # fmt: skip


class Out(io.StringIO):
    """A terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Out:
    """Return a narrow terminal, which is standard output now."""
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "60"}.items():
        monkeypatch.setenv(name, value)
    out = Out()
    monkeypatch.setattr(sys, "stdout", out)
    return out


def answered(monkeypatch: pytest.MonkeyPatch, *, as_json: bool = False) -> str:
    """Return what is written to a narrow terminal."""
    out = a_terminal(monkeypatch)
    drawing.answer({"run": "etl-1"}, lambda _: PAGE, as_json=as_json)
    return out.getvalue()


def letters(text: str) -> str:
    """Return a text without colours, lines of boxes, blanks and line breaks."""
    return re.sub(r"\x1b\[[0-9;]*m|[\s\u2500-\u257f]", "", text)


def test_branches_stand_below_their_line_with_guides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = re.sub(r"\x1b\[[0-9;]*m", "", answered(monkeypatch)).splitlines()
    assert max(map(len, shown)) <= 60
    tree = [
        line.rstrip() for line in shown[shown.index("record of [bold]fit[/bold]") :]
    ]
    assert tree[1].startswith("├── values: model_of_many_things,")
    assert tree[2].startswith("│   model_of_many_things,")
    table = tree.index("├── files�[2J")
    assert tree[table + 1].startswith("│   └── file")
    assert tree[table + 2].startswith("│       ───")
    assert tree[-1] == "        and more"


@pytest.mark.parametrize(
    ("cells", "whole"),
    [
        (("etl-1", "2026-11-30 07:20:39", "/deep" * 20), "2026-11-30 07:20:39"),
        (("etl-1", "2026-11-30 07:20:39", *("/deep" * 20,) * 3), "2026-11-30   /deep"),
        (("0.19 s", "waiting for a human", *("/deep" * 20,) * 3), "0.19 s   waiting"),
        (("etl-1 is one",) * 10, ""),
    ],
)
def test_long_cells_give_way_and_times_and_words_stay_whole(
    monkeypatch: pytest.MonkeyPatch, cells: tuple[str, ...], whole: str
) -> None:
    table = Table(tuple("h" * len(cells)), [cells])
    monkeypatch.setattr("tests.test_drawing.PAGE", [table, Tree("t", [table])])
    shown = re.sub(r"\x1b\[[0-9;]*m", "", answered(monkeypatch))
    assert whole in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_command_in_a_line_of_its_own_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = "nbckpt run /a/" + "long/" * 20 + "way.ipynb --run-id way-1"
    monkeypatch.setattr("tests.test_drawing.PAGE", [command])
    assert answered(monkeypatch) == command + "\n"


def test_narrow_terminal_cuts_nothing_off(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = answered(monkeypatch)
    assert "\u2026" not in shown
    assert sorted(letters(shown)) == sorted(letters(plain(PAGE)))


def test_states_have_colours_and_texts_steer_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = answered(monkeypatch)
    assert "\x1b[32mcompleted" in shown
    assert "\x1b[31mfailed" in shown
    assert "\x1b[2J" not in shown
    assert "[bold]failed[/bold]" in shown


def test_lines_of_a_diff_have_colours_and_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    diff = Diff("@@ -1 +1,2 @@\n+%%step a\x1b[2J\n x = 1\n-[bold]y")
    monkeypatch.setattr("tests.test_drawing.PAGE", [diff])
    shown = answered(monkeypatch)
    assert "\x1b[32m+%%step a\N{REPLACEMENT CHARACTER}[2J" in shown
    assert "\x1b[31m-[bold]y" in shown
    assert letters(shown) == letters(plain([diff]))


def test_bar_is_shown_while_rows_are_taken_and_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(drawing.tracked([1, 2])) == [1, 2]
    assert capsys.readouterr().out == ""
    out = a_terminal(monkeypatch)
    rows = iter(drawing.tracked([1, 2]))
    assert next(rows) == 1
    assert "━" in out.getvalue()
    assert list(rows) == [2]
    assert out.getvalue().endswith("\x1b[2K")


def test_json_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    told = answered(monkeypatch, as_json=True)
    assert told == '{\n  "schema_version": 1,\n  "run": "etl-1"\n}\n'


def test_closed_output_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not drawing.is_drawn()
