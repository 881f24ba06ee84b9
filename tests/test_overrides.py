"""What a step sets on a library is kept, restored and compared like a variable."""

from __future__ import annotations

import ast
import json
import types
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from nbckpt.source.overrides import overridden, set_attributes

if TYPE_CHECKING:
    from tests.notebook import Notebook


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    found: Any = types.ModuleType("library_of_test")
    found.Frame = type("Frame", (), {"__module__": "library_of_test"})
    monkeypatch.setitem(__import__("sys").modules, "library_of_test", found)
    return found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("json.mine = 1", {"json.mine"}),
        ("a.b.c.d += 1", {"a.b.c.d"}),
        ("setattr(json, 'mine', 1)", {"json.mine"}),
        ("def f():\n    m.x = 1", {"m.x"}),
        ("setattr(json, name, 1)", set()),
        ("json.mine['k'] = 1; del m.x['k']; df['y'] = df.z", {"json.mine", "m.x"}),
        ("f().x = 1; a[0].y = 2; z = a.b", set()),
    ],
)
def test_attributes_are_found_as_the_source_names_them(
    source: str, found: set[str]
) -> None:
    assert set_attributes(ast.parse(source).body) == found


def test_only_modules_and_classes_of_libraries_hold_overrides() -> None:
    class Own:
        pass

    Own.__module__ = "__main__"
    space = {"__name__": "__main__", "j": json, "own": Own, "pd": pd, "v": [1]}
    chains = ["j.x", "j.JSONEncoder.y", "own.z", "v.w", "gone.u", "pd.none.t"]
    assert sorted(overridden(chains, space)) == ["json.encoder.JSONEncoder.y", "json.x"]


def test_what_is_ambient_state_is_no_override() -> None:
    sys = __import__("sys")
    assert list(overridden(["sys.path", "sys.stdout"], {"sys": sys})) == []


@pytest.mark.parametrize(
    ("body", "probe"),
    [
        ("library.level = 5", "library.level"),
        ("setattr(library, 'level', [1])", "library.level"),
        ("library.Frame.shout = lambda self: 'A'", "library.Frame().shout()"),
        ("def loud(self): return 'B'\nlibrary.Frame.shout = loud", "library.Frame().shout()"),
    ],
)  # fmt: skip
def test_override_of_a_skipped_step_stands_again(
    body: str, probe: str, library: Any, notebook: Notebook
) -> None:
    step = f"%%step patch\nimport library_of_test as library\n{body}"
    notebook.run(step)
    before = notebook.run(probe).result
    for holder, name in ((library, "level"), (library.Frame, "shout")):
        if name in vars(holder):
            delattr(holder, name)
    notebook.restart()
    notebook.run(step)
    assert notebook.decision("patch") == "Skip"
    assert notebook.run(probe).result == before


def test_override_is_an_input_of_steps_that_use_the_library(
    library: Any, notebook: Notebook
) -> None:
    for level in (1, 2):
        patch = (
            f"%%step patch\nimport library_of_test as library\nlibrary.level = {level}"
        )
        notebook.run(patch)
        notebook.run("%%step use\ny = library.level * 10")
    assert notebook.names["y"] == 20
    del library.level
    notebook.restart()
    notebook.run(patch)
    notebook.run("%%step use\ny = library.level * 10")
    assert notebook.decision("use") == "Skip"


def test_override_that_can_not_be_kept_makes_its_step_run_again(
    library: Any, notebook: Notebook
) -> None:
    del library
    step = "%%step patch\nimport library_of_test as library\nlibrary.rows = (n for n in [1])"
    notebook.run(step)
    notebook.run(step)
    assert notebook.decision("patch") == "Run"
    assert "library_of_test.rows" in notebook.reason("patch")


def test_accessor_that_a_step_registers_with_pandas_stands_again(
    notebook: Notebook,
) -> None:
    register = (
        "%%step register\nimport pandas as pd\n"
        "@pd.api.extensions.register_dataframe_accessor('of_test')\n"
        "class OfTest:\n"
        "    def __init__(self, frame): self.frame = frame\n"
        "    def rows(self): return len(self.frame)"
    )
    notebook.run(register)
    del pd.DataFrame.of_test
    notebook.restart()
    notebook.run(register)
    assert notebook.decision("register") == "Skip"
    found = notebook.run("pd.DataFrame({'a': [1, 2]}).of_test.rows()").result
    assert found == 2
    del pd.DataFrame.of_test
    pd.DataFrame._accessors.discard("of_test")


PLAIN = "import json; json.mine = {'a': 1}"
USE = "%%step use\nx = json.mine['a']"


def again(notebook: Notebook, *sources: str) -> None:
    """Run cells in a new kernel, in which nobody has set anything on a library."""
    vars(json).pop("mine", None)
    notebook.restart()
    for source in sources:
        notebook.run(source)


def test_what_a_plain_cell_sets_on_a_library_is_an_input_of_steps_that_name_it(
    notebook: Notebook,
) -> None:
    other = "%%step other\ny = 1"
    again(notebook, PLAIN, USE, other)
    again(notebook, PLAIN, USE, other)
    assert notebook.decision("use") == notebook.decision("other") == "Skip"
    again(notebook, f"{PLAIN}\njson.mine['a'] = 2", USE, other)
    assert notebook.reason("use") == "input 'json.mine' changed"
    assert notebook.decision("other") == "Skip"
    vars(json).pop("mine", None)


@pytest.mark.parametrize("anew", ["", "%load_ext nbckpt"])
def test_what_a_cell_below_sets_is_no_input_in_a_later_pass_of_one_kernel(
    notebook: Notebook, anew: str
) -> None:
    use = "%%step use\nimport json; x = json.dumps(1)"
    again(notebook, *2 * [anew, use, PLAIN, "%%step last\nz = json.mine"])
    vars(json).pop("mine", None)
    assert notebook.decision("use") == notebook.decision("last") == "Skip"


def test_what_a_plain_cell_sets_and_a_step_changes_is_kept(notebook: Notebook) -> None:
    change = "%%step change\njson.mine['a'] += 1"
    again(notebook, PLAIN, change)
    again(notebook, PLAIN, change)
    assert notebook.decision("change") == "Skip"
    assert vars(json).pop("mine") == {"a": 2}
