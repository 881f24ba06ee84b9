"""Killed at any durable operation, `finish` and `import` are whole or done again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from nbckpt.records import RunState
from nbckpt.runs import lines
from nbckpt.runs.history import Reader
from nbckpt.runs.transfers import export_run, import_run
from nbckpt.state.garbage import collect
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle import finishing
from tests.crash import tidy
from tests.crash.verbs import Death, deaths
from tests.notebook import Notebook

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("summary.md", "audit.json", "audit.html")


@pytest.fixture
def template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """Return a folder with a run that is complete."""
    folder = tmp_path / "template"
    folder.mkdir()
    monkeypatch.chdir(folder)
    notebook = Notebook(capsys)
    notebook.run("%%step a\nx = 1")
    notebook.run("%%step b\ny = bytes(200_000)")
    notebook.close()
    return folder


def problems_of_finish(death: Death) -> list[str]:
    """Return what is wrong after `finish` was killed, and after it was done again."""
    found = []
    folder = death.folder / ".nbckpt"
    if not tidy.read(folder).sound:
        found.append("the database is damaged")
    store = Store(folder, load_secret())
    reader = Reader(store)
    run = reader.runs()[-1]
    archive = folder / "archive" / run.run_id
    kept = store.get(f"archive/{run.run_id}")
    if (run.state is RunState.FINISHED) is not (kept is not None):
        found.append("the state and the record of the archive differ")
    if kept is not None and not all((archive / name).exists() for name in FILES):
        found.append("finished, and the files are not there")
    for path in archive.glob("audit.json"):
        json.loads(path.read_text())
    finishing.finish(store, reader.run(run.run_id))
    kept = store.get(f"archive/{run.run_id}")
    if json.loads((archive / "audit.json").read_text()) != kept["audit"]:
        found.append("the file is another than the record")
    if [line["kind"] for line in _history(reader, run.run_id)].count("finished") != 1:
        found.append("finished more than once")
    if broken := lines.broken(store, run.run_id):
        found.append(broken)
    store.close()
    return found


def _history(reader: Reader, run_id: str) -> list[dict[str, str]]:
    """Return the kinds of a run's lines."""
    return [{"kind": event.kind} for _, event in reader.history(run_id)]


def test_finish_is_killed_at_each_durable_operation(
    template: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    seen, problems, states = 0, [], set()
    for death in deaths("finish", template, scratch):
        seen += 1
        store = Store(death.folder / ".nbckpt", load_secret())
        states.add(Reader(store).runs()[-1].state)
        store.close()
        at = f"{death.when} {death.number} ({death.label})"
        problems += [f"{at}: {problem}" for problem in problems_of_finish(death)]
    print(f"finish: killed at {seen} points, {len(problems)} problems")  # noqa: T201
    assert problems == []
    assert seen > 10
    assert (
        states == {RunState.COMPLETED, RunState.FINISHED} or RunState.FINISHED in states
    )


def problems_of_import(death: Death) -> list[str]:
    """Return what is wrong after `import` was killed, and after it was done again."""
    found = []
    folder = death.folder / ".nbckpt"
    left = tidy.read(folder)
    if not left.sound:
        found.append("the database is damaged")
    if left.dangling():
        found.append(f"records without bytes: {left.dangling()}")
    if left.steps and len(left.steps) != 2:
        found.append("half of the run is there")
    import_run(death.folder / "run.nbckpt", folder, load_secret())
    store = Store(folder, load_secret())
    if Reader(store).steps("notebook-1").keys() != {"a", "b"}:
        found.append("the run is not there")
    if broken := lines.broken(store, "notebook-1"):
        found.append(broken)
    collect(store)
    store.close()
    if tidy.read(folder).dangling():
        found.append("records without bytes after gc")
    return found


def test_import_is_killed_at_each_durable_operation(
    template: Path, tmp_path: Path
) -> None:
    store = Store(template / ".nbckpt", load_secret())
    folder, scratch = tmp_path / "import", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    export_run(store, "notebook-1", folder / "run.nbckpt")
    store.close()
    seen, problems = 0, []
    for death in deaths("import", folder, scratch):
        seen += 1
        at = f"{death.when} {death.number} ({death.label})"
        problems += [f"{at}: {problem}" for problem in problems_of_import(death)]
    print(f"import: killed at {seen} points, {len(problems)} problems")  # noqa: T201
    assert problems == []
    assert seen > 10
