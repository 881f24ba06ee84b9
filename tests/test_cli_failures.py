"""One failure of each verb: its exit code, one clear line, and nothing lost."""

from __future__ import annotations

import errno
import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli, places
from nbckpt.records import PlannedStep, PlanRecord, RunRecord
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

NO_RUN = "there is no run 'nope' in {folder}/.nbckpt. Known: etl-1"
NO_STEP = "run etl-1 has no step 'nope'. Known: load"
NO_FILE = "there is no notebook {folder}/gone.ipynb. Check the path"
NO_FOLDER = "there is no folder {folder}/no to write {name} to. Make it first"
NO_STORE = "there is no store {folder}/no. Name its folder"
USAGE = ("Usage: ", "Try '")
FAILURES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "annotate": (
        ("gone.ipynb", 2, NO_FILE),
        ("job.py", 2, "job.py is no .ipynb file. In a script write the steps by hand"),
    ),
    "lint": (("gone.ipynb", 2, NO_FILE),),
    "rehearse": (
        ("gone.ipynb", 2, NO_FILE),
        ("etl.ipynb --timeout soon", 2, "'soon' is no duration. Write for example 90s"),
    ),
    "doctor": (("--store no/.nbckpt gone.ipynb", 1, "gone.ipynb: Check the path"),),
    "run": (
        (
            "etl.ipynb --store no/s",
            2,
            "there is no folder {folder}/no to make a store in",
        ),
        ("gone.ipynb", 2, NO_FILE),
        ("etl.ipynb --output no/o.ipynb", 2, NO_FOLDER.replace("{name}", "o.ipynb")),
        ("etl.ipynb --output .", 2, "{folder} is a folder. Name a file"),
        ("etl.ipynb -p 1x 2", 2, "-p 1x: that is no name. Write for example: -p DAY"),
        ("etl.ipynb --run-id a/b", 2, "'a/b'"),
        ("etl.ipynb --ping ftp://x", 2, "the address is no http or https URL. Give"),
    ),
    "rerun": (("nope", 2, NO_STEP), ("load --run nope", 2, NO_RUN)),
    "fork": (
        ("etl-1 --from nope", 2, NO_STEP),
        ("etl-1", 2, "Missing option '--from'"),
        ("nope --from load", 2, NO_RUN),
    ),
    "cancel": (("nope", 2, NO_RUN),),
    "finish": (
        ("nope", 2, NO_RUN),
        ("etl-1", 3, "steps that are not done: load (interrupted). Go on with it: "),
    ),
    "status": (
        ("nope", 2, NO_RUN),
        ("gone.ipynb", 2, "no run of gone.ipynb in {folder}/.nbckpt. Known: etl-1"),
    ),
    "plan": (("gone.ipynb", 2, NO_FILE), ("nope", 2, NO_RUN)),
    "show": (("nope", 2, NO_STEP), ("load --run nope", 2, NO_RUN)),
    "explain": (("nope", 2, NO_STEP), ("load --run nope", 2, NO_RUN)),
    "runs": (
        ("--store no", 2, NO_STORE),
        ("--output no/r.svg", 2, NO_FOLDER.replace("{name}", "r.svg")),
    ),
    "timeline": (
        ("nope", 2, NO_RUN),
        ("--output t.png", 2, "t.png: there is no picture of this ending. Name a file"),
    ),
    "graph": (("nope", 2, NO_RUN),),
    "size": (("nope", 2, NO_RUN), ("--output .", 2, "there is no picture of this")),
    "audit": (
        ("nope", 2, NO_RUN),
        ("--output no/a.html", 2, NO_FOLDER.replace("{name}", "a.html")),
        ("--output .", 2, "{folder} is a folder. Name a file"),
    ),
    "handover": (("nope", 2, NO_RUN),),
    "answer": (
        ("etl-1 sure yes", 2, "run etl-1 has no question 'sure'. Open: none"),
        ("nope sure yes", 2, NO_RUN),
    ),
    "resolve": (
        ("etl-1 pay --done", 2, "no effect 'pay'. Whose outcome is not known: none"),
        ("etl-1 pay", 2, "say one of --done [VALUE], --not-done and --redo. For"),
    ),
    "accept": (
        ("nope", 2, NO_STEP),
        ("load", 2, "step load of run etl-1 has no record yet. Run the notebook first"),
        ("", 2, "Say which step: nbckpt accept STEP"),
    ),
    "decide": (
        ("nope cut 3", 2, NO_RUN),
        ("etl-1 'a b' 3", 2, "'a b' is no name for a decision. Use letters, digits"),
    ),
    "unknown": (
        ("etl-1", 2, "Give a text, or --settle N --why TEXT"),
        ("etl-1 --settle 3", 2, "point 3 is not settled: nothing says why. Say it:"),
        ("etl-1 --settle 3 --why so", 2, "run etl-1 has no open point 3"),
    ),
    "note": (("nope text", 2, NO_RUN), ("etl-1 ' '", 2, "the note says nothing. Wr")),
    "verify": (("nope", 2, NO_RUN), ("--store no", 2, NO_STORE)),
    "gc": (("--store no", 2, NO_STORE),),
    "trust": (("no", 2, "there is no store {folder}/no. Name its folder: nbckpt tr"),),
    "export": (
        ("nope", 2, NO_RUN),
        ("etl-1 --output no/x", 2, NO_FOLDER.replace("{name}", "x")),
    ),
    "import": (
        ("gone.nbckpt", 2, "no file {folder}/gone.nbckpt. Make one: nbckpt export RUN"),
        (
            "etl.ipynb --store new",
            2,
            "etl.ipynb is refused: it is no archive of a run, or d",
        ),
        ("etl.ipynb", 2, ".nbckpt is there already, and nobody vouches for the run"),
    ),
    "monitor": (
        ("nope --once", 1, "run nope was never started"),
        ("--grace 1s", 2, "--grace 1s is too short. A run gives a sign of life every"),
        ("--alert-url x --once", 2, "the address is no http or https URL. Give for"),
    ),
}
ROWS = [(verb, *row) for verb, rows in FAILURES.items() for row in rows]
IDS = [f"{verb} {words}" for verb, words, *_ in ROWS]
CODE = {
    "cell_type": "code", "source": "%%step load\nx = 1", "metadata": {}, "outputs": [],
    "execution_count": None,
}  # fmt: skip
NOTEBOOK = {"cells": [CODE], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a notebook, and a store of a run whose step was begun."""
    folder = tmp_path_factory.mktemp("failures").resolve()
    (folder / "etl.ipynb").write_text(json.dumps(NOTEBOOK))
    (folder / "job.py").write_text("x = 1\n")
    store = Store(folder / ".nbckpt", load_secret())
    run = open_run(store, "etl", RunRecord("", ""))
    journal = Journal(store, run.run_id, 1, lambda _: None)
    journal.write_plan(PlanRecord((PlannedStep(1, "load", "code"),), "notebook"))
    journal.start("load", "it has no record yet", writes=(), durable=False)
    store.close()
    return folder


@pytest.fixture(autouse=True)
def _stand_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in that folder."""
    monkeypatch.chdir(folder)


def kept(folder: Path) -> dict[str, Any]:
    """Return what is recorded there, and which files there are."""
    store = Store(folder / ".nbckpt", load_secret())
    rows = dict(store.scan(""))
    store.close()
    files = (path for path in folder.rglob("*") if ".nbckpt" not in path.parts)
    return {**rows, **{str(path): path.read_bytes() for path in files}}


def test_each_verb_has_a_failure_here() -> None:
    assert set(FAILURES) == set(cli.commands.commands)


@pytest.mark.parametrize(("verb", "words", "code", "said"), ROWS, ids=IDS)
def test_failure_is_a_code_and_one_clear_line_and_loses_nothing(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    words: str,
    code: int,
    said: str,
) -> None:
    before = kept(folder)
    with pytest.raises(SystemExit) as left:
        cli.main([verb, *shlex.split(words)])
    out, err = capsys.readouterr()
    assert left.value.code == code
    # What was looked for and is not well is an answer; all else goes to standard error.
    assert said.format(folder=folder) in (out if code == 1 else err)
    told = [line for line in err.splitlines() if not line.startswith(USAGE) and line]
    assert len(told) == (0 if code == 1 else 1)
    assert "Errno" not in err
    assert kept(folder) == before


def test_failure_of_the_system_names_the_path_and_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _: bytes) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(places, "write_whole", refuse)
    with pytest.raises(SystemExit) as left:
        cli.main(["runs", "--output", "r.svg"])
    said = (
        f"nbckpt: {folder}/r.svg: Permission denied. Check the path, its owner and its"
    )
    assert left.value.code == 2
    assert said in capsys.readouterr().err
