"""What a completed step's record holds, above all where a warm kernel ran it again."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

import pytest

from nbckpt.inputs import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

RERUN = "%nbckpt rerun a"


@pytest.mark.parametrize(
    ("before", "cell"),
    [
        (["%%step a\nx = 6"], "%%step a\nx = 3 * 2"),
        (["%%step a\nx = [6]"], "%%step a\nx = [3 * 2]"),
        (["%%step a\nx = [6]", RERUN], "%%step a\nx = [6]"),
        (["%%step a\nx = y = [6]", RERUN], "%%step a\nx = y = [6]"),
        (["%%step a\nimport json as x", RERUN], "%%step a\nimport json as x"),
        (["x = [6]"], "%%step a\nx = [3 * 2]"),
    ],
    ids=["atom", "list", "rerun", "alias", "module", "plain"],
)
def test_name_that_is_bound_to_an_equal_value_comes_back(
    before: list[str], cell: str, notebook: Notebook
) -> None:
    for source in (*before, cell):
        notebook.run(source)
    held = notebook.names["x"]
    assert notebook.decision("a") == "Run"
    notebook.restart()
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == held


def test_step_that_may_have_bound_an_equal_value_runs_where_it_is_missing(
    notebook: Notebook,
) -> None:
    cell = "%%step a\nexec('x = [6]')"
    for source in (cell, RERUN, cell):
        notebook.run(source)
    notebook.restart()
    notebook.run(cell)
    assert notebook.reason("a") == "input 'x' is gone"
    assert "x" in notebook.names
    notebook.restart()
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"
    assert "x" in notebook.names


def test_name_of_a_branch_that_was_not_taken_is_left_alone(notebook: Notebook) -> None:
    cell = "%%step a\nif False:\n    x = 6"
    for value in (1, 2):
        notebook.run(f"x = {value}")
        notebook.run(cell)
        assert notebook.names["x"] == value
        notebook.restart()


@pytest.mark.parametrize(
    "made",
    ["[x for x in (5, 6)]", "[x := n for n in (5,)]"],
    ids=["target", "walrus"],
)
def test_comprehension_has_its_targets_for_itself(
    made: str, notebook: Notebook
) -> None:
    for x in (5, 6):
        notebook.run(f"x = {x}")
        notebook.run(f"%%step a\nmade = {made}")
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == (5 if ":=" in made else 6)


@pytest.mark.parametrize(
    ("first", "later", "change", "check"),
    [
        ("x = [1]", "x = [1]; y = x", "x.append(2)", "y is x and y == [1, 2]"),
        ("x = [1]", "x = [1]; y = {'k': x}", "x += [2]", "y == {'k': [1, 2]}"),
        ("x = [1]; y = x", "x = [1]; y = [1]", "x.append(2)", "y == [1]"),
        ("x = [1]", "x = [1]; y = x", "z = {'k': x}", "z['k'] is y is x"),
        (
            "import numpy as np; x = np.zeros(3)",
            "import numpy as np; x = np.zeros(3); y = x[1:]",
            "x[1] = 7",
            "y[0] == 7",
        ),
    ],
    ids=["alias", "holder", "no more", "new holder", "view"],
)
def test_step_runs_again_where_other_names_share_what_it_changes(
    first: str, later: str, change: str, check: str, notebook: Notebook
) -> None:
    cell = f"%%step a\n{change}"
    notebook.run(first)
    notebook.run(cell)
    notebook.restart()
    for decision in ("Run", "Skip"):
        notebook.run(later)
        notebook.run(cell)
        assert notebook.decision("a") == decision
        assert eval(check, notebook.names)  # noqa: S307 - of the table above
        notebook.restart()


@pytest.mark.parametrize(
    ("first", "later", "change"),
    [
        ("x = [1]", "x = [1]; y = [1]", "x.append(2)"),
        ("x = [1]", "x = [1]; y = x", "x = [3]"),
        ("x = [1]; y = x", "x = [1]; y = x", "x.append(2)"),
    ],
    ids=["equal", "bound anew", "as before"],
)
def test_step_is_skipped_where_names_share_nothing_new_of_what_it_changes(
    first: str, later: str, change: str, notebook: Notebook
) -> None:
    cell = f"%%step a\n{change}"
    notebook.run(first)
    notebook.run(cell)
    notebook.restart()
    notebook.run(later)
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"


def test_names_of_cells_below_are_no_names_of_a_step_that_runs_again_above_them(
    notebook: Notebook,
) -> None:
    load, labels = (
        "%%step load\norders = [[1]]",
        "%%step labels\nfor order in orders: 0",
    )
    notebook.run(load)
    notebook.run(labels)
    notebook.run("part = orders")
    edited = load.replace("[[1]]", "[[2]]")
    notebook.run(edited)
    assert notebook.journal.steps(notebook.session.run_id)["load"].contents.bound == (
        "orders",
    )
    notebook.restart()
    notebook.run(edited)
    assert notebook.decision("load") == "Skip"


def test_step_is_skipped_though_a_module_that_it_tries_is_not_there(
    notebook: Notebook,
) -> None:
    cell = (
        "%%step a\ntry:\n    import k8_faster as fast\n"
        "except ImportError:\n    import json as fast\nx = fast.dumps([1])"
    )
    for decision in ("Run", "Skip"):
        notebook.run(cell)
        assert notebook.decision("a") == decision
        assert notebook.names["fast"].dumps(1) == "1"
        notebook.restart()


def test_step_runs_again_when_a_file_that_it_missed_came(
    notebook: Notebook, tmp_path: Path
) -> None:
    cell = (
        "%%step a\nfrom pathlib import Path\n"
        "try:\n    x = Path('limits.txt').read_text()\n"
        "except FileNotFoundError:\n    x = 'none'\n"
        "try:\n    Path('cache.txt').read_text()\n"
        "except FileNotFoundError:\n    Path('cache.txt').write_text('1')\n"
    )
    for decision, found in (("Run", "none"), ("Skip", "none"), ("Run", "7")):
        notebook.run(cell)
        assert (notebook.decision("a"), notebook.names["x"]) == (decision, found)
        notebook.restart()
        if decision == "Skip":
            (tmp_path / "limits.txt").write_text("7")


def test_package_that_the_step_itself_imports_has_one_version_imported_or_not(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = "%%step a\nimport webencodings\nx = webencodings.lookup('utf8').name"
    found = []
    for imported in (False, True, False):
        if not imported:
            monkeypatch.delitem(sys.modules, "webencodings", raising=False)
        notebook.run(cell)
        found.append(notebook.decision("a"))
    assert found == ["Run", "Skip", "Skip"]
    notebook.run(cell + ".upper()")
    notebook.restart()
    monkeypatch.delitem(sys.modules, "webencodings")
    notebook.run(cell + ".upper()")
    assert notebook.decision("a") == "Skip"


def test_package_of_another_name_that_is_not_imported_counts_as_it_was(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "_installed", lambda _: "")
    cell = "%%step a\nimport webencodings"
    versions = []
    for version in ("1.0", "1.0", "2.0"):
        monkeypatch.delitem(sys.modules, "webencodings", raising=False)
        if versions:
            notebook.run(cell)
        monkeypatch.setitem(
            sys.modules, "webencodings", types.ModuleType("webencodings")
        )
        monkeypatch.setattr("webencodings.__version__", version, raising=False)
        notebook.run(cell)
        versions.append(notebook.decision("a"))
    assert versions == ["Run", "Skip", "Run"]
