"""Each example that a help shows runs as it stands, where there is what it names."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from nbckpt import cli, headless
from nbckpt.store import Store
from nbckpt.trust import Secret
from nbckpt.verbs.serve.monitoring import Monitor
from tests.notebook import Notebook, opened, write_cells

LOAD = "%load_ext nbckpt\nimport nbckpt"
STEPS = (
    "%%step fetch\norders = [1, 2, 3]",
    "%%step clean --writes clean.csv\nwith open('clean.csv', 'w') as f: f.write(str(orders))",
    "%%step fit\nsure = nbckpt.ask('Delete?', ['yes', 'no'], name='delete')",
)
UNKNOWN = "%%step charge\nnbckpt.effect('charge-4711', perform=lambda key: 1 / 0)"
REHEARSED: Any = {
    "notebook": "etl.ipynb", "steps": [], "kills": 0, "findings": [], "scratch": "",
    "ok": True,
}  # fmt: skip


def examples() -> list[str]:
    """Return the command lines in the help of all verbs."""
    told = [command.help or "" for command in cli.commands.commands.values()]
    lines = (line.strip() for text in told for line in text.splitlines())
    return [line for line in lines if line.startswith("nbckpt ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with runs, foreign stores, archives; below it, `open`, as it was
    before its current run was completed."""
    folder = tmp_path_factory.mktemp("examples").resolve()
    other = folder / "open"
    with pytest.MonkeyPatch.context() as patch, opened(folder) as book:
        patch.setenv("NBCKPT_NOTEBOOK", str(folder / "etl.ipynb"))
        write_cells(LOAD, *STEPS)
        write_cells(LOAD, STEPS[0], file="nightly.ipynb")
        book.restart()
        begin(book, "orders-1", UNKNOWN)
        book.restart()
        begin(book, "etl-1", *STEPS)
        book.session.release()
        call("unknown etl-1 'is 9E the carrier that was EV?'")
        call("export etl-1 --output etl-1.nbckpt")
        shutil.copytree(folder / ".nbckpt", folder / "work" / ".nbckpt")
        (folder / "colleague").mkdir()
        foreign = Store(folder / "colleague" / ".nbckpt", Secret(b"o" * 32))
        foreign.transact(lambda transaction: transaction.put("k", 1))
        foreign.close()
        shutil.copytree(folder, other)
        call("answer etl-1 delete yes")
        book.restart()
        for cell in ("%nbckpt start etl-1", "import nbckpt", *STEPS):
            book.run(cell)
    return folder


def begin(book: Notebook, run_id: str, *cells: str) -> None:
    """Run cells in a run, the last of which stops."""
    book.run(f"%nbckpt start {run_id}")
    book.run("import nbckpt")
    for cell in cells[:-1]:
        book.run(cell)
    book.error(cells[-1])


def ran(order: headless.Order, **listeners: Any) -> int:
    """Stand for a run, which has tests of its own."""
    assert order.notebook.is_file()
    listeners["say"]("ran")
    return 0


def call(line: str) -> int:
    """Return the exit code of a command line."""
    with pytest.raises(SystemExit) as left:
        cli.main(shlex.split(line))
    return int(left.value.code or 0)


@pytest.mark.parametrize("line", examples())
def test_example_runs(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: str,
) -> None:
    verb, here = line.split()[1], tmp_path / "here"
    shutil.copytree(folder if verb == "finish" else folder / "open", here)
    monkeypatch.chdir(here)
    monkeypatch.setattr(headless, "run", ran)
    monkeypatch.setattr(headless, "rehearse", lambda *_, **__: REHEARSED)
    monkeypatch.setattr(Monitor, "go_on", Monitor.once)
    # A monitor ends with 1, since the run waits for a person.
    code = call(line.partition(" > ")[0].removeprefix("nbckpt "))
    assert code == (verb == "monitor")
    out, err = capsys.readouterr()
    assert err == ""
    output = line.partition("--output ")[2]
    assert Path(output).read_bytes() if output else out
