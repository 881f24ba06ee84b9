"""The verbs that look: what they tell, and that telling changes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.cli import FAMILIES
from nbckpt.errors import BadStep, NotFound, StoreDamaged, StoreRefused
from nbckpt.people import settling
from nbckpt.places import folder_bytes
from nbckpt.records import (
    Contents,
    DecisionRecord,
    Evidence,
    Fingerprint,
    Lease,
    Mark,
    PlannedStep,
    PlanRecord,
    RunRecord,
    StepRecord,
    StepState,
)
from nbckpt.runs.history import Reader
from nbckpt.runs.identity import Wish
from nbckpt.runs.journal import Journal, set_mark
from nbckpt.runs.opening import open_run
from nbckpt.runs.processes import this_process
from nbckpt.runs.trusting import make_own
from nbckpt.store import Store
from nbckpt.store.packs import Pack
from nbckpt.trust import Secret, load_secret
from nbckpt.verbs import in_notebook
from nbckpt.verbs.finding import targets
from nbckpt.verbs.finding.opening import changing, choose_run, looking, require_step
from nbckpt.verbs.finding.starting import find_start, read_start
from nbckpt.verbs.forms import pages
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.look import explaining, overview, steps
from nbckpt.verbs.notebook import SHELL_VERBS, VERBS
from nbckpt.verbs.prepare import planning
from nbckpt.verbs.prepare.outline import MISSING, outline
from nbckpt.verbs.settle import marks
from nbckpt.verbs.settle.verification import read_back, verify
from nbckpt.verbs.standing import status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DRIVER = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(open(sys.argv[1]))["cells"]:
    if not shell.run_cell(cell["source"]).success:
        sys.exit(1)
"""


def a_notebook(folder: Path, *sources: str, name: str = "nb.ipynb") -> Path:
    cells = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        for number, source in enumerate(sources)
    ]
    data = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def run_all(notebook: Path) -> tuple[set[str], set[str]]:
    """Run a notebook top to bottom in a new process; return what ran and was skipped."""
    store = notebook.parent / ".nbckpt"
    seen = {key for key, *_ in lines_of(store)}
    environment = {**os.environ, "NBCKPT_NOTEBOOK": str(notebook)}
    subprocess.run(
        [sys.executable, "-c", DRIVER, str(notebook)],
        cwd=notebook.parent,
        env=environment,
        check=True,
        capture_output=True,
        timeout=120,
    )
    new = [(kind, step) for key, kind, step in lines_of(store) if key not in seen]
    ran = {step for kind, step in new if kind == "completed"}
    return ran, {step for kind, step in new if kind == "skipped"}


def lines_of(store: Path) -> list[tuple[str, str, str]]:
    with looking(store) as reader:
        return [
            (key, event.kind, event.step)
            for run in reader.runs()
            for key, event in reader.history(run.run_id)
        ]


def predicted(notebook: Path) -> dict[str, tuple[str, str]]:
    with looking(notebook.parent / ".nbckpt") as reader:
        found = planning.plan_notebook(reader, notebook)
    return {
        step["name"]: (step["prediction"], step["reason"]) for step in found["steps"]
    }


def words(notebook: Path) -> dict[str, str]:
    return {name: word for name, (word, _) in predicted(notebook).items()}


def snapshot(folder: Path) -> list[tuple[str, bytes, int]]:
    """Return every entry below a folder with its bytes and its time of change."""
    return sorted(
        (
            str(path.relative_to(folder)),
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mtime_ns,
        )
        for path in folder.rglob("*")
    )


class Lab:
    """A run of three steps whose records a test writes as it likes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / ".nbckpt", load_secret())
        self.reader = Reader(self.store)
        self.run = open_run(self.store, "etl", RunRecord("", ""))
        self.journal = Journal(self.store, self.run.run_id, 1, lambda _: None)
        names = ("load", "clean", "fit")
        planned = tuple(PlannedStep(n, name, "code") for n, name in enumerate(names, 1))
        self.journal.write_plan(PlanRecord(planned, "notebook"))
        self.hold()

    def hold(self, **changes: Any) -> None:
        """Give the run a lease of this process, or one that differs."""
        lease = Lease(token=1, holder=this_process(), beat_at=time.time())
        changed = replace(lease, **changes).to_json()
        key = f"lease/{self.run.run_id}"
        self.store.transact(lambda transaction: transaction.put(key, changed))

    def hold_dead(self) -> None:
        """Give the run the lease of a process that is no more."""
        child = subprocess.Popen([sys.executable, "-c", "pass"])
        child.wait()
        self.hold(holder=replace(this_process(), pid=child.pid, started=1.0))

    def start(self, step: str) -> None:
        self.journal.start(step, "it has no record yet", writes=(), durable=False)

    def complete(self, step: str, **changes: Any) -> StepRecord:
        self.start(step)
        attempt = self.reader.attempts(self.run.run_id)[step]
        record = StepRecord(
            run_id=self.run.run_id,
            step=step,
            attempt=attempt.attempt,
            token=1,
            order=attempt.order,
            fingerprint=Fingerprint(code="code", versions={"python": "3.11"}),
            evidence=Evidence(),
            contents=Contents(),
            started_at=time.time(),
            completed_at=time.time(),
            seconds=2.5,
        )
        record = replace(record, **changes)
        self.journal.complete(record, Pack("none", None), "it has no record yet")
        return record

    def status(self) -> status.Status:
        return status.status(self.reader, self.reader.run(self.run.run_id))

    def states(self) -> dict[str, str]:
        return {step["name"]: step["state"] for step in self.status()["steps"]}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    yield made
    made.store.close()


# status


def test_status_counts_what_is_done_and_names_what_is_running(lab: Lab) -> None:
    lab.complete("load")
    lab.start("clean")
    found = lab.status()
    assert (found["done"], found["total"], found["state"]) == (1, 3, "running")
    assert found["current"] is not None
    assert found["current"]["step"] == "clean"
    assert lab.states() == {"load": "completed", "clean": "running", "fit": "pending"}
    assert found["resume"] == ""


def test_status_names_holder_with_process_host_and_age_of_its_beat(lab: Lab) -> None:
    holder = lab.status()["holder"]
    assert holder is not None
    assert holder["pid"] == os.getpid()
    assert holder["standing"] == "alive"
    assert 0 <= holder["beat_age"] < 60


def test_holder_whose_beat_is_old_is_late_and_not_dead(lab: Lab) -> None:
    lab.start("load")
    lab.hold(beat_at=time.time() - 1000)
    found = lab.status()
    assert found["holder"] is not None
    assert found["holder"]["standing"] == "late"
    assert found["state"] == "running"


def test_step_of_dead_holder_is_interrupted_and_never_running(lab: Lab) -> None:
    lab.complete("load")
    lab.start("clean")
    lab.hold_dead()
    found = lab.status()
    assert found["state"] == "interrupted"
    assert found["current"] is None
    assert found["died_in"] is not None
    assert found["died_in"]["step"] == "clean"
    assert lab.states()["clean"] == "interrupted"
    assert "died in" in pages.plain(overview.status_page(found))


def test_step_that_its_living_kernel_interrupted_ended_without_a_death(
    lab: Lab,
) -> None:
    lab.start("load")
    lab.journal.fail("load", StepState.INTERRUPTED, "KeyboardInterrupt")
    page = pages.plain(overview.status_page(lab.status()))
    assert "ended in  load" in page
    assert "died in" not in page


def test_step_of_holder_that_was_replaced_is_interrupted(lab: Lab) -> None:
    lab.start("load")
    lab.hold(token=2)
    assert lab.states()["load"] == "interrupted"


def test_step_left_running_by_kernel_that_gave_the_run_back_is_interrupted(
    lab: Lab,
) -> None:
    lab.start("load")
    lab.hold(released=True)
    assert lab.states()["load"] == "interrupted"


def test_failed_step_shows_its_error(lab: Lab) -> None:
    lab.start("load")
    lab.journal.fail("load", StepState.FAILED, "ValueError: no")
    found = lab.status()
    assert found["state"] == "failed"
    assert found["steps"][0]["error"] == "ValueError: no"
    assert "ValueError: no" in pages.plain(overview.status_page(found))


@pytest.mark.parametrize(
    ("error", "note"),
    [
        ("CheckFailed: step load: no. Mend it. Then run", "CheckFailed: step load: no"),
        ("ValueError: 0.5 is\nno number", "ValueError: 0.5 is"),
        ("ValueError: no", "ValueError: no"),
    ],
)
def test_status_notes_what_is_wrong_and_explain_tells_the_rest(
    lab: Lab, error: str, note: str
) -> None:
    lab.start("load")
    lab.journal.fail("load", StepState.FAILED, error)
    data = lab.status()
    rows = overview.status_page(data)[-3]
    assert isinstance(rows, pages.Table)
    assert rows.rows[0][-1] == note
    assert data["steps"][0]["error"] == error
    assert error in pages.plain(
        explaining.explain_page(explaining.explain(lab.reader, lab.run, "load"))
    )


def test_run_whose_steps_are_all_done_is_completed(lab: Lab) -> None:
    for step in ("load", "clean", "fit"):
        lab.complete(step)
    assert lab.status()["state"] == "completed"


@pytest.mark.parametrize(
    ("mark", "changes", "reason"),
    [
        (Mark(rerun="me"), {}, "asked for: me"),
        (Mark(), {"runs_again": "x: a socket"}, "x: a socket"),
        (Mark(), {"fingerprint": Fingerprint(code="old")}, "its code changed"),
        (Mark(accepted=("code",)), {"fingerprint": Fingerprint(code="old")}, ""),
    ],
)
def test_completed_step_that_runs_again_is_stale_and_says_why(
    lab: Lab, mark: Mark, changes: dict[str, Any], reason: str
) -> None:
    lab.complete("load", **changes)
    set_mark(lab.store, lab.run.run_id, "load", lambda _: mark)
    step = lab.status()["steps"][0]
    assert step["runs_again"] == reason
    assert step["state"] == ("stale" if reason else "completed")


def test_status_tells_versions_time_and_attempts_of_a_step(lab: Lab) -> None:
    lab.complete("load")
    lab.complete("load")
    step = lab.status()["steps"][0]
    assert step["environment"] == {"python": "3.11"}
    assert (step["seconds"], step["attempt"]) == (2.5, 2)


def test_status_tells_bytes_of_the_store_and_that_it_is_authentic(lab: Lab) -> None:
    found = lab.status()["store"]
    assert found["bytes"] == folder_bytes(lab.store.folder) > 0
    assert found["authenticated"] is True


def test_steps_without_a_plan_are_told_from_their_attempts(lab: Lab) -> None:
    lab.start("load")
    key = f"plan/{lab.run.run_id}"
    lab.store.transact(lambda transaction: transaction.delete(key))
    assert lab.states() == {"load": "running"}


def test_runs_lists_every_run_oldest_first(lab: Lab) -> None:
    lab.complete("load")
    open_run(lab.store, "etl", RunRecord("", ""), fresh=True)
    found = status.runs(lab.reader)
    assert [line["run"] for line in found] == ["etl-1", "etl-2"]
    assert (found[0]["done"], found[0]["total"], found[1]["total"]) == (1, 3, 0)
    assert "etl-2" in pages.plain(overview.runs_page(found))


@pytest.mark.parametrize(
    "verb", ["status", "runs", "show", "explain", "verify", "plan"]
)
def test_every_answer_is_plain_json(lab: Lab, verb: str) -> None:
    lab.complete("load")
    answers: dict[str, Any] = {
        "status": lab.status,
        "runs": lambda: status.runs(lab.reader),
        "show": lambda: steps.show(lab.reader, lab.run, "load"),
        "explain": lambda: explaining.explain(lab.reader, lab.run, "load"),
        "verify": lambda: verify(lab.reader, lab.run),
        "plan": lambda: planning.plan_run(lab.reader, lab.run),
    }
    found = answers[verb]()
    assert json.loads(json.dumps(found)) == found


# finding the run and the step


def test_run_begun_last_is_meant_where_none_is_named(lab: Lab) -> None:
    open_run(lab.store, "other", RunRecord("", ""))
    assert choose_run(lab.reader).run_id == "other-1"
    assert choose_run(lab.reader, stem="etl").run_id == "etl-1"


def test_unknown_run_names_those_that_there_are(lab: Lab) -> None:
    with pytest.raises(NotFound, match="Known: etl-1"):
        choose_run(lab.reader, "nope")


def test_notebook_without_a_run_is_not_given_another_ones(lab: Lab) -> None:
    with pytest.raises(NotFound, match=r"no run of other\.ipynb"):
        choose_run(lab.reader, stem="other")


def test_beginning_a_run_is_told_with_the_notebook_that_was_named(lab: Lab) -> None:
    with pytest.raises(NotFound) as caught:
        targets.run_named(lab.reader, "my reports/other.ipynb")
    assert "nbckpt run 'my reports/other.ipynb'" in caught.value.remedy


def test_unknown_step_names_those_that_there_are(lab: Lab) -> None:
    with pytest.raises(NotFound, match="Known: load, clean, fit"):
        require_step(lab.reader, "etl-1", "nope")


def test_looking_at_no_store_makes_none(tmp_path: Path) -> None:
    folder = tmp_path / ".nbckpt"
    with looking(folder) as reader, pytest.raises(NotFound, match="no store"):
        choose_run(reader)
    with pytest.raises(NotFound, match="no store"), changing(folder):
        pass
    assert not folder.exists()


def test_looking_makes_no_secret(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lab.store.close()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "nobody"))
    with looking(lab.store.folder) as reader:
        assert reader.store.trusted is False
        assert choose_run(reader).run_id == "etl-1"
    assert not (tmp_path / "nobody").exists()


# show and explain


def test_show_tells_record_attempts_and_history(lab: Lab) -> None:
    lab.complete("load", evidence=Evidence(files={"out.csv": "d1"}, note="looked at"))
    found = steps.show(lab.reader, lab.run, "load")
    assert found["record"] is not None
    assert found["record"]["evidence"]["files"] == {"out.csv": "d1"}
    assert [line["kind"] for line in found["history"]] == ["started", "completed"]
    text = pages.plain(steps.show_page(found))
    assert (
        "  evidence\n    note: looked at\n    file     digest\n    out.csv  d1\n"
        in text
    )


def test_show_tells_what_the_step_decided_and_what_a_person_said_of_it(
    lab: Lab,
) -> None:
    for name, step in {"rate": "load", "other": "fit"}.items():
        made = DecisionRecord("etl-1", name, 19, reason="the law", step=step)
        lab.store.transact(settling.decision(made, None))
    marks.rerun(lab.store, lab.run, "load")
    found = steps.show(lab.reader, lab.run, "load")
    assert [decision["name"] for decision in found["decisions"]] == ["rate"]
    text = pages.plain(steps.show_page(found))
    assert (
        "  decisions\n    decision  value  reason\n    rate      19     the law" in text
    )
    assert "\n  to run again: " in text


def test_show_of_step_that_never_completed_says_so(lab: Lab) -> None:
    text = pages.plain(steps.show_page(steps.show(lab.reader, lab.run, "fit")))
    assert "never completed" in text


def test_explain_names_the_part_that_differed_from_the_record_before(lab: Lab) -> None:
    lab.complete("load", fingerprint=Fingerprint(code="code", inputs={"STARTED": "1"}))
    lab.complete("load", fingerprint=Fingerprint(code="code", inputs={"STARTED": "2"}))
    found = explaining.explain(lab.reader, lab.run, "load")
    assert found["changed"] == ["input 'STARTED' changed"]
    assert pages.plain(explaining.explain_page(found)).endswith(
        "What differed from the record before\n  input 'STARTED' changed\n"
        "What would happen now can't be told: its notebook is not known here."
    )


def test_explain_tells_each_part_of_a_reason_in_a_line_of_its_own() -> None:
    last = explaining.LastTime(kind="completed", at=0.0, reason="a; b", seconds=1.0)
    told = explaining.Explanation(
        run="etl-1", step="fit", last=last, ran=last, changed=[], sources=[], now="run",
        reason="c; d",
    )  # fmt: skip
    assert pages.plain(explaining.explain_page(told)).splitlines()[1:] == [
        "Its body ran on unknown for 1.0 s, because", "  a", "  b",
        "If the notebook ran now: run, because", "  c", "  d",
    ]  # fmt: skip


def test_explain_tells_which_step_an_input_that_differed_came_from_and_why(
    lab: Lab,
) -> None:
    made = Contents(bound=("rows",))
    lab.complete("load", contents=made)
    lab.complete("fit", fingerprint=Fingerprint(code="c", inputs={"rows": "1"}))
    lab.complete("load", contents=made)
    lab.start("fit")
    changed = Fingerprint(code="c", inputs={"rows": "2", "k": "3"})
    lab.complete("fit", fingerprint=changed)
    found = explaining.explain(lab.reader, lab.run, "fit")
    assert found["changed"] == ["input 'k' is new", "input 'rows' changed"]
    (source,) = found["sources"]
    assert (source["input"], source["step"]) == ("rows", "load")
    assert found["ran"] is not None
    found["ran"]["reason"] = "input 'k' is new"
    shown = pages.plain(explaining.explain_page(found)).splitlines()
    assert shown[1].endswith(", because")
    assert shown[2:4] == ["  input 'k' is new", "  input 'rows' changed"]
    assert shown[4].startswith("    step load made it on ")
    assert shown[4].endswith(" (it has no record yet).")


def test_explain_tells_of_a_step_that_was_begun_anew_and_never_ended(lab: Lab) -> None:
    lab.complete("load")
    lab.start("load")
    told = explaining.explain_page(explaining.explain(lab.reader, lab.run, "load"))
    assert "It was begun, and no end of it is recorded, on " in pages.plain(told)


def test_explain_tells_that_a_step_waits_for_a_person(lab: Lab) -> None:
    lab.start("load")
    lab.journal.fail("load", StepState.WAITING, "delete them?")
    lab.journal.note("answered", "load", "yes")
    told = explaining.explain_page(explaining.explain(lab.reader, lab.run, "load"))
    assert re.search(
        r"It began to wait for a person on .*: delete them\?", pages.plain(told)
    )


def test_explain_of_step_that_failed_tells_its_error(lab: Lab) -> None:
    lab.start("load")
    lab.journal.fail("load", StepState.FAILED, "ValueError: no")
    found = explaining.explain(lab.reader, lab.run, "load")
    assert found["last"] is not None
    assert found["last"]["kind"] == "failed"
    assert "ValueError: no" in pages.plain(explaining.explain_page(found))


def test_explain_without_notebook_says_that_now_cannot_be_told(lab: Lab) -> None:
    found = explaining.explain(lab.reader, lab.run, "fit")
    assert (found["last"], found["now"]) == (None, "")
    assert "can't be told" in pages.plain(explaining.explain_page(found))


def test_explain_tells_of_a_step_when_another_cell_is_no_step(lab: Lab) -> None:
    notebook = a_notebook(lab.folder, "%%step load\nx = 1", "%%step fit --chekc x")
    lab.complete("load")
    run = replace(lab.run, notebook=str(notebook))
    found = explaining.explain(lab.reader, run, "load")
    assert found["now"] in {"run", "skip"}
    assert "Its body ran" in pages.plain(explaining.explain_page(found))
    wrong = explaining.explain(lab.reader, run, "fit")
    assert wrong["now"] == "unknown"
    assert "code cell 2 (%%step fit --chekc x)" in wrong["reason"]


# verify


def test_verify_names_the_file_that_was_changed(lab: Lab) -> None:
    lab.complete("load", evidence=Evidence(files={"gone.csv": "d1"}))
    found = verify(lab.reader, lab.run)
    assert found["ok"] is False
    assert found["steps"][0]["findings"] == ["file 'gone.csv' is missing"]


def test_checks_need_the_kernel_and_are_evaluated_in_it(lab: Lab) -> None:
    lab.complete("load", evidence=Evidence(checks=("x > 0",)))

    def state(namespace: dict[str, Any] | None) -> str:
        return verify(lab.reader, lab.run, namespace)["steps"][0]["checks"][0]["state"]

    assert state(None) == "needs the kernel"
    assert state({"x": 1}) == "true"
    assert state({"x": 0}) == "check 'x > 0' is not true"


def test_damaged_pack_is_found_when_all_bytes_are_read_back(tmp_path: Path) -> None:
    body = "import random\nbig = random.Random(0).randbytes(300_000)"
    notebook = a_notebook(tmp_path, "%load_ext nbckpt", f"%%step big\n{body}")
    run_all(notebook)
    (pack,) = (tmp_path / ".nbckpt" / "packs").iterdir()
    with looking(tmp_path / ".nbckpt") as reader:
        record = reader.steps("nb-1")["big"]
        assert read_back(reader, record)[1] == []
        data = bytearray(pack.read_bytes())
        data[len(data) // 2] ^= 1  # the pack begins with padding
        pack.write_bytes(bytes(data))
        assert "damaged" in read_back(reader, record)[1][0]
        assert verify(reader, reader.run("nb-1"))["ok"] is False


# marks


def test_rerun_marks_the_step_and_tells_how_to_go_on(lab: Lab) -> None:
    lab.complete("load")
    assert "runs again" in marks.rerun(lab.store, lab.run, "load")
    assert lab.states()["load"] == "stale"


def test_rerun_of_unknown_step_is_refused(lab: Lab) -> None:
    with pytest.raises(NotFound, match="no step 'nope'"):
        marks.rerun(lab.store, lab.run, "nope")


def test_rerun_and_after_marks_all_that_follow_and_is_in_the_history(lab: Lab) -> None:
    reader, run_id = Reader(lab.store), lab.run.run_id
    names = [step.name for step in reader.plan(run_id).steps]
    before, *rest = names
    said = marks.rerun(lab.store, lab.run, rest[0], and_after=True)
    assert all(name in said for name in rest)
    assert not reader.mark(run_id, before).rerun
    assert all(reader.mark(run_id, name).rerun for name in rest)
    _, line = reader.history(run_id)[-1]
    assert (line.kind, line.detail) == ("rerun", {"steps": rest})


def test_rerun_keeps_what_was_accepted(lab: Lab) -> None:
    set_mark(lab.store, lab.run.run_id, "load", lambda _: Mark(accepted=("c1",)))
    marks.rerun(lab.store, lab.run, "load")
    assert Reader(lab.store).mark(lab.run.run_id, "load").accepted == ("c1",)


def test_accept_of_step_without_record_is_refused(lab: Lab) -> None:
    with pytest.raises(NotFound, match="no record"):
        marks.accept(lab.store, lab.run, "load")


def test_accept_without_notebook_asks_for_it(lab: Lab) -> None:
    lab.complete("load")
    with pytest.raises(NotFound, match=r"--notebook"):
        marks.accept(lab.store, lab.run, "load")


def test_accept_keeps_an_asked_rerun_and_counts_once(lab: Lab, tmp_path: Path) -> None:
    lab.complete("load")
    set_mark(lab.store, lab.run.run_id, "load", lambda _: Mark(rerun="me"))
    notebook = a_notebook(tmp_path, "%%step load\nx = 2")
    assert "unchanged" in marks.accept(lab.store, lab.run, "load", notebook)
    assert "nothing to do" in marks.accept(lab.store, lab.run, "load", notebook)
    mark = lab.reader.mark(lab.run.run_id, "load")
    assert (mark.rerun, len(mark.accepted)) == ("me", 1)


def test_rerun_that_is_asked_for_while_code_is_accepted_stands(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def between(*given: Any) -> None:
        marks.rerun(lab.store, lab.run, "load")
        set_mark(*given)

    lab.complete("load")
    monkeypatch.setattr(marks, "set_mark", between)
    marks.accept(lab.store, lab.run, "load", a_notebook(tmp_path, "%%step load\nx = 2"))
    mark = lab.reader.mark(lab.run.run_id, "load")
    assert (bool(mark.rerun), len(mark.accepted)) == (True, 1)


def test_rerun_names_the_run_that_it_marked(lab: Lab) -> None:
    run = replace(lab.run, notebook="my etl.ipynb")
    said = marks.rerun(lab.store, run, "load")
    assert said.endswith(f"Then: nbckpt run 'my etl.ipynb' --run-id {run.run_id}")


# plan: predictions agree with what a run does

CELLS = (
    "%load_ext nbckpt\nimport os\nT = 5",
    "%%step a\nx = T + 1",
    "%%step b --writes b.txt\ny = x + 1\nopen('b.txt', 'w').write(str(y))",
    "%%step c\nz = 5",
)


def edited(notebook: Path, old: str, new: str) -> None:
    text = notebook.read_text()
    assert old in text
    notebook.write_text(text.replace(old, new))


def test_plan_of_notebook_without_store_predicts_run_and_makes_none(
    tmp_path: Path,
) -> None:
    notebook = a_notebook(tmp_path, *CELLS)
    before = snapshot(tmp_path)
    found = predicted(notebook)
    assert set(found.values()) == {("run", "it has no record yet")}
    assert snapshot(tmp_path) == before


def test_plan_agrees_with_run_cold_warm_edited_and_with_a_file_gone(
    tmp_path: Path,
) -> None:
    """Each prediction but *unknown* is what the run after it does; planning writes nothing."""
    notebook = a_notebook(tmp_path, *CELLS)
    changes = [
        ({"a": "run", "b": "run", "c": "run"}, lambda: None),
        ({"a": "skip", "b": "skip", "c": "skip"}, lambda: None),
        (
            {"a": "skip", "b": "run", "c": "skip"},
            lambda: edited(notebook, "x + 1", "x + 2"),
        ),
        ({"a": "skip", "b": "run", "c": "skip"}, (tmp_path / "b.txt").unlink),
        (
            {"a": "run", "b": "unknown", "c": "skip"},
            lambda: edited(notebook, "T = 5", "T = 6"),
        ),
    ]
    for expected, change in changes:
        change()
        before = snapshot(tmp_path)
        assert words(notebook) == expected
        assert snapshot(tmp_path) == before
        ran, skipped = run_all(notebook)
        assert {step for step, word in expected.items() if word == "run"} <= ran
        assert {step for step, word in expected.items() if word == "skip"} <= skipped


def test_plan_names_the_input_that_a_plain_cell_writes_out(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, *CELLS)
    run_all(notebook)
    edited(notebook, "T = 5", "T = 6")
    assert predicted(notebook)["a"] == ("run", "input 'T' changed")


def test_plan_names_the_file_that_changed(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1")
    body = "%%step a --reads in.csv\nx = open('in.csv').read()"
    notebook = a_notebook(tmp_path, "%load_ext nbckpt", body)
    run_all(notebook)
    (tmp_path / "in.csv").write_text("2")
    assert predicted(notebook)["a"] == ("run", "file 'in.csv' changed")
    assert run_all(notebook) == ({"a"}, set())


def test_plan_knows_that_an_edited_step_needs_the_file_as_it_was_before(
    tmp_path: Path,
) -> None:
    """What an edited step appended to is made anew by the steps above it."""
    one = "%%step one\nwith open('log', 'w') as f: f.write('1')"
    two = "%%step two\nwith open('log', 'a') as f: f.write('2')"
    notebook = a_notebook(tmp_path, "%load_ext nbckpt", one, two)
    run_all(notebook)
    assert words(notebook) == {"one": "skip", "two": "skip"}
    edited(notebook, "write('2')", "write('3')")
    assert words(notebook) == {"one": "run", "two": "run"}
    assert run_all(notebook) == ({"one", "two"}, set())
    assert (tmp_path / "log").read_text() == "13"


def test_plan_takes_an_accepted_code_change_as_none(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, *CELLS)
    run_all(notebook)
    edited(notebook, "z = 5", "z = 2 + 3")
    assert predicted(notebook)["c"] == ("run", "its code changed")
    with changing(tmp_path / ".nbckpt") as store:
        marks.accept(store, Reader(store).run("nb-1"), "c")
    assert predicted(notebook)["c"] == ("skip", "its code change was accepted")
    assert "c" in run_all(notebook)[1]


def test_plan_predicts_a_rerun_that_was_asked_for(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, *CELLS)
    run_all(notebook)
    with changing(tmp_path / ".nbckpt") as store:
        marks.rerun(store, Reader(store).run("nb-1"), "c")
    word, reason = predicted(notebook)["c"]
    assert word == "run"
    assert reason.startswith("asked for")
    assert run_all(notebook) == ({"c"}, {"a", "b"})
    assert words(notebook)["c"] == "skip"


def test_plan_does_not_guess_what_a_clock_gives(tmp_path: Path) -> None:
    plain = "%load_ext nbckpt\nimport time\nSTARTED = time.time()"
    notebook = a_notebook(tmp_path, plain, "%%step a\nx = STARTED")
    run_all(notebook)
    word, reason = predicted(notebook)["a"]
    assert word == "unknown"
    assert "'STARTED'" in reason


def test_plan_of_always_step_predicts_run(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, "%load_ext nbckpt", "%%step a --always\nx = 1")
    run_all(notebook)
    assert predicted(notebook)["a"] == ("run", "it is marked --always")


def test_plan_tells_checks_files_and_effects_of_each_step(tmp_path: Path) -> None:
    line = "%%step a --reads r.csv --writes w.csv --check 'x > 0' --effects mail\nx = 1"
    notebook = a_notebook(tmp_path, line)
    with looking(tmp_path / ".nbckpt") as reader:
        found = planning.plan_notebook(reader, notebook)
    step = found["steps"][0]
    assert (step["reads"], step["writes"]) == (["r.csv"], ["w.csv"])
    assert (step["checks"], step["effects"]) == (["x > 0"], ["mail"])
    assert "w.csv" in pages.plain(planning.plan_page(found))


def test_plan_of_run_whose_notebook_is_gone_predicts_nothing(lab: Lab) -> None:
    found = planning.plan_run(lab.reader, lab.run)
    assert {step["prediction"] for step in found["steps"]} == {"unknown"}


def test_plan_goes_on_with_the_others_where_one_step_line_is_wrong(
    tmp_path: Path,
) -> None:
    cells = ("%%step a\nx = 1", "%%step b --chekc x\ny = x", "%%step c\nz = x")
    notebook = a_notebook(tmp_path, *cells)
    assert set(words(notebook)) == {"a", "c"}
    with looking(tmp_path / ".nbckpt") as reader:
        found = planning.plan_notebook(reader, notebook)
    told = pages.plain(planning.plan_page(found))
    assert "note: it stops at code cell 2 (%%step b --chekc x): unrec" in told
    assert "--check" in told


def test_accept_names_a_wrong_line_if_it_does_not_find_the_step(lab: Lab) -> None:
    notebook = a_notebook(lab.folder, "%%step fit\nx = 1", "%%step load --chekc x")
    lab.complete("load")
    lab.complete("fit")
    with pytest.raises(NotFound) as caught:
        marks.accept(lab.store, lab.run, "load", notebook)
    assert "Its steps: fit. Wrong: code cell 2" in caught.value.remedy
    assert "counts as unchanged" in marks.accept(lab.store, lab.run, "fit", notebook)


# the outline of a notebook


def parse(source: str) -> list[Any]:
    import ast

    return ast.parse(source).body


def origins(*plain: str) -> dict[str, Any]:
    return outline([*plain, "%%step s\npass"], parse)[0].origins


def test_literal_of_plain_cell_is_known_until_code_touches_it() -> None:
    assert origins("T = [1]")["T"].literal == [1]
    assert origins("T = [1]", "T.append(2)")["T"].literal is MISSING
    assert origins("T = 5", "print(T)")["T"].literal == 5


def test_clock_taints_what_is_computed_from_it() -> None:
    found = origins("import time\na = time.time()", "b = a + 1", "c = 3")
    assert (found["a"].volatile, found["b"].volatile) == (True, True)
    assert (found["c"].volatile, found["time"].volatile) == (False, False)


def test_clock_inside_a_notebook_function_taints_its_callers() -> None:
    found = origins("import time\ndef now(): return time.time()", "a = now()")
    assert found["a"].volatile is True


def test_chance_is_steady_once_the_notebook_seeds_it() -> None:
    assert origins("import random\na = random.random()")["a"].volatile is True
    seeded = origins("import random\nrandom.seed(1)\na = random.random()")
    assert seeded["a"].volatile is False


def test_name_computed_from_a_steps_name_rests_on_that_step() -> None:
    cells = ["%%step one\nx = 1", "y = x + 1", "%%step two\nz = y"]
    assert outline(cells, parse)[1].origins["y"].steps == {"one"}


# the start line


def test_start_line_of_a_notebook_is_found_with_its_options() -> None:
    source = "%load_ext nbckpt\n%nbckpt start orders-1 --version 3 --fresh  # why"
    assert find_start(["x = 1", source]) == Wish("orders-1", "3", "skip", fresh=True)
    assert find_start(["x = 1"]) == Wish()


@pytest.mark.parametrize("line", [["--overlap", "maybe"], ["--nope"], ["a", "b"]])
def test_wrong_start_line_is_refused_with_an_example(line: list[str]) -> None:
    with pytest.raises(BadStep, match="Write for example: %nbckpt start"):
        read_start(line)


# in a notebook


class Kernel:
    """What a verb needs of a kernel's session."""

    is_held = False

    def __init__(self, store: Store, notebook: Path | None = None) -> None:
        self.store = store
        self.namespace: dict[str, Any] = {}
        self.wish = Wish()
        self.begun: list[Wish] = []
        stem = notebook.stem if notebook else "etl"
        self.identity = type("Identity", (), {"notebook": notebook, "stem": stem})()

    def open_store(self) -> Store:
        return Store(self.store.folder, self.store.secret)

    def begin(self, wish: Wish) -> None:
        self.begun.append(wish)


def call(lab: Lab, line: str) -> str:
    said = in_notebook(Kernel(lab.store), line)  # type: ignore[arg-type]
    return said if isinstance(said, str) else said.text()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("status", "run etl-1"),
        ("status etl-1", "run etl-1"),
        ("plan etl-1", "load"),
        ("show load", "step load"),
        ("explain load --run etl-1", "step load"),
        ("runs", "etl-1"),
        ("verify", "as recorded"),
        ("rerun load", "runs again"),
        ("gc", "removed"),
        ("trust", "yours already"),
    ],
)
def test_verb_in_a_notebook_answers(lab: Lab, line: str, expected: str) -> None:
    lab.complete("load")
    assert expected in call(lab, line)


def test_start_in_a_notebook_is_silent_and_hands_over_the_wish(lab: Lab) -> None:
    kernel = Kernel(lab.store)
    assert in_notebook(kernel, "start r-1 --version 2") == ""  # type: ignore[arg-type]
    assert kernel.begun == [Wish("r-1", "2")]


def test_json_in_a_notebook_is_that_of_the_shell(lab: Lab) -> None:
    assert json.loads(call(lab, "runs --json"))[0]["run"] == "etl-1"


@pytest.mark.parametrize("line", ["", "frobnicate"])
def test_wrong_verb_names_the_verbs_with_an_example(lab: Lab, line: str) -> None:
    with pytest.raises(BadStep, match=r"Verbs: start, status.*Write for example"):
        call(lab, line)


def test_each_command_is_a_verb_of_the_notebook_or_named_as_one_of_the_shell() -> None:
    commands = {command.name for family in FAMILIES.values() for command in family}
    assert commands == {*VERBS, *SHELL_VERBS} - {"start"}


@pytest.mark.parametrize("line", ["monitor --once", "import etl-1.nbckpt --trust"])
def test_verb_of_the_shell_is_refused_with_the_command_to_write(
    lab: Lab, line: str
) -> None:
    with pytest.raises(BadStep, match=f"command of the shell.*!nbckpt {line}$"):
        call(lab, line)


@pytest.mark.parametrize("line", ["status --nope", "show", "explain a b c", "show 'a"])
def test_wrong_option_in_a_notebook_is_refused(lab: Lab, line: str) -> None:
    with pytest.raises(BadStep):
        call(lab, line)


def test_accept_in_a_kernel_that_knows_no_file_says_so(lab: Lab) -> None:
    lab.complete("load")
    with pytest.raises(NotFound, match="does not know its notebook"):
        call(lab, "accept load")


# foreign stores


def foreign(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Close the lab's store and be another user from now on."""
    lab.complete("load", evidence=Evidence(checks=("touch()",)))
    lab.store.close()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "other"))
    load_secret()
    return lab.store.folder


def test_foreign_store_is_shown_and_said_to_be_not_authenticated(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = foreign(lab, monkeypatch, tmp_path)
    with looking(folder) as reader:
        found = status.status(reader, choose_run(reader))
    assert found["store"]["authenticated"] is False
    assert "not authenticated" in pages.plain(overview.status_page(found))


def test_check_of_foreign_store_is_never_evaluated(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = foreign(lab, monkeypatch, tmp_path)
    called: list[int] = []
    names = {"touch": lambda: called.append(1) or True}
    with looking(folder) as reader:
        found = verify(reader, choose_run(reader), names)
    assert found["steps"][0]["checks"][0]["state"] == "needs the kernel"
    assert called == []


def test_foreign_store_is_not_written(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = foreign(lab, monkeypatch, tmp_path)
    with pytest.raises(StoreRefused, match="nbckpt trust"), changing(folder) as store:
        marks.rerun(store, Reader(store).run("etl-1"), "load")


def test_record_of_unknown_form_in_foreign_store_is_one_clear_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = f"run/{lab.run.run_id}"
    lab.store.transact(lambda transaction: transaction.put(key, {"evil": 1}))
    folder = foreign(lab, monkeypatch, tmp_path)
    with pytest.raises(StoreDamaged, match="Nothing of it"), looking(folder) as reader:
        reader.runs()


def test_trusted_store_is_the_users_own_with_every_record(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = foreign(lab, monkeypatch, tmp_path)
    assert make_own(folder, load_secret()) > 0
    assert make_own(folder, load_secret()) == 0
    with changing(folder) as store:
        assert store.trusted is True
        assert Reader(store).step("etl-1", "load") is not None
        marks.rerun(store, Reader(store).run("etl-1"), "load")


def test_trust_of_folder_open_to_others_is_refused_and_changes_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = foreign(lab, monkeypatch, tmp_path)
    folder.chmod(0o777)
    before = snapshot(folder)
    with pytest.raises(StoreRefused, match="open to group or others"):
        make_own(folder, load_secret())
    assert snapshot(folder) == before


def test_trust_takes_back_all_when_a_row_is_not_ours(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import sqlite3

    folder = foreign(lab, monkeypatch, tmp_path)
    database = folder / "records" / "cache.db"
    connection = sqlite3.connect(database)
    key = f"plan/{lab.run.run_id}"
    connection.execute("UPDATE Cache SET mode = 4 WHERE key = ?", (key,))
    connection.commit()
    rows = connection.execute("SELECT value FROM Cache ORDER BY rowid").fetchall()
    with pytest.raises(StoreDamaged, match="did not write"):
        make_own(folder, load_secret())
    assert (
        connection.execute("SELECT value FROM Cache ORDER BY rowid").fetchall() == rows
    )
    connection.close()


def test_trust_of_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no store"):
        make_own(tmp_path / "none", Secret(b"x" * 32))


# loading


def test_looking_verb_loads_no_codec_until_one_is_needed() -> None:
    code = (
        "import sys, nbckpt.cli\n"
        "assert 'cloudpickle' not in sys.modules and 'asyncio' not in sys.modules\n"
        "nbckpt.cli.looking.planning.plan_notebook\n"
        "assert 'cloudpickle' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_late_module_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(ImportError, match="nothing_such"):
        late("nbckpt.nothing_such")


# text


def test_text_of_a_store_cannot_steer_a_terminal() -> None:
    assert "\x1b" not in pages.plain(
        ["\x1b[2Jgone", pages.Table(("a",), [("\x1b]0;x",)])]
    )


def test_columns_stand_under_each_other() -> None:
    table = pages.Table(("#", "step"), [("1", "a"), ("10", "b")])
    assert pages.plain([table]) == "#   step\n1   a\n10  b"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (59, "59.0 s"),
        (90, "1 min 30 s"),
        (3660, "1 h 1 min"),
        (90000, "1 d 1 h"),
    ],
)
def test_duration_has_two_units_at_most(seconds: float, text: str) -> None:
    assert pages.duration(seconds) == text


def test_size_names_the_largest_unit_that_fits() -> None:
    assert [pages.size(n) for n in (999, 1500, 2_000_000, 3 * 10**12)] == [
        "999 B",
        "1.5 kB",
        "2.0 MB",
        "3.0 TB",
    ]


def test_long_list_of_names_is_cut_short() -> None:
    assert pages.listed(list("abc"), 2) == "a, b and 1 more"
    assert pages.listed([]) == "-"
