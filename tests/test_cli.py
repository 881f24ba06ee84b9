"""The command line: what goes where, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli, headless
from nbckpt.errors import (
    BadNotebook,
    BadStep,
    CheckFailed,
    NotFound,
    RunHeld,
    SaveFailed,
    StopForHuman,
    StoreRefused,
)
from nbckpt.headless.progress import StepLine
from nbckpt.records import PlannedStep, PlanRecord, RunRecord
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret
from tests import shapes

if TYPE_CHECKING:
    from pathlib import Path

READING = [
    "status",
    "plan",
    "show load",
    "explain load",
    "runs",
    "timeline",
    "graph",
    "size",
    "verify",
    "audit",
    "handover",
]
CHANGING = ["rerun load", "accept load", "gc", "trust"]
STORELESS = {"annotate", "doctor", "lint", "rehearse"}
WATCHING = {"monitor"}
HEAVY = {"numpy", "pandas", "nbclient", "nbformat", "IPython", "rich", "matplotlib"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder whose store holds one run with one step that was begun."""
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path / ".nbckpt", load_secret())
    run = open_run(store, "etl", RunRecord("", ""))
    journal = Journal(store, run.run_id, 1, lambda _: None)
    journal.write_plan(PlanRecord((PlannedStep(1, "load", "code"),), "notebook"))
    journal.start("load", "it has no record yet", writes=(), durable=False)
    store.close()
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a call."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


@pytest.mark.parametrize("verb", READING)
def test_reading_verb_answers_on_standard_output(
    folder: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    code, out, err = run(capsys, *verb.split())
    assert (code, err) == (0, "")
    assert "etl-1" in out
    assert folder.is_dir()


@pytest.mark.parametrize("verb", READING)
def test_json_is_one_document_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    code, out, err = run(
        capsys, *verb.split(), "--json", "--store", str(folder / ".nbckpt")
    )
    assert (code, err) == (0, "")
    assert "etl-1" in json.dumps(json.loads(out))
    told, known = json.loads(out), shapes.shapes()
    name = verb.partition(" ")[0]
    keys = [row[0] for row in known[shapes.verbs(known)[name]].rows]
    for part in told if isinstance(told, list) else [told]:
        assert list(part) == ["schema_version", *keys]
        assert part["schema_version"] == 1


@pytest.mark.parametrize("verb", READING)
def test_reading_verb_changes_no_byte_and_no_time_of_the_store(
    folder: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    def entries() -> list[tuple[str, int, bytes]]:
        return sorted(
            (str(p), p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
            for p in folder.rglob("*")
        )

    before = entries()
    run(capsys, *verb.split())
    assert entries() == before


@pytest.mark.parametrize("verb", [*READING, "rerun load", "accept load", "gc", "trust"])
def test_verb_without_a_store_is_refused_and_makes_none(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *verb.split())
    assert (code, out) == (2, "")
    assert "there is no store" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "not json",
        '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    ],
)
def test_empty_or_broken_notebook_is_one_clear_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    notebook = tmp_path / "nb.ipynb"
    notebook.write_text(text)
    code, out, err = run(capsys, "run", str(notebook))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert str(notebook) in err


@pytest.mark.parametrize(
    "arguments", [["show"], ["status", "--nope"], ["frobnicate"], ["run"], []]
)
def test_wrong_usage_is_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(capsys, *arguments)[0] == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RunHeld("held"), 4),
        (StopForHuman("stop"), 3),
        (CheckFailed("check"), 1),
        (SaveFailed("save"), 1),
        (BadStep("step"), 2),
        (BadNotebook("notebook"), 2),
        (NotFound("none"), 2),
        (StoreRefused("store"), 2),
    ],
)
def test_each_error_has_its_exit_code(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: int,
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(headless, "run", refuse)
    assert run(capsys, "run", "nb.ipynb") == (code, "", f"nbckpt: {error}\n")


def test_run_hands_over_what_was_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    orders: list[headless.Order] = []

    def take(order: headless.Order, **_: object) -> int:
        orders.append(order)
        return 3

    monkeypatch.setattr(headless, "run", take)
    monkeypatch.chdir(tmp_path)
    options = ["-p", "DAY", "2026-11-29", "-p", "N", "3", "--run-id", "r", "--fresh"]
    more = [
        "--overlap",
        "replace",
        "--version",
        "2",
        "--output",
        "o.ipynb",
        "--store",
        "s",
    ]
    assert run(capsys, "run", "nb.ipynb", *options, *more)[0] == 3
    assert orders == [
        headless.Order(
            tmp_path / "nb.ipynb", {"DAY": "2026-11-29", "N": "3"}, "r",
            fresh=True, overlap="replace", version="2", output="o.ipynb", store=tmp_path / "s",
        )
    ]  # fmt: skip


def test_store_is_sought_beside_the_notebook_that_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run(capsys, "status")[0] == 2
    assert run(capsys, "status", "../etl.ipynb")[0] == 0
    monkeypatch.setenv("NBCKPT_STORE", str(folder / ".nbckpt"))
    assert run(capsys, "status")[0] == 0
    assert not (elsewhere / ".nbckpt").exists()


def test_rerun_marks_the_step_of_the_run_that_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "rerun", "load", "--run", "etl-1")[0] == 0
    store = Store(folder / ".nbckpt", load_secret())
    assert Reader(store).mark("etl-1", "load").rerun
    store.close()


def test_verify_that_finds_something_is_exit_1(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"run": "r", "ok": False, "folder": "", "files": 0, "bytes": 0, "steps": []}
    monkeypatch.setattr(cli.keeping.verification, "verify", lambda *_, **__: found)
    assert run(capsys, "verify")[0] == 1
    assert folder.is_dir()


def test_trust_makes_another_users_store_ones_own(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(folder / "other"))
    assert "not authenticated" in run(capsys, "status")[1]
    code, out, _ = run(capsys, "trust", ".nbckpt")
    assert code == 0
    assert "is yours now" in out
    assert "not authenticated" not in run(capsys, "status")[1]


def test_top_help_shows_the_families_and_every_verb(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = run(capsys, "--help")
    assert [name for name in cli.FAMILIES if f"\n{name}:" in out] == list(cli.FAMILIES)
    named = {command.name for family in cli.FAMILIES.values() for command in family}
    assert named == set(cli.commands.commands)


@pytest.mark.parametrize("verb", sorted(cli.commands.commands))
def test_help_of_each_verb_holds_an_example(
    capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    code, out, _ = run(capsys, verb, "--help")
    assert code == 0
    assert f"  nbckpt {verb}" in out
    assert "--store" in out or verb in STORELESS
    reading = {word.split()[0] for word in READING} | STORELESS | WATCHING
    assert ("--json" in out) is (verb in reading)


def in_terminal(folder: Path, environment: dict[str, str]) -> str:
    """Return what ``nbckpt status`` writes to a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-c", "from nbckpt.cli import main; main(['status'])"]
    settings: dict[str, Any] = {"cwd": folder, "stdout": slave, "stderr": slave}
    env = {**os.environ, "CI": "", **environment}
    child = subprocess.Popen(command, env=env, **settings)
    os.close(slave)
    parts = []
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not data:
            break
        parts.append(data)
    os.close(master)
    assert child.wait() == 0
    return b"".join(parts).decode()


def test_terminal_gets_tables_with_colours_unless_told_otherwise(folder: Path) -> None:
    colours = {"TERM": "xterm-256color", "COLUMNS": "120"}
    assert "\x1b[" in in_terminal(folder, colours)
    assert "\x1b[" not in in_terminal(folder, {**colours, "NO_COLOR": "1"})


class AsciiOut(io.StringIO):
    """A terminal that shows no signs."""

    encoding = "ascii"

    def isatty(self) -> bool:
        return True


class Out(AsciiOut):
    """A terminal."""

    encoding = "UTF-8"


@pytest.mark.parametrize(
    ("out", "told", "drawn"),
    [
        (Out(), {}, True),
        (Out(), {"NO_COLOR": "1"}, False),
        (Out(), {"CI": "true"}, False),
        (Out(), {"TERM": "dumb"}, False),
        (Out(), {"TERM": ""}, False),
        (AsciiOut(), {}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_run_is_drawn_where_somebody_looks_and_plain_elsewhere(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    out: io.StringIO,
    told: dict[str, str],
    drawn: bool,
) -> None:
    watched: list[bool] = []

    def take(_: headless.Order, say: Any, watch: Any = None) -> int:
        say(StepLine("[1/1] load ran 1 s", "completed"))
        watched.append(watch is not None)
        return 0

    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm", **told}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(headless, "run", take)
    monkeypatch.setattr(sys, "stdout", out)
    assert run(capsys, "run", "nb.ipynb")[0] == 0
    assert watched == [drawn]
    assert out.getvalue().endswith("[1/1] load ran 1 s\n")
    assert ("\u2713" in out.getvalue()) is drawn


@pytest.mark.parametrize("verb", ["handover", "audit"])
def test_documents_are_drawn_on_a_terminal_and_are_themselves_elsewhere(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
) -> None:
    """A hand-over is Markdown for whoever reads the file."""
    elsewhere = run(capsys, verb)[1]
    assert elsewhere.startswith(
        "# Hand-over" if verb == "handover" else "Audit of run "
    )
    for name, value in {"NO_COLOR": "", "CI": "", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    out = Out()
    monkeypatch.setattr(sys, "stdout", out)
    assert run(capsys, verb)[0] == 0
    title = {"handover": "Hand-over", "audit": "Audit"}[verb]
    assert out.getvalue().startswith(f"{title} of run etl-1\n=====")
    assert "\x1b[1mstep" in out.getvalue()
    assert "| --- |" not in out.getvalue()
    assert folder.is_dir()


def test_looking_imports_nothing_heavy_and_never_unpickles(folder: Path) -> None:
    code = (
        "import sys, pickle\n"
        "def refuse(*a, **k): raise SystemExit('unpickled')\n"
        "pickle.loads = pickle.load = refuse\n"
        "from nbckpt.cli import main\n"
        "try: main(['status'])\n"
        "except SystemExit as left: assert not left.code, left.code\n"
        f"print('heavy:', sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.endswith("heavy: []\n")


def test_package_is_the_command_too() -> None:
    told = subprocess.check_output([sys.executable, "-m", "nbckpt", "--version"])
    assert told.startswith(b"nbckpt, version")
