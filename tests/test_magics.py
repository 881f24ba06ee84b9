"""Step cells in a shell: everything else that IPython does goes on as if they were none."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING

import pytest

from nbckpt import magics
from nbckpt.errors import BadStep, CheckFailed
from nbckpt.magics import HOOKS, transform_line

if TYPE_CHECKING:
    from tests.notebook import Notebook


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("%%step a\nx = 1", "get_ipython().run_line_magic('step', 'a')\n"),
        ("%%step a --check 'x'\n", "get_ipython().run_line_magic('step', "),
        ("%%step\nx", "get_ipython().run_line_magic('step', '')\n"),
        ("x = 1\n", "x = 1\n"),
        ("%%step?\n", "%%step?\n"),
        ("%%steps a\n", "%%steps a\n"),
        ("%%time\nx\n", "%%time\n"),
    ],
)
def test_first_line_of_a_step_is_rewritten_and_no_other(
    source: str, first: str
) -> None:
    lines = source.splitlines(keepends=True)
    found = transform_line(lines)
    assert found[0].startswith(first)
    assert len(found) == len(lines)
    assert transform_line(found) == found


def test_loading_imports_nothing_heavy() -> None:
    """What shows the run loads once somebody looks."""
    code = (
        "import sys, ipykernel.ipkernel\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell().run_cell('%load_ext nbckpt').raise_error()\n"
        "heavy = 'click ipywidgets matplotlib nbclient nbformat numpy '\n"
        "heavy += 'pandas rich nbckpt.headless nbckpt.verbs.standing.status'\n"
        "print(sorted(sys.modules.keys() & set(heavy.split())))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_empty_cell_stays_empty() -> None:
    assert transform_line([]) == []


def test_step_runs_once_and_is_skipped_in_the_next_kernel(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = [1]\ny = x")
    assert notebook.decision("a") == "Run"
    notebook.restart()
    notebook.run("%%step a\nx = [1]\ny = x")
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] is notebook.names["y"]


@pytest.mark.parametrize("options", ["", " --retries 1 --backoff 0s"])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_traceback_names_the_users_own_line(
    notebook: Notebook, before: int, options: str
) -> None:
    body = "".join(f"a{n} = {n}\n" for n in range(before))
    error = notebook.error(f"%%step a{options}\n{body}1 / 0\nz = 1")
    assert isinstance(error, ZeroDivisionError)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    assert frame.lineno == before + 2
    assert frame.name == "<module>"
    shown = notebook.shown()
    assert f"----> {before + 2} 1 / 0" in shown
    assert "nbckpt" not in shown.replace(HOOKS, "").split("ZeroDivisionError", 1)[1]
    assert "tenacity" not in shown


def test_traceback_through_a_function_shows_its_line(notebook: Notebook) -> None:
    notebook.run("def f():\n    return 1 / 0")
    error = notebook.error("%%step a\nx = 1\n\ny = f()")
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__)][-2:]
    assert lines == [4, 2]


def test_failed_step_is_seen_by_the_debugger_in_the_users_frame(
    notebook: Notebook,
) -> None:
    notebook.error("%%step a\nlocal = 7\nraise KeyError('k')")
    frames = [f for f, _ in traceback.walk_tb(sys.last_traceback)]
    assert frames[-1].f_locals["local"] == 7


def test_failed_body_is_not_recorded_and_runs_again(notebook: Notebook) -> None:
    notebook.run("ok = False")
    notebook.error("%%step a\nx = 1\nassert ok")
    notebook.run("%%step a\nx = 1\nok = True\nassert ok")
    assert notebook.decision("a") == "Run"


def test_top_level_await_works(notebook: Notebook) -> None:
    notebook.run("import asyncio")
    notebook.run("%%step a\nx = await asyncio.sleep(0, 5)")
    assert notebook.names["x"] == 5


def test_last_expression_is_shown_and_bound(notebook: Notebook) -> None:
    result = notebook.run("%%step a\nx = 20\nx + 1")
    assert "21" in notebook.shown()
    assert notebook.names["_"] == 21
    assert notebook.names["Out"][result.execution_count] == 21


def test_last_expression_comes_back_when_the_step_is_skipped(
    notebook: Notebook,
) -> None:
    cell = "%%step a\nx = 20\nprint('hello')\nx + 1"
    notebook.run(cell)
    notebook.restart()
    notebook.shown()
    notebook.run(cell)
    assert notebook.decision("a") == "Skip"
    shown = notebook.shown()
    assert "hello" in shown
    assert "21" in shown
    assert notebook.names["_"] == 21


@pytest.mark.parametrize("cell", ["x = 1\nx + 1;", "x = 1", "x = 2;", "None"])
def test_body_that_shows_nothing_shows_nothing(notebook: Notebook, cell: str) -> None:
    notebook.run(f"%%step a\n{cell}")
    assert notebook.shown() == ""
    notebook.restart()
    notebook.run(f"%%step a\n{cell}")
    assert notebook.shown() == ""


@pytest.mark.parametrize(
    ("mode", "shown"),
    [("all", ["3"]), ("last_expr", ["3"]), ("last", ["3"]), ("none", [])],
)
def test_interactivity_of_the_shell_is_kept(
    notebook: Notebook, mode: str, shown: list[str]
) -> None:
    notebook.shell.ast_node_interactivity = mode
    notebook.run("%%step a\nx = 1\nx + 2")
    assert [line.split()[-1] for line in notebook.shown().split("\n") if line] == shown


@pytest.mark.parametrize(
    "cell",
    [
        "%%step a\n%time x = 3",
        "%%step a\n%%time\nx = 3",
        "%%step a\n%timeit -n1 -r1 1\nx = 3",
        "%%step a\nx = 3\n!true",
        "%%step a\nx = !echo 3\nx = int(x[0])",
        "%%step a\n\n\nx = 3\n\n",
        "%%step a\n# only words\nx = 3  # why",
        "%%step a\nif True:\n    x = 3",
        "%%step a\nfor x in range(4):\n    pass",
        "%%step a\nfrom __future__ import annotations\nx = 3",
        "%%step a\nx = 3\n%precision 3",
        '%%step a\n"""A docstring."""\nx = 3',
        "%%step a\nx = 1; x += 2",
        "%%step a\nglobal x\nx = 3",
        "%%step a --retries 1\nx = 3",
    ],
)
def test_body_does_what_it_would_do_without_the_line(
    notebook: Notebook, cell: str
) -> None:
    notebook.run(cell)
    assert notebook.names["x"] == 3
    notebook.restart()
    notebook.run(cell)
    assert notebook.names["x"] == 3
    assert notebook.decision("a") == "Skip"


@pytest.mark.parametrize(
    "cell",
    [
        "x = 1\n%%step a",
        "\nx = 1\n%step a",
        "if True:\n    %step a",
    ],
)
def test_step_line_that_is_not_the_first_is_refused(
    notebook: Notebook, cell: str
) -> None:
    error = notebook.error(cell)
    assert isinstance(error, BadStep)
    assert "first line of its cell" in str(error)


def test_step_below_another_cell_magic_is_a_step(notebook: Notebook) -> None:
    notebook.run("%%time\n%%step a\nx = 1")
    assert notebook.decision("a") == "Run"
    notebook.restart()
    notebook.run("%%time\n%%step a\nx = 1")
    assert notebook.decision("a") == "Skip"
    assert notebook.names["x"] == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "name"),
        ("a --bogus", "--bogus"),
        ("a/b", "no step name"),
        ("a --check 'x ='", "no expression"),
    ],
)
def test_wrong_step_line_runs_nothing_and_shows_one_line(
    notebook: Notebook, line: str, message: str
) -> None:
    error = notebook.error(f"%%step {line}\nx = 1")
    assert isinstance(error, BadStep)
    assert message in str(error)
    assert "x" not in notebook.names
    shown = notebook.shown().strip()
    assert shown.startswith("BadStep: ")
    assert "Traceback" not in shown
    notebook.run("y = 1")


def test_check_that_is_not_true_fails_the_cell_and_keeps_the_values(
    notebook: Notebook,
) -> None:
    error = notebook.error("%%step a --check 'x > 1'\nx = 1")
    assert isinstance(error, CheckFailed)
    assert notebook.names["x"] == 1
    notebook.run("%%step a --check 'x > 1'\nx = 2")
    assert notebook.decision("a") == "Run"


def test_syntax_error_in_a_body_is_the_users_own(notebook: Notebook) -> None:
    error = notebook.error("%%step a\nx = = 1")
    assert isinstance(error, SyntaxError)
    assert error.lineno == 2


def test_names_of_nbckpt_are_not_the_users(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    notebook.shown()
    notebook.run("%who_ls")
    assert notebook.names["_"] == ["x"]


def test_loading_twice_changes_nothing(notebook: Notebook) -> None:
    shell = notebook.shell
    before = (list(shell.ast_transformers), shell.user_ns[HOOKS])
    magics.load(shell)
    assert (list(shell.ast_transformers), shell.user_ns[HOOKS]) == before
    assert shell.input_transformers_cleanup.count(transform_line) == 1


def test_unloading_takes_everything_out_and_gives_the_run_back(
    notebook: Notebook,
) -> None:
    shell = notebook.shell
    notebook.run("%%step a\nx = 1")
    session = notebook.names[HOOKS].session
    magics.unload(shell)
    magics.unload(shell)
    assert HOOKS not in notebook.names
    assert transform_line not in shell.input_transformers_cleanup
    assert not session.is_held
    assert "step" not in shell.magics_manager.magics["cell"]
    notebook.run("y = 2")
    notebook.error("%%step b\nz = 1")
    assert notebook.names["x"] == 1
    magics.load(shell)
    notebook.run("%%step a\nx = 1")
    assert notebook.decision("a") == "Skip"


def test_help_of_the_magic_names_its_options(notebook: Notebook) -> None:
    text = notebook.shell.find_cell_magic("step").__doc__
    assert "--check" in text
    assert "--stop-on-redo" in text


def test_plain_cells_are_left_alone(notebook: Notebook) -> None:
    notebook.run("x = 1\nx + 1")
    assert notebook.names["_"] == 2
    assert not notebook.names[HOOKS].session.is_held


def test_cell_that_is_run_again_in_the_same_kernel_is_skipped(
    notebook: Notebook,
) -> None:
    notebook.run("n = []")
    notebook.run("%%step a --ignore n\nn.append(1); x = 5")
    notebook.run("%%step a --ignore n\nn.append(1); x = 5")
    assert notebook.decision("a") == "Skip"
    assert notebook.names["n"] == [1]


def test_retries_run_the_body_until_it_succeeds(notebook: Notebook) -> None:
    notebook.run("tries = []")
    cell = "%%step a --retries 3 --backoff 0s --ignore tries\ntries.append(1)\n"
    notebook.run(cell + "assert len(tries) == 3\nx = len(tries)")
    assert notebook.names["x"] == 3


def test_retries_that_are_used_up_raise_the_last_error(notebook: Notebook) -> None:
    notebook.run("tries = []")
    error = notebook.error(
        "%%step a --retries 2 --backoff 0s\ntries.append(1)\nraise KeyError(len(tries))"
    )
    assert isinstance(error, KeyError)
    assert error.args == (3,)


def test_edited_code_runs_again_and_comments_do_not_count(notebook: Notebook) -> None:
    notebook.run("%%step a\nx = 1")
    notebook.run("%%step a\nx = 1  # why")
    assert notebook.decision("a") == "Skip"
    notebook.run("%%step a\nx = 2")
    assert notebook.decision("a") == "Run"
    assert notebook.names["x"] == 2


def test_edited_class_body_runs_a_step_that_builds_on_it(notebook: Notebook) -> None:
    notebook.run("k = 1")
    notebook.run("%%step a\nclass C:\n    v = k")
    notebook.run("k = 2")
    notebook.run("%%step a\nclass C:\n    v = k")
    assert notebook.names["C"].v == 2


def test_class_that_a_later_step_defines_anew_is_another_class(
    notebook: Notebook,
) -> None:
    steps = (
        "%%step a\nclass C:\n    n = 1\n    def f(self): return self.n\nc = C()",
        "%%step b\nclass C:\n    n = 2\n    def f(self): return self.n * 10\nd = C()",
        "%%step c\nfound = (c.f(), d.f(), isinstance(c, C), isinstance(d, C))",
    )
    for count in (1, 2, 3, 3):
        for step in steps[:count]:
            notebook.run(step)
        if count == 3:
            assert notebook.names["found"] == (1, 20, False, True)
            assert (notebook.names["c"].n, notebook.names["d"].n) == (1, 2)
        notebook.restart()
    assert notebook.run("1").success


def test_class_keeps_what_its_methods_share_while_a_step_is_compared(
    notebook: Notebook,
) -> None:
    notebook.run("%%step a\nclass C:\n    log = []\nlog = C.log")
    notebook.run("%%step b\nC.log.append(1)")
    notebook.run("C.log.append(2)")
    notebook.run("%%step c\nC.extra = len(log)")
    assert notebook.names["log"] == [1, 2]
    assert notebook.names["C"].log is notebook.names["log"]
    assert notebook.names["C"].extra == 2


def test_global_that_a_function_only_sets_is_no_input(notebook: Notebook) -> None:
    steps = (
        "%%step a\nn = 0\ndef up():\n    global n, double\n    n += 1\n    double = 2 * n",
        "%%step b\nup()",
        "%%step c\nup()",
    )
    for step in steps:
        notebook.run(step)
    notebook.restart()
    for step in steps:
        notebook.run(step)
    assert [notebook.decision(name) for name in "abc"] == ["Skip"] * 3
    assert notebook.names["double"] == 4


@pytest.mark.parametrize(
    ("source", "decision"),
    [
        ("import random\nrandom.seed(3)\nx = random.random()", "Skip"),
        ("import random\nfor n in [1, 2]:\n    random.seed(a=n)", "Skip"),
        (
            "import random\ndef set_seed(n):\n    random.seed(n)\nset_seed(9)",
            "Skip",
        ),
        ("import random\nx = random.random()\nrandom.seed(3)", "Run"),
        ("import random\nx = random.random()", "Run"),
    ],
)
def test_state_before_a_step_that_seeds_is_no_input(
    source: str, decision: str, notebook: Notebook
) -> None:
    seeds = iter([100, 200])
    for _ in range(2):
        notebook.run(f"import random\nrandom.seed({next(seeds)})")
        notebook.run(f"%%step draw\n{source}")
        found = notebook.decision("draw")
        notebook.restart()
    assert found == decision


def test_seeding_in_a_step_is_repeated_where_it_changed_nothing(
    notebook: Notebook,
) -> None:
    step = "%%step seed\nrandom.seed(3)"
    notebook.run("import random\nrandom.seed(3)")
    notebook.run(step)
    notebook.restart()
    notebook.run("import random\nrandom.seed(4)")
    notebook.run(step)
    notebook.run("x = random.random()\nrandom.seed(3)\ny = random.random()")
    assert notebook.decision("seed") == "Skip"
    assert notebook.names["x"] == notebook.names["y"]


def test_result_may_be_of_a_class_that_the_step_made(notebook: Notebook) -> None:
    step = "%%step show\nclass Both:\n    x = 3\nBoth()"
    for _ in range(2):
        notebook.run(step)
        decision = notebook.decision("show")
        notebook.run("y = _.x")
        assert notebook.names["y"] == 3
        notebook.restart()
    assert decision == "Skip"


def test_environment_that_a_magic_spells_out_comes_back(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CASE_PLACE", raising=False)
    for _ in range(2):
        os.environ.pop("CASE_PLACE", None)
        notebook.run("%%step place\n%env CASE_PLACE=over there")
        decision = notebook.decision("place")
        notebook.restart()
    assert (decision, os.environ["CASE_PLACE"]) == ("Skip", "over there")
