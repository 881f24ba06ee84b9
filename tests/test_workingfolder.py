"""The working folder is an input of steps that tell relative paths from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.notebook import write_cells

if TYPE_CHECKING:
    from tests.notebook import Notebook

READ = "%%step read\nfrom pathlib import Path; text = Path('f').read_text()"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a notebook in a project with two folders, each with a file of the same name."""
    monkeypatch.chdir(tmp_path)
    for name in (".", "a", "b"):
        Path(name).mkdir(exist_ok=True)
        Path(name, "f").write_text(name)
    write_cells()
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(tmp_path / "etl.ipynb"))


def again(notebook: Notebook, *sources: str, folder: str = ".") -> None:
    """Run cells in a new kernel, which begins beside the notebook or elsewhere."""
    os.chdir(Path(os.environ["NBCKPT_NOTEBOOK"]).parent / folder)
    notebook.restart()
    for source in sources:
        notebook.run(source)


def go(folder: str) -> str:
    """Return a cell that goes to another folder."""
    return f"import os; os.chdir({folder!r})"


@pytest.mark.parametrize(
    "body",
    [
        "from pathlib import Path; text = Path('f').read_text()",
        "import sqlite3; text = sqlite3.connect('x.db').close()",
        "import os; os.mkdir('new')",
        "import os; text = os.listdir()",
        "from glob import glob; text = glob('*')",
        "import contextlib\nwith contextlib.chdir('../a'): x = 1",
        "from pathlib import Path; text = (Path.cwd() / 'f').read_text()",
    ],
)
def test_step_that_tells_paths_from_another_folder_runs_again(
    notebook: Notebook, body: str
) -> None:
    again(notebook, go("a"), f"%%step read\n{body}")
    again(notebook, go("b"), f"%%step read\n{body}")
    assert notebook.decision("read") == "Run"
    assert "working folder changed ('a' → 'b')" in notebook.reason("read")
    again(notebook, go("b"), f"%%step read\n{body}")
    assert notebook.decision("read") == "Skip"


@pytest.mark.parametrize(
    "body",
    ["x = 1", "import os, pathlib; x = pathlib.Path(os.environ['PLACE']).read_text()"],
    ids=["no file", "whole path"],
)
def test_folder_is_no_input_of_a_step_that_tells_no_path_from_it(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setenv("PLACE", str(Path("a/f").absolute()))
    again(notebook, go("a"), f"%%step read\n{body}")
    again(notebook, go("b"), f"%%step read\n{body}")
    assert notebook.decision("read") == "Skip"


def test_step_that_goes_elsewhere_by_a_whole_path_first_is_skipped_from_anywhere(
    notebook: Notebook,
) -> None:
    go_first = READ.replace("text", f"{go(str(Path('a').absolute()))}; text", 1)
    again(notebook, go_first)
    again(notebook, go("b"), go_first)
    assert notebook.decision("read") == "Skip"


@pytest.mark.parametrize(
    ("first", "then"),
    [((".", ""), ("a", "")), ((".", "a"), ("b", "../a")), (("a", ".."), (".", ""))],
    ids=["begun elsewhere", "same folder by another way", "up only if need be"],
)
def test_kernel_that_begins_elsewhere_skips_as_before(
    notebook: Notebook, first: tuple[str, str], then: tuple[str, str]
) -> None:
    for number, (folder, way) in enumerate([first, then]):
        again(notebook, go(way or "."), READ, folder=folder)
        assert notebook.decision("read") == ("Run", "Skip")[number]


def test_moved_project_skips_in_the_folders_that_moved_along(
    notebook: Notebook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = f"%%step enter\n{go('b')}"
    cells = [go("a"), READ, go(".."), enter, READ.replace("read", "below", 1)]
    again(notebook, *cells)
    notebook.session.release()
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    tmp_path.rename(moved)
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(moved / "etl.ipynb"))
    again(notebook, *cells)
    assert {
        d: notebook.decision(d) for d in ("read", "enter", "below")
    } == dict.fromkeys(("read", "enter", "below"), "Skip")
    assert Path.cwd() == moved / "b"


def test_step_that_went_to_a_folder_that_is_gone_runs_again(
    notebook: Notebook,
) -> None:
    enter = f"%%step enter\nos.makedirs('new', exist_ok=True)\n{go('new')}"
    again(notebook, "import os", enter)
    Path("../new").rmdir()
    again(notebook, "import os", enter)
    assert notebook.reason("enter") == "the folder 'new' that it went to is gone"
    assert Path.cwd().name == "new"


def test_step_below_one_that_goes_elsewhere_and_is_skipped_is_skipped(
    notebook: Notebook,
) -> None:
    cells = f"%%step enter\n{go('b')}", READ
    again(notebook, *cells)
    again(notebook, *cells)
    assert notebook.decision("enter") == notebook.decision("read") == "Skip"
    again(notebook, cells[0].replace("'b'", "'a'"), READ)
    assert "working folder changed ('b' → 'a')" in notebook.reason("read")


@pytest.mark.parametrize("anew", ["%load_ext nbckpt", "", "%nbckpt start"])
def test_later_pass_in_one_kernel_skips_though_the_first_one_ended_elsewhere(
    notebook: Notebook, anew: str
) -> None:
    cells = anew, READ, f"%%step leave\nopen('etl.ipynb').close()\n{go('b')}"
    for _ in range(2):
        for source in cells:
            notebook.run(source)
    assert notebook.decision("read") == notebook.decision("leave") == "Skip"


def test_step_run_once_more_after_a_plain_cell_went_elsewhere_runs(
    notebook: Notebook,
) -> None:
    os.chdir("a")
    for source in (READ, "x = 1", go("../b"), READ):
        notebook.run(source)
    assert "working folder changed ('a' → 'b')" in notebook.reason("read")
