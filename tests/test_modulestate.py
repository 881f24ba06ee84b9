"""State inside the user's modules: seen, kept, compared like a variable."""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from nbckpt import magics
from nbckpt.magics import HOOKS
from nbckpt.state.modulestate import Names, home, is_own_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = """
import enum, functools, re, threading, time
START = time.time()
LOCK = threading.Lock()
TABLE = {}
LEVEL = 1
HANDLE = None
class Config:
    size = 1
    def grow(self): ...
class Color(enum.Enum):
    RED = 1
@functools.cache
def cached(x): return x
def add(k, v): TABLE[k] = v
def total(): return sum(TABLE.values())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "registry_of_test.py").write_text(SOURCE)
    yield tmp_path
    sys.modules.pop("registry_of_test", None)


@pytest.fixture
def names(folder: Path) -> Iterator[Names]:
    del folder
    found = Names({})
    found.install()
    yield found
    found.uninstall()


def load() -> Any:
    return importlib.import_module("registry_of_test")


def local(state: dict[str, Any]) -> dict[str, Any]:
    prefix = "registry_of_test."
    return {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}


def test_module_as_its_import_left_it_shows_no_state(names: Names) -> None:
    load()
    assert local(names.moved()) == {}


def test_what_changed_since_the_import_is_state(names: Names) -> None:
    module = load()
    module.add("x", 1)
    module.LEVEL = 5
    module.Config.size = 7
    module.new = "n"
    module.cached(3)
    expected = {"TABLE": {"x": 1}, "LEVEL": 5, "Config.size": 7, "new": "n"}
    assert local(names.moved()) == expected


def test_change_right_after_the_import_is_seen(names: Names) -> None:
    load().LEVEL = 5
    assert local(names.moved()) == {"LEVEL": 5}


def test_module_that_was_there_before_counts_from_then_on(folder: Path) -> None:
    del folder
    module = load()
    module.LEVEL = 2
    names = Names({})
    names.install()
    assert local(names.moved()) == {}
    module.LEVEL = 3
    assert local(names.moved()) == {"LEVEL": 3}
    names.uninstall()


def test_what_moved_and_came_back_stays_in(names: Names) -> None:
    module = load()
    module.LEVEL = 5
    names.moved()
    module.LEVEL = 1
    assert local(names.moved()) == {"LEVEL": 1}


def test_dotted_names_are_bound_in_their_module_or_class(names: Names) -> None:
    module = load()
    names.bind("registry_of_test.LEVEL", 8)
    names.bind("registry_of_test.Config.size", 9)
    names.bind("plain", 1)
    assert (module.LEVEL, module.Config.size, names["plain"]) == (8, 9, 1)
    assert names["registry_of_test.Config.size"] == 9
    names.unbind("registry_of_test.LEVEL")
    names.unbind("registry_of_test.LEVEL")
    assert "registry_of_test.LEVEL" not in names
    assert names.namespace == {"plain": 1}
    with pytest.raises(KeyError):
        names["registry_of_test.LEVEL"]


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("os.path.sep", "os.path"),
        ("json.decoder.JSONDecoder.x", "json.decoder"),
        ("not_there.x", ""),
        ("plain", ""),
    ],
)
def test_home_of_a_dotted_name_is_its_module(name: str, module: str) -> None:

    assert home(name) == module


class Kernel:
    """A shell that imports the user's module anew, as a kernel would."""

    def __init__(self) -> None:
        self.shell: Any = None
        self.restart()

    def restart(self) -> None:
        self.close()
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell.instance(config=config)
        magics.load(self.shell)

    def run(self, *cells: str) -> list[str]:
        """Run cells; return the decisions on the steps among them."""
        for cell in ("import registry_of_test as registry", *cells):
            self.shell.run_cell(cell, store_history=True).raise_error()
        last = self.shell.user_ns[HOOKS].runner.last
        return [type(decision).__name__ for decision in last.values()]

    def reason(self, step: str) -> str:
        return str(getattr(self.shell.user_ns[HOOKS].runner.last[step], "reason", ""))

    def close(self) -> None:
        if self.shell is not None:
            magics.unload(self.shell)
        InteractiveShell.clear_instance()
        sys.modules.pop("registry_of_test", None)


@pytest.fixture
def kernel(folder: Path) -> Iterator[Kernel]:
    del folder
    found = Kernel()
    yield found
    found.close()


FILL = "%%step fill\nregistry.add('x', 1)\nregistry.LEVEL += 1"
SUM = "%%step sum\ns = registry.total()"


def test_state_comes_back_when_the_step_is_skipped(kernel: Kernel) -> None:
    assert kernel.run(FILL, SUM) == ["Run", "Run"]
    kernel.restart()
    assert kernel.run(FILL, SUM) == ["Skip", "Skip"]
    assert (load().TABLE, load().LEVEL) == ({"x": 1}, 2)


def test_second_pass_in_the_same_kernel_skips(kernel: Kernel) -> None:
    kernel.run(FILL, SUM)
    assert kernel.run("%load_ext nbckpt", FILL, SUM) == ["Skip", "Skip"]


def test_state_that_a_step_above_left_otherwise_is_a_changed_input(
    kernel: Kernel,
) -> None:
    kernel.run(FILL, SUM)
    kernel.restart()
    assert kernel.run(FILL.replace("1)", "2)"), SUM) == ["Run", "Run"]
    assert kernel.shell.user_ns["s"] == 2
    assert kernel.reason("sum") == "input 'registry_of_test.TABLE' changed"


def test_setting_that_a_plain_cell_makes_is_an_input(kernel: Kernel) -> None:
    step = "%%step size\ns = registry.Config.size"
    kernel.run("registry.Config.size = 3", step)
    kernel.restart()
    assert kernel.run("registry.Config.size = 3", step) == ["Skip"]
    kernel.restart()
    assert kernel.run("registry.Config.size = 4", step) == ["Run"]


def test_step_that_runs_over_its_own_traces_is_not_taken_for_a_fresh_one(
    kernel: Kernel,
) -> None:
    step = "%%step count\nregistry.LEVEL += 1"
    kernel.run(step)
    kernel.run("%load_ext nbckpt", step.replace("+= 1", "+= 1 + 0"))
    assert load().LEVEL == 3
    kernel.restart()
    kernel.run(step.replace("+= 1", "+= 1 + 0"))
    assert load().LEVEL == 2


def test_variable_and_module_still_share_an_object(kernel: Kernel) -> None:
    step = "%%step share\nmine = registry.TABLE\nmine['a'] = 1"
    kernel.run(step)
    kernel.restart()
    assert kernel.run(step) == ["Skip"]
    assert kernel.shell.user_ns["mine"] is load().TABLE


def test_state_that_can_not_be_kept_is_named(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.run("%%step open\nregistry.HANDLE = iter(x for x in [])")
    assert "registry_of_test.HANDLE" in capsys.readouterr().err
    kernel.restart()
    dropped = "%%step open --drop registry_of_test.HANDLE\nregistry.HANDLE = object()"
    kernel.run(dropped)
    kernel.restart()
    assert kernel.run(dropped) == ["Skip"]


def test_setting_that_is_new_above_the_step_is_an_input(kernel: Kernel) -> None:
    step = "%%step size\ns = registry.Config.size"
    kernel.run(step)
    kernel.restart()
    assert kernel.run("registry.Config.size = 4", step) == ["Run"]


def test_step_that_read_what_a_later_one_left_does_not_pass_for_a_fresh_one(
    kernel: Kernel,
) -> None:
    look, edited = (
        "%%step look\nn = registry.total()",
        "%%step look\nn = registry.total() + 0",
    )
    kernel.run(look, FILL)
    kernel.run("%load_ext nbckpt", edited, FILL)
    assert kernel.shell.user_ns["n"] == 1
    kernel.restart()
    kernel.run(edited, FILL)
    assert kernel.shell.user_ns["n"] == 0


def test_module_that_waits_for_its_use_is_not_loaded_by_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Waiting(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "nbckpt.waiting", Waiting("nbckpt.waiting"))
    assert not is_own_module("nbckpt.waiting")
