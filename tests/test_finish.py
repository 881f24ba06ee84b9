"""Audit, hand-over and archive: from the records alone, and never changed afterwards."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.cli import main
from nbckpt.errors import Fenced, StopForHuman
from nbckpt.records import (
    Event,
    LoopRecord,
    Mark,
    NextInput,
    Question,
    RunRecord,
    RunState,
    Unknown,
)
from nbckpt.runs import lines
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import set_mark
from nbckpt.runs.leases import Leases
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs import in_notebook
from nbckpt.verbs.forms import documents
from nbckpt.verbs.forms.documents import page
from nbckpt.verbs.look import audited
from nbckpt.verbs.look.audit import audit
from nbckpt.verbs.look.handover import handover, handover_text
from nbckpt.verbs.settle import finishing
from nbckpt.verbs.settle.branches import cancel, fork
from nbckpt.verbs.settle.finishing import finish
from nbckpt.verbs.settle.resolving import read_said, resolve

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

RUN = "notebook-1"
WRITE = "from pathlib import Path; Path('out.txt').write_text('1')"
QUESTION = Question(RUN, "q", "really?", "pay").to_json()
HOSTILE = "<script>alert(1)</script>|`x`\n# h & 'q\" \x1b[31m\u202e"


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    """Return a notebook of two steps that ran."""
    notebook.run(f"%%step load --writes out.txt\n{WRITE}; x = 1")
    notebook.run('%%step sum --check "y == 2" --note "read it"\ny = x + 1')
    return notebook


@pytest.fixture
def store(notebook: Notebook) -> Store:
    """Return the store that the notebook holds."""
    return notebook.session.store


def put(store: Store, key: str, value: dict[str, Any]) -> None:
    store.transact(lambda tx: tx.put(key, value))


def run_of(store: Store) -> RunRecord:
    return Reader(store).run(RUN)


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """Run the command line in this process; return what it printed."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    shown = capsys.readouterr()
    assert ended.value.code == code, shown.err
    return shown.out


def test_audit_names_each_step_with_outcome_attempts_and_evidence(
    store: Store,
) -> None:
    found = audit(Reader(store), run_of(store))
    assert found["state"] == "completed" or found["state"] == "open"
    load, total = found["steps"]
    assert (load["name"], load["outcome"], load["attempts"]) == ("load", "completed", 1)
    assert load["files"].keys() == {"out.txt"}
    assert (total["checks"], total["note"]) == (["y == 2"], "read it")
    assert found["versions"]["python"]
    assert found["versions"]["nbckpt at first"]
    assert found["versions"]["workflow"] == ""
    assert [line["number"] for line in found["history"]] == list(
        range(1, found["chain"]["lines"] + 1)
    )


def test_audit_lists_each_key_sent_and_whatever_else_is_recorded(store: Store) -> None:
    put(store, f"effect/{RUN}/load/a", {"state": "done", "key": "k-1"})
    put(store, f"effect/{RUN}/load/b", {"state": "intent", "key": "k-2"})
    put(store, f"decision/{RUN}/colour", {"value": "red", "reason": "seen"})
    put(store, f"unheard/{RUN}", {"of": 1})
    found = audit(Reader(store), run_of(store))
    assert found["keys"] == ["k-1", "k-2"]
    assert found["records"]["decision"][0]["name"] == "colour"
    shown = documents.text(audited.title_of(found), audited.sections(found))
    for word in ("k-1", "k-2", "red", "seen", "unheard", "of: 1"):
        assert word in shown


def test_audit_tells_stops_takeovers_and_words(store: Store) -> None:
    def change(transaction: Any) -> None:
        for kind in ("taken", "refused", "stopped", "note"):
            lines.add_line(transaction, RUN, Event(1.0, kind, "", f"why {kind}"))

    store.transact(change)
    kinds = [line["kind"] for line in audit(Reader(store), run_of(store))["events"]]
    assert kinds[-4:] == ["taken", "refused", "stopped", "note"]


def test_step_that_stops_for_a_person_stands_in_the_history(notebook: Notebook) -> None:
    source = "%%step pay --stop-on-redo\nraise ValueError"
    notebook.error(source)
    assert isinstance(notebook.error(source), StopForHuman)
    last = notebook.journal.history(RUN)[-1][1]
    assert (last.kind, last.step) == ("stopped", "pay")


@pytest.mark.parametrize("form", ["text", "json", "html", "markdown"])
def test_audit_is_written_to_a_file_in_each_form(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str
) -> None:
    del notebook
    path = tmp_path / "audit"
    told(capsys, "audit", RUN, "--verify", "--format", form, "--output", str(path))
    content = path.read_text("utf-8")
    assert "out.txt" in content
    assert (
        told(capsys, "audit", RUN, "--verify", "--format", form).splitlines()[0]
        == (content.splitlines()[0])
    )


def test_audit_names_the_first_line_that_was_changed(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    key = f"history/{RUN}/{2:010d}"
    put(store, key, {**store.get(key), "reason": "nothing happened"})
    assert audit(Reader(store), run_of(store))["chain"]["broken"] == ""
    told(capsys, "audit", RUN)
    shown = told(capsys, "audit", RUN, "--verify", code=1)
    assert "BROKEN: line 2 is changed" in shown


def test_audit_names_a_record_that_was_changed_behind_its_back(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is left out of the audit; the key that was sent stands in the history."""
    sent = {"effect": "charge", "key": "k-9"}
    path = f"effect/{RUN}/pay/k-9"
    put(store, path, {"key": "k-9", "state": "done"})
    event = Event(9.0, "intent", "pay", detail=sent)
    store.transact(lambda tx: lines.add_line(tx, RUN, event))
    assert audit(Reader(store), run_of(store), verify=True)["chain"]["broken"] == ""
    store.transact(lambda tx: tx._cache.set(path, b"\0" * 40))
    found = audit(Reader(store), run_of(store), verify=True)
    assert "k-9" in found["keys"]
    assert "effect" not in {*filter(found["records"].get, found["records"])}
    shown = told(capsys, "audit", RUN, "--verify", code=1)
    assert f"BROKEN: the record {path} is damaged" in shown


class Seen(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += [tag, *(name for name, _ in attrs)]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_shows_hostile_names_as_they_are_and_loads_nothing(store: Store) -> None:
    put(store, f"decision/{RUN}/d", {"value": HOSTILE, "reason": '"><img src=x>'})
    found = audit(
        Reader(store), replace(run_of(store), notebook=HOSTILE, version=HOSTILE)
    )
    found["steps"][0]["name"] = HOSTILE
    content = page(HOSTILE, audited.sections(found))
    seen = Seen()
    seen.feed(content)
    assert not {"script", "img", "link", "iframe", "src", "href", "onerror"} & {
        *seen.tags
    }
    assert "<script>alert(1)</script>" in seen.text
    assert "\x1b" not in content
    assert "\u202e" not in content
    assert "default-src 'none'" in content
    assert "color-scheme: light dark" in content


@pytest.mark.parametrize(
    ("following", "said"),
    [
        ({"item": "o-7", "text": "order 7"}, "o-7: order 7"),
        ({"item": "7", "text": "7"}, "7"),
        ({"item": 7}, "7"),
        (["odd"], "['odd']"),
    ],
)
def test_item_in_flight_is_told_by_its_key_and_what_that_leaves_open(
    notebook: Notebook, following: Any, said: str
) -> None:
    notebook.error("%%step pay\nraise ValueError('no')")
    store = notebook.session.store
    data = handover(Reader(store), run_of(store))
    data["in_flight"][0]["next_input"] = following
    assert f", at item {said}\n" in handover_text(data).replace("\\", "")


def test_handover_says_what_is_done_what_is_next_and_how(notebook: Notebook) -> None:
    notebook.error("%%step pay --effects bank\nraise ValueError('no')")
    store = notebook.session.store
    put(store, f"effect/{RUN}/pay/a", {"state": "unknown", "key": "k-1"})
    put(store, f"question/{RUN}/pay/q", QUESTION)
    upcoming = NextInput("o-7", "order 7")
    loop = LoopRecord(RUN, "pay", "1", "l", "c", 1, next_input=upcoming)
    put(store, f"loop/{RUN}/pay/1", loop.to_json())
    data = handover(Reader(store), run_of(store))
    assert data["next_step"] == "pay"
    assert data["in_flight"][0]["state"] == "failed"
    assert data["in_flight"][0]["next_input"] == upcoming.to_json()
    assert data["never_twice"] == [
        {"effect": "pay/a", "state": "unknown", "key": "k-1"}
    ]
    assert len(data["questions"]) == len(data["unsettled"]) == 1
    shown = handover_text(data)
    assert ", at item o-7: order 7" in shown
    for word in (
        "really?",
        "k-1",
        "o-7",
        "out.txt",
        "ValueError: no",
        str(store.folder),
    ):
        assert word in shown, word
    json.dumps(data)


def test_finish_writes_summary_and_audit_from_the_records(notebook: Notebook) -> None:
    store = notebook.session.store
    put(store, f"unknown/{RUN}/000001", Unknown(1, "is it red?").to_json())
    said = in_notebook(notebook.session, "finish")
    folder = store.folder / "archive" / RUN
    assert str(folder) in said
    assert {p.name for p in folder.iterdir()} == {
        "summary.md",
        "audit.json",
        "audit.html",
    }
    summary = (folder / "summary.md").read_text()
    for word in ("load", "sum", "out.txt", "y == 2", "is it red?", "all as they were"):
        assert word in summary
    found = json.loads((folder / "audit.json").read_text())
    assert (found["state"], found["chain"]["broken"]) == ("finished", "")
    opened = Store(store.folder, load_secret())
    kept = opened.get(f"archive/{RUN}")
    assert (kept["summary"], kept["audit"]) == (summary, found)
    assert Reader(opened).run(RUN).state is RunState.FINISHED
    assert lines.broken(opened, RUN) == ""
    opened.close()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("effect/{}/load/a", {"state": "intent"}, "load/a"),
        ("question/{}/load/q", QUESTION, "load/q"),
        ("mark/{}/load", Mark(rerun="me").to_json(), "load (stale)"),
    ],
)
def test_run_with_anything_open_is_not_finished(
    store: Store, key: str, value: dict[str, Any], said: str
) -> None:
    put(store, key.format(RUN), value)
    with pytest.raises(StopForHuman, match="not complete") as caught:
        finish(store, run_of(store))
    assert said in str(caught.value)
    assert not (store.folder / "archive").exists()
    assert run_of(store).state is not RunState.FINISHED


def test_run_with_a_failed_step_is_not_finished(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.error("%%step bad\nraise ValueError")
    told(capsys, "finish", RUN, code=3)
    assert notebook.session.is_held


def cancelled(notebook: Notebook, source: str) -> tuple[Store, RunRecord]:
    """Cancel the run in a step that does not complete; return its store, opened anew."""
    notebook.run("import nbckpt")
    notebook.error(source)
    notebook.session.release()
    store = notebook.session.open_store()
    cancel(store, run_of(store))
    return store, run_of(store)


@pytest.mark.parametrize(
    "source",
    ["%%step pay\nraise ValueError", "%%step pay\nnbckpt.ask('ok?', ['yes', 'no'])"],
)
def test_cancelled_run_is_finished_with_what_is_open(
    notebook: Notebook, source: str
) -> None:
    store, run = cancelled(notebook, source)
    assert "is finished" in finish(store, run)
    text = (store.folder / "archive" / RUN / "summary.md").read_text("utf-8")
    assert "2 of 3 steps done" in text
    assert "cancelled by" in text
    found = store.get(f"archive/{RUN}")["audit"]
    assert [s["outcome"] for s in found["steps"]][:2] == ["completed", "completed"]
    assert run_of(store).state is RunState.FINISHED
    with pytest.raises(StopForHuman, match="archived"):
        open_run(store, "notebook", RunRecord(RUN))
    store.close()


def test_cancelled_run_is_finished_only_when_its_effects_are_settled(
    notebook: Notebook,
) -> None:
    """Whether money went out is asked for, whatever becomes of the run."""
    charge = "nbckpt.effect('charge', lambda: 1 / 0)"
    store, run = cancelled(notebook, f"%%step pay\n{charge}")
    with pytest.raises(StopForHuman, match=r"nobody knows.*charge") as caught:
        finish(store, run)
    assert f"nbckpt resolve {RUN} EFFECT" in caught.value.remedy
    resolve(
        store, run, "charge", read_said(None, not_done=True, redo=False, why="seen")
    )
    assert "is finished" in finish(store, run)
    store.close()


def test_archived_run_can_still_be_forked_and_stays_as_it_is(
    notebook: Notebook,
) -> None:
    store = notebook.session.store
    finish(store, run_of(store))
    before = lines.head(store, RUN)
    new, _ = fork(store, run_of(store), "sum")
    assert lines.head(store, RUN) == before
    ((_, line),) = Reader(store).history(new.run_id)
    assert (line.kind, line.detail["from"]) == ("forked", RUN)


def test_finished_run_takes_no_write_of_any_kind(notebook: Notebook) -> None:
    other = Store(notebook.session.store.folder, load_secret())
    finish(other, run_of(other))
    before = {key: other.get_bytes(key) for key in other.keys("")}
    error = notebook.error("%%step load\nx = 3")
    assert isinstance(error, Fenced)
    assert "finished and archived" in str(error)
    with pytest.raises(StopForHuman, match="archived"):
        set_mark(other, RUN, "load", lambda _: Mark(rerun="me"))
    with pytest.raises(StopForHuman, match="archived"):
        Leases(other).hold(RUN, "replace")
    with pytest.raises(StopForHuman, match="archived"):
        open_run(other, "notebook", RunRecord(RUN))
    assert {key: other.get_bytes(key) for key in other.keys("")} == before
    other.close()


def test_next_run_all_begins_a_new_run(notebook: Notebook) -> None:
    in_notebook(notebook.session, "finish")
    notebook.run("%%step load\nx = 1")
    assert notebook.session.run_id == "notebook-2"
    assert notebook.decision("load") == "Run"
    assert "archived; this is notebook-2" in notebook.told()
    notebook.restart()
    notebook.run("%%step load\nx = 1")
    assert notebook.session.run_id == "notebook-2"


def test_start_of_the_same_run_says_that_it_is_archived(notebook: Notebook) -> None:
    in_notebook(notebook.session, "finish")
    error = notebook.error(f"%nbckpt start {RUN}")
    assert isinstance(error, StopForHuman)
    assert "archived" in str(error)
    assert "--fresh" in error.remedy


def test_finishing_again_only_writes_what_is_missing(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    store = notebook.session.store
    in_notebook(notebook.session, "finish")
    path = store.folder / "archive" / RUN / "summary.md"
    summary = path.read_text()
    path.unlink()
    assert "already" in told(capsys, "finish", RUN)
    assert path.read_text() == summary
    status = json.loads(told(capsys, "status", RUN, "--json"))
    assert (status["state"], status["resume"]) == ("finished", "")


def test_run_that_goes_on_meanwhile_is_not_finished(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = finishing._write_files

    def meanwhile(*words: Any) -> None:
        write(*words)
        event = Event(1.0, "note")
        store.transact(lambda tx: lines.add_line(tx, RUN, event))

    monkeypatch.setattr(finishing, "_write_files", meanwhile)
    with pytest.raises(StopForHuman, match="went on"):
        finish(store, run_of(store))
    assert run_of(store).state is not RunState.FINISHED


WORDS = [
    "decide colour red",
    'unknown "is it red"',
    "note red it is",
    "rerun load",
    "answer colour red",
]


@pytest.mark.parametrize("words", WORDS)
def test_word_of_a_person_changes_nothing_of_a_finished_run(
    notebook: Notebook, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = notebook.session.store.folder
    in_notebook(notebook.session, "finish")
    store = Store(folder, load_secret())
    before = {key: store.get_bytes(key) for key in store.keys("")}
    verb, *rest = shlex.split(words)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([verb, *rest, "--run", RUN])
    assert ended.value.code != 0
    assert {key: store.get_bytes(key) for key in store.keys("")} == before
    store.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from nbckpt import places
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle import finishing

name, when = sys.argv[1:3]
home = places if name == "write_whole" else finishing
inner = vars(home)[name]

def die(*words):
    found = inner(*words) if when == "after" else None
    os.kill(os.getpid(), signal.SIGKILL)

setattr(home, name, die)
store = Store(Path(".nbckpt").absolute(), load_secret())
finishing.finish(store, Reader(store).run("notebook-1"))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["_write_files", "write_whole", "_close"])
def test_finish_that_is_killed_is_whole_or_begun_again(
    notebook: Notebook, name: str, when: str
) -> None:
    store = notebook.session.store
    notebook.session.release()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, name, when], env={**os.environ}, check=False,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    opened = Store(store.folder, load_secret())
    folder = store.folder / "archive" / RUN
    assert run_of(opened).state is not RunState.FINISHED
    assert opened.get(f"archive/{RUN}") is None
    finish(opened, run_of(opened))
    assert run_of(opened).state is RunState.FINISHED
    json.loads((folder / "audit.json").read_text())
    assert lines.broken(opened, RUN) == ""
    opened.close()
