"""What a completed step leaves, and what of it is believed in the next kernel."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nbckpt.state import ambient, variables
from nbckpt.state.checkpoints import Restored
from tests.notebook import Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUE = "value-that-is-on-no-disk"
SETS = f"import os\nos.environ['LEFT_BY_IMPORT'] = {VALUE!r}\n"


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Notebook]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LEFT_BY_IMPORT", "")
    monkeypatch.delenv("LEFT_BY_IMPORT")
    Path("setting_module.py").write_text(SETS + "def again(): pass\n")
    found = Notebook(capsys)
    yield found
    found.close()
    sys.modules.pop("setting_module", None)


def in_new_kernel(notebook: Notebook, source: str) -> None:
    """Run a cell where nothing is imported and nothing is set."""
    sys.modules.pop("setting_module", None)
    os.environ.pop("LEFT_BY_IMPORT", None)
    notebook.restart()
    notebook.run(source)


def stored(folder: Path) -> bytes:
    """Return all bytes of a store."""
    return b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())


IMPORTS = "%%step a\nimport setting_module\nx = 1"
CALLS = "%%step a\nimport setting_module\nsetting_module.again()\nx = 1"


def test_step_whose_import_sets_a_variable_is_skipped_in_a_new_kernel(
    notebook: Notebook,
) -> None:
    notebook.run(IMPORTS)
    in_new_kernel(notebook, IMPORTS)
    assert notebook.decision("a") == "Skip"
    assert os.environ["LEFT_BY_IMPORT"] == VALUE
    assert VALUE.encode() not in stored(Path(".nbckpt"))


def test_step_runs_again_where_the_import_sets_another_value(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("setting_module.py").write_text(
        "import os, sys\nos.environ['LEFT_BY_IMPORT'] = sys.of_this_machine\n"
    )
    monkeypatch.setattr(sys, "of_this_machine", "one", raising=False)
    notebook.run(IMPORTS)
    monkeypatch.setattr(sys, "of_this_machine", "another")
    in_new_kernel(notebook, IMPORTS)
    assert notebook.decision("a") == "Run"
    assert "os.environ['LEFT_BY_IMPORT']" in notebook.reason("a")


def test_step_runs_again_if_a_call_had_set_a_variable(notebook: Notebook) -> None:
    Path("setting_module.py").write_text(f"def again():\n    {SETS.splitlines()[0]}\n")
    with Path("setting_module.py").open("a") as module:
        module.write(f"    {SETS.splitlines()[1]}\n")
    notebook.run(CALLS)
    for _ in range(2):
        in_new_kernel(notebook, CALLS)
        assert notebook.decision("a") == "Run"
        assert os.environ["LEFT_BY_IMPORT"] == VALUE


def test_variable_that_the_source_names_is_said_not_to_be_kept(
    notebook: Notebook,
) -> None:
    notebook.run("%%step a\nimport os\nos.environ['LEFT_BY_IMPORT'] = 'va' + 'lue-1'")
    assert "os.environ['LEFT_BY_IMPORT']: its value is not stored" in notebook.told()


@pytest.mark.parametrize("name", ["LEFT_BY_IMPORT", "NEVER_SET_ANYWHERE"])
def test_missing_variable_is_named(notebook: Notebook, name: str) -> None:
    notebook.run("%%step a\nx = 1")
    restored = Restored({}, b"", {}, variables.MISSING, [], [], {name: "0" * 32})
    assert f"os.environ[{name!r}]" in notebook.session.checkpoints.missing(restored)
    restored.environment.clear()
    assert not notebook.session.checkpoints.missing(restored)


@pytest.mark.parametrize(
    ("set_", "texts", "unnamed"),
    [
        ({"A_B": "1"}, [], ["A_B"]),
        ({"A_B": "1"}, ["A_B"], []),
        ({"A_B": "1"}, ["A_B=$x"], []),
        ({"A_B": "1"}, ["1"], []),
        ({"A_B": None}, [], []),
        ({}, ["A_B"], []),
    ],
)
def test_variable_counts_as_unnamed_only_if_the_source_has_nothing_of_it(
    set_: dict[str, str | None], texts: list[str], unnamed: list[str]
) -> None:
    change = {"environment": set_, "folder": "/"}
    found = ambient.unnamed(change, texts)
    assert list(found) == unnamed
    left = ambient.without_variables(change, found)
    kept = {name: value for name, value in set_.items() if name not in unnamed}
    assert left == ({"environment": kept} if kept else {}) | {"folder": "/"}
