"""What a monitor sees of a store, says, and remembers."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli, places
from nbckpt.errors import BadStep, NotFound
from nbckpt.records import Lease, PlannedStep, PlanRecord, Question, RunRecord, RunState
from nbckpt.runs.absence import Watched
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.runs.leases import Leases
from nbckpt.runs.opening import open_run
from nbckpt.runs.processes import this_process
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.serve import alerting, remembering
from nbckpt.verbs.serve.alerting import channels
from nbckpt.verbs.serve.monitoring import Monitor, Report, Watching
from nbckpt.verbs.serve.remembering import Memory
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GRACE = 60.0


class Room:
    """A store with one run, and a monitor of it in the same process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".nbckpt"
        self.store = Store(self.folder, load_secret())
        self.run = open_run(self.store, "etl", RunRecord("", "etl.ipynb"))
        self.now = 1000.0
        self.told: list[Report] = []
        self.shown: list[Report] = []
        self.takes = True

    def monitor(self, *targets: str, name: str = "") -> Monitor:
        watching = Watching(self.folder, targets, GRACE)
        memory = Memory(self.folder, name)
        return Monitor(watching, memory, self._deliver, self.shown.append)

    def _deliver(self, report: Report) -> bool:
        self.told.append(report)
        return self.takes

    def look(self, monitor: Monitor, after: float = 0.0) -> dict[str, str]:
        """Look, and return run → word."""
        self.now += after
        return {report["target"]: report["word"] for report in monitor.look(self.now)}

    def hold(self, run_id: str = "etl-1", **more: Any) -> None:
        """Let a holder of another process have a run."""
        holder = replace(this_process(), **{"pid": 2**22 + 1, "ticks": 7, **more})
        lease = Lease(3, holder, 7, time.time() - 999, taken_at=1.0).to_json()
        self.store.transact(lambda tx: tx.put(f"lease/{run_id}", lease))

    def put(self, key: str, value: Any) -> None:
        self.store.transact(lambda tx: tx.put(key, value))


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    found = Room(tmp_path)
    yield found
    found.store.close()


def test_dead_holder_is_alerted_once_by_looks_that_remember_nothing_of_each_other(
    room: Room,
) -> None:
    """As from cron: each look is a monitor of its own."""
    room.hold()
    for _ in range(3):
        assert room.look(room.monitor("etl-1"), 600) == {"etl-1": "dead"}
    (report,) = room.told
    assert report["news"] == "alert"
    assert "is dead" in report["text"]
    assert "nbckpt run etl.ipynb --run-id etl-1" in report["text"]
    hold = Leases(room.store).hold("etl-1")
    assert room.look(room.monitor("etl-1"), 600) == {"etl-1": "alive"}
    hold.release()
    assert [report["news"] for report in room.told] == ["alert", "recovered"]


def test_two_monitors_that_tell_at_two_places_alert_each_for_itself(
    room: Room,
) -> None:
    room.hold()
    room.look(room.monitor("etl-1", name="mail"))
    room.look(room.monitor("etl-1", name="chat"))
    room.look(room.monitor("etl-1", name="mail"))
    assert len(room.told) == 2


def test_alert_that_nobody_took_is_made_again(room: Room) -> None:
    room.hold()
    room.takes = False
    monitor = room.monitor("etl-1")
    room.look(monitor)
    room.takes = True
    for _ in range(3):
        room.look(monitor, 10)
    assert len(room.told) == 2


def test_hung_process_is_late_and_its_step_is_named(room: Room) -> None:
    """This very process holds the run, and no beat of it moves."""
    journal = Journal(room.store, "etl-1", 3, lambda _: None)
    journal.write_plan(PlanRecord((PlannedStep(1, "load", "code"),), "notebook"))
    journal.start("load", "no record", writes=(), durable=True)
    room.hold(pid=os.getpid(), ticks=this_process().ticks)
    assert room.look(room.monitor()) == {"etl-1": "late"}
    (report,) = room.told
    assert "no sign of life" in report["text"]
    assert "step load running" in report["text"]


def test_holder_elsewhere_is_dead_when_it_stays_silent(room: Room) -> None:
    room.hold(host="far-away")
    monitor = room.monitor()
    assert room.look(monitor) == {"etl-1": "alive"}
    assert room.look(monitor, 61) == {"etl-1": "dead"}
    assert "on far-away" in room.told[0]["text"]


def test_wait_is_told_with_the_command_that_ends_it(room: Room) -> None:
    journal = Journal(room.store, "etl-1", 3, lambda _: None)
    journal.write_plan(PlanRecord((PlannedStep(1, "ask", "code"),), "notebook"))
    journal.start("ask", "no record", writes=(), durable=True)
    attempt = Reader(room.store).attempt("etl-1", "ask")
    assert attempt is not None
    room.put("attempt/etl-1/ask", {**attempt.to_json(), "state": "waiting"})
    asked = Question("etl-1", "ask", "", "q1", "Go on?", ("yes", "no"), asked_at=1.0)
    room.put("question/etl-1/ask/q1", asked.to_json())
    room.put("effect/etl-1/ask/k", {"state": "intent", "name": "pay", "key": "k-1"})
    hold = Leases(room.store).hold("etl-1")
    hold.release()
    assert room.look(room.monitor()) == {"etl-1": "waiting"}
    assert "to answer: nbckpt answer" in room.told[0]["text"]
    assert "to settle: nbckpt resolve etl-1 k-1 --done" in room.told[0]["text"]


def test_run_that_was_never_begun_is_told_after_the_grace(room: Room) -> None:
    monitor = room.monitor("nightly-1", "nightly.ipynb")
    never = dict.fromkeys(("nightly-1", "nightly.ipynb"), "never started")
    assert room.look(monitor) == never
    assert room.told == []
    assert room.look(monitor, 60) == never
    assert [report["run"] for report in room.told] == ["", ""]


def test_notebook_means_the_run_that_it_is_in_now(room: Room) -> None:
    """Last night's alert is over when the next night's run is alive."""
    room.hold()
    monitor = room.monitor("etl.ipynb")
    assert room.look(monitor) == {"etl.ipynb": "dead"}
    fresh = open_run(room.store, "etl", RunRecord("", "etl.ipynb"), fresh=True)
    hold = Leases(room.store).hold(fresh.run_id)
    assert room.look(monitor, 10) == {"etl.ipynb": "alive"}
    hold.release()
    assert [(r["run"], r["news"]) for r in room.told] == [
        ("etl-1", "alert"),
        ("etl-2", "recovered"),
    ]


def test_without_names_what_is_current_or_held_is_watched(room: Room) -> None:
    """An old run that somebody left long ago is nobody's worry; one that is held is."""
    room.hold()
    for _ in range(2):
        open_run(room.store, "etl", RunRecord("", "etl.ipynb"), fresh=True)
    hold = Leases(room.store).hold("etl-2")
    monitor = room.monitor()
    assert room.look(monitor) == {"etl-2": "alive", "etl-3": "never started"}
    hold.release()
    # Seen in trouble once, it stays watched until it is well.
    room.hold("etl-2", pid=os.getpid(), ticks=this_process().ticks)
    assert room.look(monitor, 61)["etl-2"] == "late"
    room.hold("etl-2")
    assert room.look(monitor, 61)["etl-2"] == "dead"
    assert "etl-1" not in room.look(monitor)


def test_store_that_can_not_be_read_is_the_monitors_trouble(room: Room) -> None:
    hold = Leases(room.store).hold("etl-1")
    monitor = room.monitor()
    assert room.look(monitor) == {"etl-1": "alive"}
    room.folder.chmod(0o777)
    assert room.look(monitor, 10) == {"etl-1": "can't tell"}
    assert room.told == []
    assert room.look(monitor, 60) == {"etl-1": "can't tell"}
    assert "this monitor can't read its store" in room.told[0]["text"]
    assert "open to group" in room.told[0]["text"]
    room.folder.chmod(0o700)
    room.store.transact(hold._beat)
    assert room.look(monitor, 10) == {"etl-1": "alive"}
    assert room.told[-1]["news"] == "recovered"
    hold.release()


def test_store_that_is_not_there_is_refused_unless_a_run_is_named(
    room: Room, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere"
    watching = Watching(nowhere, (), GRACE)
    memory = Memory(nowhere, "")
    monitor = Monitor(watching, memory, room._deliver, room.shown.append)
    with pytest.raises(NotFound, match="there is no store"):
        monitor.look(1.0)
    named = replace(watching, targets=("etl-1",))
    monitor = Monitor(named, memory, room._deliver, room.shown.append)
    assert room.look(monitor) == {"etl-1": "never started"}
    assert not nowhere.exists()


def test_each_run_is_shown_once_and_then_only_its_news(room: Room) -> None:
    hold = Leases(room.store).hold("etl-1")
    monitor = room.monitor()
    for _ in range(3):
        room.look(monitor, 1)
    hold.release()
    room.hold()
    room.look(monitor, 100)
    assert [(r["word"], r["news"]) for r in room.shown] == [
        ("alive", ""),
        ("dead", "alert"),
    ]


def test_monitor_of_named_runs_ends_when_they_are_finished(room: Room) -> None:
    run = Reader(room.store).run("etl-1")
    room.put("run/etl-1", replace(run, state=RunState.FINISHED).to_json())
    assert room.monitor("etl-1").go_on() == 0


def test_one_look_says_by_its_code_whether_somebody_is_needed(room: Room) -> None:
    hold = Leases(room.store).hold("etl-1")
    assert room.monitor("etl-1").once() == 0
    assert room.monitor("etl-1", "nightly.ipynb").once() == 1
    hold.release()


# what is remembered


def test_memory_of_another_boot_keeps_only_what_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Watched((3, 7), 5.0, 9.0, "dead", 6.0, ("silent",))
    Memory(tmp_path, "").keep({"etl-1": known})
    assert Memory(tmp_path, "").watched == {"etl-1": known}
    other = replace(this_process(), boot="another")
    monkeypatch.setattr(remembering, "this_process", lambda: other)
    assert Memory(tmp_path, "").watched == {"etl-1": Watched(told=("silent",))}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"boot": 1}', '{"watched": {"a": 1}}']
)
def test_memory_that_is_damaged_is_none(tmp_path: Path, text: str) -> None:
    memory = Memory(tmp_path, "")
    memory.keep({})
    memory._path.write_text(text)
    assert Memory(tmp_path, "").watched == {}


def test_memory_that_can_not_be_kept_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(places, "write_whole", full)
    memory = Memory(tmp_path, "")
    for _ in range(2):
        memory.keep({"etl-1": Watched()})
    err = capsys.readouterr().err
    assert err.count("No space left") == 1
    assert "alert again" in err
    assert list(memory.watched) == ["etl-1"]


# where it is told

REPORT = Report(
    target="etl-1", run="etl-1", word="dead", news="alert", text="it is dead", at=1.0
)


def test_command_gets_the_text_and_what_it_is_about(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = (
        "import os, sys; open(sys.argv[1], 'w').write(sys.stdin.read() + "
        "' '.join(os.environ['NBCKPT_ALERT' + n] for n in ('', '_RUN', '_WORD')))"
    )
    lines: list[str] = []
    to = channels(f'{sys.executable} -c "{code}" {said}', "", lines.append)
    assert to.deliver(REPORT)
    assert said.read_text() == "it is dead\nalert etl-1 dead"
    assert lines == []


def test_text_that_can_not_be_encoded_stops_no_alert() -> None:
    report = {**REPORT, "text": "no file \udcff"}
    assert channels("cat", "", print).deliver(report)


def test_url_gets_the_report_as_json() -> None:
    service = Receiver()
    assert channels("", f"{service.base}/hook", print).deliver(REPORT)
    service.close()
    assert service.asked == ["POST /hook"]
    assert json.loads(service.bodies[0]) == REPORT


@pytest.mark.parametrize(
    ("command", "why"),
    [("false", "ended with 1"), ("/no/such/program", "No such file")],
)
def test_command_that_fails_did_not_take_the_alert(command: str, why: str) -> None:
    lines: list[str] = []
    assert not channels(command, "", lines.append).deliver(REPORT)
    assert why in lines[0]


def test_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerting, "COMMAND_SECONDS", 0.1)
    lines: list[str] = []
    assert not channels("sleep 60", "", lines.append).deliver(REPORT)
    assert "did not end" in lines[0]


def test_one_channel_that_took_it_is_enough() -> None:
    service, lines = Receiver(), list[str]()
    assert channels("false", service.base, lines.append).deliver(REPORT)
    service.close()
    assert len(lines) == 1


def test_without_a_channel_the_output_is_enough() -> None:
    assert channels("", "", print).deliver(REPORT)


@pytest.mark.parametrize(
    ("command", "url", "what"),
    [("mail 'me", "", "alert-command"), ("", "ftp://h", "no http or https")],
)
def test_channel_that_can_not_work_is_refused_at_once(
    command: str, url: str, what: str
) -> None:
    with pytest.raises(BadStep, match=what):
        channels(command, url, print)


# the command


def monitored(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        cli.main(["monitor", *arguments])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err


def test_command_prints_one_json_object_for_each_run(
    room: Room,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    room.hold()
    code, out, err = monitored(capsys, "--once", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out).keys() == {"schema_version", *Report.__annotations__}
    assert json.loads(out)["word"] == "dead"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--grace", "10s"], "too short"),
        (["--grace", "soon"], "no duration"),
        (["a/x.ipynb", "b/y.ipynb"], "several stores"),
        (["--alert-url", "localhost"], "no http"),
    ],
)
def test_wrong_order_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
) -> None:
    code, out, err = monitored(capsys, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert what in err
