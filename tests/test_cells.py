"""The cells of files and scripts, and what IPython would take for something else."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import nbformat
import pytest

from nbckpt.errors import BadNotebook, BadStep
from nbckpt.source.cells import parse_body, read_cells, read_sources, with_questions
from nbckpt.verbs.finding.targets import folder_of, notebook_named

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

SCRIPT = """\
# %% [markdown]
# # A job
# %%
# %load_ext nbckpt
import os
# %% tags=["parameters"]
n = 1
# %%
# %%step one --check "a == 10"
a = n * 10
"""


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


def test_notebook_of_today_is_read_without_nbformat_and_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new, tagged = nbformat.v4, {"tags": ["parameters"]}
    made = [
        new.new_markdown_cell("# Title"),
        new.new_code_cell("n = 1\nm = 2", metadata=tagged),
        new.new_code_cell(""),
    ]
    path = tmp_path / "nb.ipynb"
    nbformat.write(new.new_notebook(cells=made), path)
    read = nbformat.read(path, 4)

    # Beside JupyterLab its import takes seconds, and each kernel reads its notebook.
    monkeypatch.setitem(sys.modules, "nbformat", None)
    cells = read_cells(path)

    assert [cell.source for cell in cells] == [
        cell.source for cell in read.cells if cell.cell_type == "code"
    ]
    assert [cell.tags for cell in cells] == [("parameters",), ()]


def test_notebook_of_an_older_format_is_read_by_nbformat(tmp_path: Path) -> None:
    old = nbformat.v3
    code = old.new_code_cell(input="n = 1", language="python")
    sheet = old.new_worksheet(cells=[old.new_heading_cell("Title"), code])
    path = tmp_path / "nb.ipynb"
    nbformat.write(old.new_notebook(worksheets=[sheet]), path, version=3)
    assert read_sources(path) == ["n = 1"]


def test_script_has_the_cells_that_its_lines_mark(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    cells = read_cells(script)
    assert [cell.source for cell in cells] == [
        "%load_ext nbckpt\nimport os",
        "n = 1",
        '%%step one --check "a == 10"\na = n * 10',
    ]
    assert [cell.tags for cell in cells] == [(), ("parameters",), ()]


def test_script_without_jupytext_is_refused_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    monkeypatch.setitem(sys.modules, "jupytext", None)
    with pytest.raises(BadNotebook, match=r"pip install 'nbckpt\[jupytext\]'"):
        read_sources(tmp_path / "job.py")


@pytest.mark.parametrize("name", ["job.py", "job.ipynb"])
def test_file_that_is_missing_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadNotebook, match="there is no notebook"):
        read_sources(tmp_path / name)


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 99_999], ids=str.__len__)
def test_file_that_is_no_notebook_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_text(text)
    with pytest.raises(BadNotebook, match="no readable notebook"):
        read_sources(path)


def test_script_is_a_notebook_where_a_command_names_one(tmp_path: Path) -> None:
    assert notebook_named("job.py") is not None
    assert notebook_named("job-1") is None
    assert folder_of("", str(tmp_path / "job.py")) == tmp_path / ".nbckpt"
