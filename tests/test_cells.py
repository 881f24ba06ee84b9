"""The text of cells: what IPython would take for something else than the user meant."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from nbckpt.cells import parse_body, with_questions
from nbckpt.errors import BadStep

if TYPE_CHECKING:
    from tests.notebook import Notebook


def changed(source: str) -> str:
    return "".join(with_questions(source.splitlines(keepends=True)))


def calls(words: str) -> str:
    return f"get_ipython().run_line_magic('nbckpt', {words!r})\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("%nbckpt unknown is it so?", calls("unknown is it so?")),
        ("x = 1\n%nbckpt note why?  \ny = 2\n", f"x = 1\n{calls('note why?')}y = 2\n"),
        ("if x:\n    %nbckpt note a?\n", f"if x:\n    {calls('note a?')}"),
        ("%nbckpt note what??", calls("note what??")),
        ("%nbckpt unknown isn't it?", calls("unknown isn't it?")),
    ],
)
def test_line_that_ends_with_a_question_mark_calls_the_magic(
    source: str, expected: str
) -> None:
    assert changed(source) == expected
    assert changed(expected) == expected


@pytest.mark.parametrize(
    "source",
    [
        "",
        "%nbckpt?",
        "%nbckpt ?",
        "%nbckpt??\n",
        "%nbckpt note fine.\n",
        "%pip show nbckpt?",
        "df?",
        "x = '''\n%nbckpt note a?\n'''\n",
        "%%html\n%nbckpt note a?\n",
        "# %nbckpt note a?",
    ],
)
def test_everything_else_stays_as_it_is(source: str) -> None:
    assert changed(source) == source


def test_file_and_kernel_read_the_line_alike() -> None:
    (found,) = parse_body("%nbckpt note why?")
    (plain,) = parse_body('%nbckpt note "why"')
    (meant,) = ast.parse(calls("note why?")).body
    assert ast.dump(found) == ast.dump(meant)
    assert ast.dump(found) != ast.dump(plain)


def test_question_without_quotes_is_recorded(notebook: Notebook) -> None:
    notebook.run("%nbckpt start")
    notebook.run("%nbckpt unknown is 9E the carrier that was EV?")
    notebook.run("%%step a\n%nbckpt note are they real?\nx = 1")
    run_id = notebook.session.run_id
    (point,) = notebook.journal.unknowns(run_id)
    (note,) = notebook.journal.notes(run_id)
    assert (point.text, note.text) == (
        "is 9E the carrier that was EV?",
        "are they real?",
    )
    assert isinstance(notebook.error("%nbckpt status?"), BadStep)


def test_question_mark_behind_the_magic_alone_is_a_request_for_help(
    notebook: Notebook,
) -> None:
    notebook.shown()
    notebook.run("%nbckpt?")
    assert "Run a verb" in notebook.shown()
