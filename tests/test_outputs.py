"""Outputs of a notebook that is replayed equal those of the run, as nbclient has them.

The notebook below is run twice by nbclient, each time in a new kernel. A small extension
records each cell that begins with a ``"step NAME"`` line in the first run, and replays it
in the second, as the real magic does but with nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

if TYPE_CHECKING:
    from pathlib import Path

    import nbformat

EXTENSION = '''
"""Records or replays the cells that begin with a line such as "step NAME"."""

import ast
import os
from pathlib import Path

from nbckpt.outputs import Recorder, replay

STORE = Path(os.environ["STEP_STORE"])


class Steps(ast.NodeTransformer):
    """Wraps the body of a step into `if begin(NAME): ...; commit(NAME)`."""

    def __init__(self, shell):
        self.shell = shell
        self.recorder = Recorder(shell, STORE / "spill")
        shell.user_ns.update(_begin=self.begin, _commit=self.commit)

    def begin(self, name):
        record = STORE / f"{name}.jsonl"
        if record.exists():
            replay(self.shell, record.read_bytes())
            return False
        self.recorder.start()
        return True

    def commit(self, name):
        recording = self.recorder.stop()
        (STORE / f"{name}.jsonl").write_bytes(recording.data())
        recording.close()

    def visit_Module(self, module):
        line = ast.get_docstring(module, clean=False) or ""
        if line.startswith("step "):
            name = line.removeprefix("step ")
            body = [self.shown(s, s is module.body[-1]) for s in module.body[1:]]
            body += ast.parse(f"_commit({name!r})").body
            test = ast.parse(f"_begin({name!r})", mode="eval").body
            module.body = [ast.If(test, body, [])]
        return ast.fix_missing_locations(module)

    def shown(self, statement, last):
        """Hand the value of an expression to the display hook, if IPython would."""
        wanted = last or self.shell.ast_node_interactivity == "all"
        if not (isinstance(statement, ast.Expr) and wanted):
            return statement
        hook = ast.parse("__import__('sys').displayhook", mode="eval").body
        return ast.copy_location(
            ast.Expr(ast.Call(hook, [statement.value], [])), statement
        )


def load_ipython_extension(shell):
    shell.ast_transformers.append(Steps(shell))
'''

SETUP = """\
%load_ext steps
import ctypes, logging, multiprocessing, os, subprocess, sys, threading, warnings
from IPython.display import HTML, Image, clear_output, display, update_display
warnings.filterwarnings("ignore", ".*fork.*")
"""

BAR = "'\\r' + f'{n / 20:3.0f}%|{chr(9608) * (n // 50):40}| {n}/2000'"

STEPS = {
    "nothing": "pass",
    "streams": "print('a')\nprint('b', file=sys.stderr)\nprint('c')",
    "no-newline": "print('a', end='')",
    "unicode": "print('ä \\u2028 😀 \\x00')",
    "result": "x = 10\nx",
    "result-and-text": "print('a')\nprint('b', file=sys.stderr)\n[1, 2]",
    "html-result": "HTML('<b>x</b>')",
    "none": "None",
    "display": "print('a')\ndisplay(HTML('b'), {'text/plain': 'raw'})\nprint('c')",
    "metadata": "display(HTML('a'), metadata={'text/html': {'isolated': True}})",
    "raw-json": "display({'application/json': {'a': [1, None]}}, raw=True)",
    "bytes": "display(Image(data=b'\\x89PNG\\r\\n', format='png'))",
    "not-json": "display({'application/json': {1: float('nan')}}, raw=True)",
    "display-id": "h = display(HTML('1'), display_id='mine')\nh.update(HTML('2'))",
    "two-displays": "for n in 1, 2: display(HTML(str(n)), display_id='both')\n"
    "update_display(HTML('3'), display_id='both')\nprint('a')",
    "for-later": "display(HTML('1'), display_id='later')\ndisplay(HTML('a'))",
    "elsewhere": "update_display(HTML('2'), display_id='later')\nprint('a')",
    "clear": "print('a')\ndisplay(1)\nclear_output()\nprint('b')",
    "clear-later": "print('a')\nclear_output(wait=True)\nprint('b')",
    "clear-never": "print('a')\nclear_output(wait=True)",
    "clear-all": "print('a')\nclear_output()",
    "clear-loop": "for n in range(50):\n    clear_output(wait=True)\n"
    "    print(n)\n    display(HTML(str(n)))",
    "clear-keeps-updates": "update_display(HTML('3'), display_id='later')\n"
    "display(HTML('1'), display_id='gone')\nclear_output()\nprint('a')",
    "figure": "%matplotlib inline\nimport matplotlib.pyplot as plt\n"
    "figure, axes = plt.subplots(figsize=(2, 2))\naxes.plot([1, 2, 3])\nprint('a')",
    "figure-shown": "plt.plot([1, 2])\nplt.show()\nprint('a')\nplt.plot([2, 1]);",
    "file-descriptor": "os.write(1, b'a\\n')\nos.write(2, b'b\\n')\nNone",
    "os-system": "os.system('echo a; echo b 1>&2');",
    "subprocess": "subprocess.run(['echo', 'a'])\nNone",
    "shell": "!echo a; echo b 1>&2\nprint('c')",
    "c-code": "c = ctypes.CDLL(None)\nc.printf(b'a\\n')\nc.fflush(None)\nprint('b')",
    "thread": "def work():\n    for n in range(3): print('thread', n)\n"
    "    display(HTML('a'))\n"
    "thread = threading.Thread(target=work)\nthread.start()\nthread.join()",
    "fork": "def child(): print('child', flush=True)\n"
    "fork = multiprocessing.get_context('fork')\n"
    "process = fork.Process(target=child)\nprocess.start()\nprocess.join()",
    "warning": "warnings.warn('careful')",
    "logging": "logging.warning('careful')",
    "traceback": "try: 1 / 0\nexcept ZeroDivisionError: get_ipython().showtraceback()",
    "bar": f"for n in range(2000):\n    sys.stderr.write({BAR})\n"
    "    if n % 50 == 0: sys.stderr.flush()\nsys.stderr.write('\\n');",
    "returns": "print('abc\\rX')\nsys.stdout.write('long\\rab')\ndisplay(HTML('a'))\n"
    "print('\\rZ')\nprint('1\\r\\n2\\r\\n', end='')",
    "spinner": "for c in '|/-': sys.stdout.write(c + '\\b')",
    "lines": "for n in range(2000): print('line', n)",
    "large": "for n in range(300): print(('x' * 99 + '\\n') * 100, end='')",
    "large-display": "display(HTML('x' * 3_000_000))",
    "widget": "import ipywidgets\nout = ipywidgets.Output()\n"
    "with out:\n    print('within')\n    display(HTML('within'))\nprint('a')",
    "await": "import asyncio\nprint('a')\nawait asyncio.sleep(0.01)\nprint('b')",
    "all": "1 + 1\nprint('a')\n2 + 2",
}
PLAIN = {
    "elsewhere": "update_display(HTML('4'), display_id='later')",
    "await": "get_ipython().ast_node_interactivity = 'all'",
}
"""Cells that are no steps, each after the step of that name."""


def notebook() -> nbformat.NotebookNode:
    """Make the notebook."""
    cells = [new_code_cell(SETUP)]
    for name, code in STEPS.items():
        cells.append(new_code_cell(f'"step {name}"\n{code}'))
        cells += [new_code_cell(PLAIN[name])] if name in PLAIN else []
    return new_notebook(cells=cells)


def run(folder: Path) -> dict[str, nbformat.NotebookNode]:
    """Run the notebook in a new kernel and return its steps by name."""
    # With this name set, ipykernel would leave the file descriptors alone.
    env = os.environ.copy()
    env.pop("PYTEST_CURRENT_TEST", None)
    env["PYTHONPATH"] = os.pathsep.join([str(folder), *sys.path])
    env["STEP_STORE"] = str(folder)
    # A busy machine is slow to deliver; no output may be given up for that.
    client = NotebookClient(
        notebook(), timeout=120, iopub_timeout=60, coalesce_streams=True
    )
    ran = client.execute(env=env, cwd=str(folder))
    lines = [cell.source.partition("\n")[0] for cell in ran.cells]
    return {
        line.strip('"').removeprefix("step "): cell
        for line, cell in zip(lines, ran.cells, strict=True)
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of the extension and of what it records."""
    folder = tmp_path_factory.mktemp("steps")
    (folder / "steps.py").write_text(EXTENSION)
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[dict[str, nbformat.NotebookNode]]:
    """Run the notebook, and then again in another kernel."""
    return [run(folder), run(folder)]


@pytest.mark.parametrize("name", STEPS)
def test_a_replayed_step_has_the_outputs_of_the_run(
    runs: list[dict[str, nbformat.NotebookNode]], name: str
) -> None:
    first, again = (cells[name] for cells in runs)

    assert again.outputs == first.outputs
    assert again.execution_count == first.execution_count


EMPTY = {"nothing", "none", "clear-all"}


@pytest.mark.parametrize("name", sorted(STEPS.keys() - EMPTY))
def test_each_step_shows_something(
    runs: list[dict[str, nbformat.NotebookNode]], name: str
) -> None:
    """If it did not, that its replay is equal would prove nothing."""
    assert runs[0][name].outputs


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("file-descriptor", "a\nb\n"),
        ("os-system", "a\nb\n"),
        ("subprocess", "a\n"),
        ("c-code", "a\nb\n"),
        ("fork", "child\n"),
        ("widget", "a\n"),
        ("clear", "b\n"),
        ("clear-later", "b\n"),
        ("clear-never", "a\n"),
    ],
)
def test_the_text_of_a_step_is_recorded_whole(
    runs: list[dict[str, nbformat.NotebookNode]],
    folder: Path,
    name: str,
    shown: str,
) -> None:
    messages = read(folder, name)
    outputs = runs[0][name].outputs

    assert sorted(text_of(m["content"] for m in messages)) == sorted(shown)
    assert sorted(text_of(outputs)) == sorted(shown)


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the messages that were recorded of a step."""
    lines = (folder / f"{name}.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def text_of(contents: Any) -> str:
    """Return the text of streams."""
    return "".join(content.get("text", "") for content in contents)


@pytest.mark.usefixtures("runs")
def test_two_thousand_redraws_take_less_than_two_kilobytes(folder: Path) -> None:
    assert 0 < (folder / "bar.jsonl").stat().st_size < 2000


@pytest.mark.usefixtures("runs")
def test_what_was_cleared_is_not_stored(folder: Path) -> None:
    assert (folder / "clear-loop.jsonl").stat().st_size < 300
    assert (folder / "clear-all.jsonl").stat().st_size == 0


@pytest.mark.usefixtures("runs")
def test_large_output_leaves_nothing_in_the_spill_folder(folder: Path) -> None:
    assert (folder / "large.jsonl").stat().st_size > 3_000_000
    assert list((folder / "spill").iterdir()) == []


def test_a_later_cell_updates_what_a_replayed_step_displays(
    runs: list[dict[str, nbformat.NotebookNode]],
) -> None:
    """The last of three updates is that of the step ``clear-keeps-updates``."""
    for cells in runs:
        assert cells["for-later"].outputs[0]["data"]["text/html"] == "3"
