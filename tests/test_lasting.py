"""What ends with the kernel and stands in no variable is set again, never left out."""

# ruff: noqa: E501 - a row of a table is one line
from __future__ import annotations

import ast
import atexit
import logging
import mimetypes
import signal
import sqlite3
from typing import TYPE_CHECKING

import pytest

from nbckpt.source.lasting import calls, lasting, results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.notebook import Notebook

SPACE = {
    "atexit": atexit, "logging": logging, "register": atexit.register, "s": signal,
    "sqlite3": sqlite3, "mimetypes": mimetypes, "__name__": "__main__",
}  # fmt: skip


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("s.signal(s.SIGUSR1, f)", "s.signal()"),
        ("if x:\n    register(f)", "register()"),
        ("@atexit.register\ndef bye(): pass", "atexit.register()"),
        ("sqlite3.register_adapter(dict, str)", "sqlite3.register_adapter()"),
        ("logging.basicConfig(level=10)", "logging.basicConfig()"),
        ("logging.getLogger('a').addHandler(h)", "addHandler()"),
        ("get_ipython().events.register('post_run_cell', f)", "events.register()"),
        ("ip.events.register('post_run_cell', f)", "ip.events.register()"),
        ("mimetypes.add_type('a/b', '.ab')", "mimetypes.add_type()"),
        ("Base.register(int); dispatch.register(f); register_all()", ""),
        ("s.getsignal(2); logging.getLogger('a').info('b')", ""),
        ("atexit.gone(); gone.register(); x.y[0](1)", ""),
    ],
)
def test_calls_that_outlast_the_step_and_not_the_kernel_are_told(
    source: str, call: str
) -> None:
    found = lasting(calls(ast.parse(source).body), SPACE)
    assert found == (f"{call}: what it sets ends with the kernel" if call else "")


def test_results_by_number_are_names_of_the_shell() -> None:
    body = ast.parse("x = Out[2] + len(Out) + Out[n] + In[1]\ny = [Out[13]]").body
    assert results(body) == {"_2", "_13"}


def test_step_that_takes_a_result_by_number_runs_again_when_it_changed(
    notebook: Notebook,
) -> None:
    decisions = []
    for value in (3, 3, 4):
        notebook.run(f"{value}")
        number = notebook.shell.execution_count - 1
        notebook.run(f"%%step a\nx = Out[{number}]")
        decisions.append(notebook.decision("a"))
        notebook.restart()
    assert decisions == ["Run", "Skip", "Run"]


@pytest.fixture
def user_signal() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR2)
    yield
    signal.signal(signal.SIGUSR2, before)


@pytest.mark.usefixtures("user_signal")
def test_step_that_handles_a_signal_runs_again_in_each_kernel(
    notebook: Notebook,
) -> None:
    cell = "%%step a\nimport signal\nx = signal.signal(signal.SIGUSR2, signal.SIG_IGN)"
    notebook.run(cell)
    assert "runs again next time: signal.signal()" in notebook.told()
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)
    notebook.restart()
    notebook.run(cell)
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN


@pytest.mark.parametrize(
    ("change", "back", "probe"),
    [
        ("sys.set_int_max_str_digits(5000)", "sys.set_int_max_str_digits(4300)", "sys.get_int_max_str_digits() == 5000"),
        ("sys.setswitchinterval(0.25)", "sys.setswitchinterval(0.005)", "sys.getswitchinterval() == 0.25"),
        ("gc.set_threshold(701)", "gc.set_threshold(700)", "gc.get_threshold()[0] == 701"),
        ("socket.setdefaulttimeout(7)", "socket.setdefaulttimeout(None)", "socket.getdefaulttimeout() == 7"),
        ("logging.disable(10)", "logging.disable(0)", "logging.root.manager.disable == 10"),
        ("log = logging.getLogger('k8'); log.propagate = False", "logging.getLogger('k8').propagate = True", "not logging.getLogger('k8').propagate"),
        ("mp.set_start_method('spawn', force=True)", "mp.set_start_method(None, force=True)", "mp.get_start_method() == 'spawn'"),
        ("sklearn.set_config(display='text')", "sklearn.set_config(display='diagram')", "sklearn.get_config()['display'] == 'text'"),
    ],
)  # fmt: skip
def test_settings_of_a_skipped_step_are_set_again(
    change: str, back: str, probe: str, notebook: Notebook
) -> None:
    imports = "import gc, logging, multiprocessing as mp, sklearn, socket, sys"
    try:
        for decision in ("Run", "Skip"):
            notebook.run(imports)
            notebook.run(f"%%step a\n{change}")
            assert notebook.decision("a") == decision
            assert eval(probe, notebook.names)  # noqa: S307 - of the table above
            notebook.run(back)
            notebook.restart()
    finally:
        exec(f"{imports}\n{back}", {})  # noqa: S102 - of the table above


def test_item_of_a_library_that_a_step_sets_comes_back(notebook: Notebook) -> None:
    cell = "%%step a\nmimetypes.types_map['.k8'] = 'k/8'"
    try:
        for decision in ("Run", "Skip"):
            notebook.run("import mimetypes")
            notebook.run(cell)
            assert notebook.decision("a") == decision
            assert mimetypes.types_map.pop(".k8") == "k/8"
            notebook.restart()
    finally:
        mimetypes.types_map.pop(".k8", None)
