"""What a shell completes, as click's own completion gives it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.shell_completion import ShellComplete

from nbckpt.cli import commands
from nbckpt.cli.completing import KINDS
from nbckpt.records import (
    EffectRecord,
    EffectState,
    PlannedStep,
    PlanRecord,
    Question,
    RunRecord,
)
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder whose store holds two runs: of etl, then of ship."""
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path / ".nbckpt", load_secret())
    for stem, names in (("etl", ["load", "clean"]), ("ship", ["pack"])):
        run = open_run(store, stem, RunRecord("", ""))
        journal = Journal(store, run.run_id, 1, lambda _: None)
        steps = (PlannedStep(n, name, "code") for n, name in enumerate(names, 1))
        journal.write_plan(PlanRecord(tuple(steps), "notebook"))
    store.close()
    return tmp_path


def completed(*words: str) -> list[str]:
    """Return what the last word can become; ``<file>`` where the shell looks itself."""
    *before, incomplete = words
    complete = ShellComplete(commands, {}, "nbckpt", "_NBCKPT_COMPLETE")
    found = complete.get_completions(list(before), incomplete)
    return [i.value if i.type == "plain" else f"<{i.type}>" for i in found]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["stat"], ["status"]),
        (["status", "e"], ["<file>", "etl-1"]),
        (["status", ""], ["<file>", "ship-1", "etl-1"]),
        (["monitor", "etl-1", "s"], ["<file>", "ship-1"]),
        (["show", ""], ["pack"]),
        (["show", "--run", "etl-1", ""], ["load", "clean"]),
        (["show", "--run", "etl-1", "c"], ["clean"]),
        (["show", "--run", "e"], ["<file>", "etl-1"]),
        (["answer", "e"], ["<file>", "etl-1"]),
        (["rerun", "p"], ["pack"]),
        (["accept", "p"], ["pack"]),
        (["fork", "etl-1", "--from", ""], ["load", "clean"]),
        (["fork", "etl-1", "--from", "c"], ["clean"]),
        (["fork", "etl-1", "--run-id", ""], []),
        (["answer", "etl-1", "sure", "yes", "--step", ""], ["load", "clean"]),
        (["run", "etl.ipynb", "--run-id", ""], ["ship-1", "etl-1"]),
        (["export", "etl-1", "--format", "c"], ["checkpoint"]),
        (["import", "x"], ["<file>"]),
        (["trust", "x"], ["<dir>"]),
        (["run", "n"], ["<file>"]),
        (["status", "--store", "n"], ["<dir>"]),
        (["run", "--overlap", "r"], ["replace"]),
        (["show", "--run", "none-1", ""], []),
        (["show", "--store", "nowhere", ""], []),
    ],
)
def test_word_is_completed_by_what_the_store_knows(
    folder: Path, words: list[str], found: list[str]
) -> None:
    assert completed(*words) == found
    assert sorted(path.name for path in folder.iterdir()) == [".nbckpt"]


def test_question_that_is_open_is_completed_and_an_answered_one_is_not(
    folder: Path,
) -> None:
    store = Store(folder / ".nbckpt", load_secret())
    for name, answered in (("delete", False), ("send", True)):
        asked = Question("etl-1", name, "Sure?", asked_at=1.0, answered=answered)
        store.transact(lambda tx, q=asked: tx.put(q.key, q.to_json()))
    store.close()
    assert completed("answer", "etl-1", "") == ["delete"]
    assert completed("resolve", "etl-1", "") == []


def test_effect_of_unknown_outcome_is_completed_and_a_done_one_is_not(
    folder: Path,
) -> None:
    store = Store(folder / ".nbckpt", load_secret())
    for name, state in (("pay", EffectState.INTENT), ("post", EffectState.DONE)):
        found = EffectRecord("etl-1", "load", name, "", f"k-{name}", state, 1, 1, 1, 1)
        path = f"effect/etl-1/load/{found.key}"
        store.transact(lambda tx, p=path, e=found: tx.put(p, e.to_json()))
    store.close()
    assert completed("resolve", "etl-1", "") == ["pay"]


@pytest.mark.parametrize(
    "harm", ["open to all", "no database", "a folder", "odd record"]
)
def test_store_that_can_not_be_read_completes_to_nothing(
    folder: Path, harm: str
) -> None:
    database = folder / ".nbckpt" / "records" / "cache.db"
    if harm == "open to all":
        (folder / ".nbckpt").chmod(0o777)
    elif harm == "odd record":
        store = Store(folder / ".nbckpt", load_secret())
        for run in ("etl-1", "ship-1"):
            store.transact(lambda tx, r=run: tx.put(f"plan/{r}", {"steps": 7}))
        store.close()
    else:
        database.unlink()
        if harm == "a folder":
            database.mkdir()
        else:
            database.write_bytes(b"nothing of the kind" * 300)
    assert completed("show", "") == []
    assert completed("fork", "etl-1", "--from", "") == []
    assert completed("status", "")[0] == "<file>"


def test_every_parameter_of_these_names_is_completed() -> None:
    plain = {
        (command.name, parameter.name)
        for command in commands.commands.values()
        for parameter in command.params
        if parameter.name in KINDS and parameter.type is click.STRING
    }
    assert plain == set()


def test_shell_gets_its_script_and_its_words(folder: Path) -> None:
    def told(**settings: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", "from nbckpt.cli import main; main()"],
            cwd=folder,
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        ).stdout

    words = {"COMP_WORDS": "nbckpt show ", "COMP_CWORD": "2"}
    assert told(_NBCKPT_COMPLETE="bash_complete", **words) == "plain,pack\n"
    for shell in ("zsh", "fish"):
        assert "_NBCKPT_COMPLETE" in told(_NBCKPT_COMPLETE=f"{shell}_source")


def test_bash_completes_run_ids_where_a_file_could_stand(folder: Path) -> None:
    program = folder / "nbckpt"
    program.write_text(f"#!{sys.executable}\nfrom nbckpt.cli import main\nmain()\n")
    program.chmod(0o700)
    told = """\
eval "$(_NBCKPT_COMPLETE=bash_source ./nbckpt)"
COMP_WORDS=(nbckpt status e) COMP_CWORD=2
_nbckpt_completion ./nbckpt 2>/dev/null
echo "${COMPREPLY[@]}"
"""
    found = subprocess.run(
        ["bash", "-c", told], cwd=folder, capture_output=True, text=True, check=True
    )
    assert found.stdout == "etl-1\n"
