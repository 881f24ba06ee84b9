"""A plain notebook turned into steps: what changes, what stays, and that it runs."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from nbckpt import cli
from nbckpt.verbs.forms.pages import plain
from nbckpt.verbs.prepare.annotation import (
    Annotation,
    Cell,
    annotate,
    annotation_page,
    propose,
)
from nbckpt.verbs.prepare.linting import lint_notebook

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

PLAIN = """\
m # A shop
c import csv, pathlib
OUT = pathlib.Path("out")
OUT.mkdir(exist_ok=True)
m ## 1. Load the orders
c with open("orders.csv") as file:
    orders = list(csv.DictReader(file))
c len(orders)
m ## Clean
some words
c # Drop the empty ones
orders = [order for order in orders if order["n"]]
c with open(OUT / "clean.csv", "w") as file:
    writer = csv.DictWriter(file, ["n"])
    writer.writeheader()
    writer.writerows(orders)
c def total(rows):
    return sum(int(row["n"]) for row in rows)
c result = total(orders)
result
"""
OLD = json.dumps(
    {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {},
        "worksheets": [{"cells": []}],
    }
)
STEPS = [
    "%%step load-the-orders --reads orders.csv",
    "%%step load-the-orders-2",
    "%%step clean",
    "%%step writer --writes out/clean.csv --drop writer",
    "%%step result",
]


def cells(text: str) -> list[Cell]:
    """Return the cells of a text in which a line ``c …`` or ``m …`` begins one."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line[:2] in {"c ", "m "}:
            found.append([line[0], line[2:]])
        else:
            found[-1].append(line)
    kinds = {"c": "code", "m": "markdown"}
    return [Cell(kinds[kind], "\n".join(lines)) for kind, *lines in found]


def a_notebook(folder: Path, text: str = PLAIN) -> Path:
    document = nbformat.v4.new_notebook()
    make: Any = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
    }
    document.cells = [make[cell.kind](cell.source) for cell in cells(text)]
    path = folder / "shop.ipynb"
    nbformat.write(document, path)
    (folder / "orders.csv").write_text("n\n1\n\n3\n")
    return path


def first_lines(text: str, **how: Any) -> list[str]:
    """Return the step lines of a result."""
    found = propose(cells(text), **how).after
    lines = [cell.source.partition("\n")[0] for cell in found if cell.kind == "code"]
    return [line for line in lines if line.startswith(("%%step", "%step"))]


def test_work_becomes_steps_named_after_headings_with_their_files() -> None:
    found = propose(cells(PLAIN))
    assert first_lines(PLAIN) == STEPS
    assert found.plain == [1, 6]


def test_extension_is_loaded_once_above_the_first_code() -> None:
    found = propose(cells(PLAIN)).after
    assert [cell.source for cell in found[:2]] == ["# A shop", "%load_ext nbckpt"]
    loaded = propose(cells("c %load_ext nbckpt\nc x = work()")).after
    assert len(loaded) == 2


def test_notebook_of_setup_alone_stays_as_it_is() -> None:
    assert (
        propose(cells("c import os\nc N = 1")).after
        == propose(cells("c import os\nc N = 1")).before
    )


def test_what_is_annotated_already_is_left_alone() -> None:
    once = propose(cells(PLAIN))
    again = propose(once.after)
    assert [c.source for c in again.after] == [c.source for c in once.after]
    assert again.steps == []


def test_name_that_a_step_bears_already_is_not_given_twice() -> None:
    text = "m # Load\nc %%step load\nx = work()\nm # Load\nc y = work()\nm # Load\nc z = f()"
    assert first_lines(text) == ["%%step load", "%%step load-2", "%%step load-3"]


@pytest.mark.parametrize(
    "source",
    [
        "%%writefile a.py\nx = 1",
        "%%html\n<b>x</b>",
        "%%bash\npip install -q x",
        "%%sh\napt-get -y install x",
        "this is no python",
        "",
        "# only a comment",
    ],
)
def test_cell_that_can_be_no_step_stays_plain(source: str) -> None:
    assert propose([Cell("code", source)]).after[-1].source == source


def test_cell_with_parameters_stays_plain() -> None:
    assert propose([Cell("code", "n = work()", tags=("parameters",))]).plain == [1]


def test_handle_that_no_other_cell_names_is_dropped() -> None:
    text = "c import csv\nc w = csv.writer(work())\nc r = csv.reader(work())\nc next(r)"
    lines = ["%%step w --drop w", "%%step r", "%%step cell-4"]
    assert first_lines(text) == lines


def test_connection_of_a_cell_above_is_no_input() -> None:
    """It can't be compared: each new kernel would write the rows once more."""
    text = "c import sqlite3\nc con = sqlite3.connect('a')\nc con.execute(work())"
    assert first_lines(text) == ["%%step cell-3 --ignore con"]


def test_timed_cell_keeps_its_magic_below_the_step() -> None:
    found = propose(cells("c %%time\nx = work()")).after
    assert found[-1].source == "%%step x\n%%time\nx = work()"


def test_files_of_a_timed_cell_are_seen() -> None:
    assert first_lines("c %%time\ndf.to_csv('a.csv')") == [
        "%%step cell-1 --writes a.csv"
    ]


def test_cell_without_a_name_of_its_own_is_named_after_its_section() -> None:
    text = "m # Load\nc work()\nc work()\nm # Fit\nc x = work()\nc work()"
    named = ["load", "load-2", "fit", "fit-2"]
    assert first_lines(text) == [f"%%step {name}" for name in named]


def test_variable_of_a_comprehension_names_no_step() -> None:
    text = "c work()\nc out = [work(i, k) for i, k in {j: j for j in x}]"
    assert first_lines(text) == ["%%step cell-1", "%%step out"]


def test_variables_that_pass_by_name_no_step() -> None:
    text = "m # Rows\nc x = w()\nc with open('a') as f:\n for row in x: f.read(row)"
    assert first_lines(text)[1] == "%%step rows-2 --reads a"


def test_script_of_a_shell_is_a_step_above_its_magic() -> None:
    found = propose(cells("c %%bash\nmake all")).after
    assert found[-1].source == "%%step cell-1\n%%bash\nmake all"


@pytest.mark.parametrize("call", ["joblib.dump(model, 'm')", "torch.save(model, 'm')"])
def test_file_that_comes_after_what_is_written_is_seen(call: str) -> None:
    text = f"c import joblib, torch\nc {call}"
    assert first_lines(text) == ["%%step cell-2 --writes m"]


def test_link_to_a_notebook_stays_one(tmp_path: Path) -> None:
    path = a_notebook(tmp_path)
    link = tmp_path / "link.ipynb"
    link.symlink_to(path)
    assert annotate(link, write=True)["written"]
    assert link.is_symlink()
    assert "%%step" in path.read_text()


def test_paths_with_blanks_are_quoted() -> None:
    assert first_lines("c t = open('my data.txt').read()") == [
        "%%step t --reads 'my data.txt'"
    ]


def test_by_heading_neighbouring_work_is_one_step_and_results_stay_shown() -> None:
    text = (
        "m # Load\nc x = work()\nx\nm words\nc y = x + 1\ny\nc def f(): pass\nc z = f()"
    )
    found = [c.source for c in propose(cells(text), "heading").after]
    assert found[2] == "%%step load\nx = work()\ndisplay(x)\n\ny = x + 1\ny"
    assert found[3:] == ["words", "def f(): pass", "%%step z\nz = f()"]


def test_by_heading_magics_keep_their_cells() -> None:
    text = "m # Load\nc x = work()\nc y = !ls\nc z = work()"
    assert first_lines(text, by="heading") == ["%%step load", "%%step y", "%%step z"]


@pytest.mark.parametrize("by", ["cell", "heading"])
def test_result_runs_passes_lint_and_resumes(
    by: Any, tmp_path: Path, notebook: Notebook
) -> None:
    path = a_notebook(tmp_path)
    data = annotate(path, by, write=True)
    assert lint_notebook(path)["findings"] == data["findings"] == []
    names = [step["name"] for step in data["steps"]]
    for _ in range(2):
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "code":
                notebook.run(cell.source)
        notebook.restart()
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            notebook.run(cell.source)
    assert [notebook.decision(name) for name in names] == ["Skip"] * len(names)
    assert notebook.names["result"] == 4


def test_nothing_is_written_unless_asked(tmp_path: Path) -> None:
    path = a_notebook(tmp_path)
    before = path.read_bytes()
    data = annotate(path)
    assert (data["changed"], data["written"]) == (True, False)
    assert "+%%step load-the-orders --reads orders.csv" in data["diff"]
    assert path.read_bytes() == before


def test_file_keeps_all_but_the_text_of_its_cells(tmp_path: Path) -> None:
    path = a_notebook(tmp_path)
    before = json.loads(path.read_text())
    before["metadata"]["mine"] = {"ü": 1}
    before["cells"][3]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": ["1"]}
    ]
    path.write_text(json.dumps(before))
    path.chmod(0o640)
    annotate(path, write=True)
    after = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert "ü" in path.read_text()
    new = [cell for cell in after["cells"] if cell["id"] == "nbckpt-load"]
    rest = [cell for cell in after["cells"] if cell not in new]
    assert len(new) == 1
    assert after["metadata"] == before["metadata"]
    assert [cell | {"source": ""} for cell in rest] == [
        cell | {"source": ""} for cell in before["cells"]
    ]
    nbformat.validate(nbformat.read(path, 4))
    written = path.read_bytes()
    assert annotate(path, write=True)["changed"] is False
    assert path.read_bytes() == written


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("missing.ipynb", None, "there is no notebook"),
        ("broken.ipynb", "{", "no readable notebook"),
        ("job.py", "x = 1", "no .ipynb file"),
        ("old.ipynb", OLD, "old format"),
    ],
)  # fmt: skip
def test_file_that_can_not_be_annotated_is_one_clear_line_and_exit_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str | None,
    said: str,
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit) as left:
        cli.main(["annotate", str(tmp_path / name)])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_page_shows_the_diff_what_to_look_at_and_how_to_write(tmp_path: Path) -> None:
    text = "c import requests\nc r = requests.post('http://localhost', json={})"
    data = annotate(a_notebook(tmp_path, text))
    said = plain(annotation_page(data))
    assert "+%%step r" in said
    assert "happens again whenever the step runs again" in said
    assert f"nothing is written to {data['notebook']} yet. To do it, say the" in said


def test_page_says_when_there_is_nothing_to_do(tmp_path: Path) -> None:
    data: Annotation = annotate(a_notebook(tmp_path, "c import os"))
    assert plain(annotation_page(data)).endswith("nothing to do")
