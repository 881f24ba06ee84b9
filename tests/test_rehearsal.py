"""Rehearsals: what is reported of notebooks that repeat well, and of those that don't."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import cli
from nbckpt.errors import BadStep
from nbckpt.headless import rehearsal, scratch
from nbckpt.headless.document import make_copy
from nbckpt.headless.passes import End
from nbckpt.headless.rehearsal import Rehearsal, rehearsal_page, rehearse
from nbckpt.headless.scratch import State
from nbckpt.records import Event
from nbckpt.verbs.forms import pages
from tests.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOAD = "%load_ext nbckpt\nimport os, pathlib, random, urllib.request"
LOG = "%%step log\nwith open('log.txt', 'a') as f:\n    n = f.write('one\\n')"
DRAW = "%%step draw\nx = random.random()"
POST = "%%step pay\nsaid = urllib.request.urlopen(BASE + '/paid', b'x').read()"
GET = "%%step look\nsaid = urllib.request.urlopen(BASE + '/price').read()"
FILE = "%%step file --writes out.txt\nn = pathlib.Path('out.txt').write_text(str(said))"
THROUGH = End("completed", 3)


def a_notebook(folder: Path, *sources: str) -> Path:
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
    path = folder / "nb.ipynb"
    path.write_text(json.dumps(data))
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


# real notebooks, real kernels, real kills


@pytest.fixture(scope="module")
def wrong(receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Rehearsal:
    """Rehearse once for several tests: each step is wrong in a way of its own."""
    folder = tmp_path_factory.mktemp("wrong")
    base = f"BASE = {receiver.base!r}"
    notebook = a_notebook(folder, f"{LOAD}\n{base}", LOG, DRAW, POST)
    found = rehearse(notebook, lambda _: None, timeout=120)
    assert sorted(path.name for path in folder.iterdir()) == ["nb.ipynb"]
    return found


def told(data: Rehearsal, kind: str) -> list[tuple[str, str]]:
    return [(f["step"], f["when"]) for f in data["findings"] if f["kind"] == kind]


class TestWrongNotebook:
    """Rehearsed once, on one worker."""

    def test_file_that_is_appended_to_is_reported_twice_and_where_killed(
        self, wrong: Rehearsal
    ) -> None:
        assert told(wrong, "file") == [
            ("", "twice"),
            ("", "killed before the record of log"),
        ]
        words = [f["what"] for f in wrong["findings"] if f["kind"] == "file"]
        assert words[0] == "file log.txt has grown from 4 to 8 bytes: written twice?"

    def test_unseeded_draw_is_reported_once_as_another_value(
        self, wrong: Rehearsal
    ) -> None:
        """Chance is no work of a kill."""
        assert told(wrong, "value") == [("draw", "twice")]

    def test_post_that_nothing_guards_is_reported_as_doubled(
        self, wrong: Rehearsal
    ) -> None:
        assert told(wrong, "effect") == [
            ("pay", "twice"),
            ("pay", "killed before the record of pay"),
        ]
        words = [f["what"] for f in wrong["findings"] if f["kind"] == "effect"]
        assert words == [
            "POST /paid was sent again (1 more)",
            "POST /paid was doubled (1 more)",
        ]

    def test_nothing_else_is_reported_and_each_boundary_was_tried(
        self, wrong: Rehearsal
    ) -> None:
        assert len(wrong["findings"]) == 5
        assert (wrong["ok"], wrong["kills"]) == (False, 6)
        assert wrong["steps"] == ["log", "draw", "pay"]


def test_notebook_that_repeats_well_is_clean_and_knows_that_it_is_rehearsed(
    receiver: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = f"BASE = {receiver.base!r}\nassert os.environ['NBCKPT_REHEARSAL'] == '1'"
    notebook = a_notebook(tmp_path, f"{LOAD}\n{base}", GET, FILE)
    with pytest.raises(SystemExit) as left:
        cli.main(["rehearse", str(notebook), "--timeout", "2m", "--json"])
    out, err = capsys.readouterr()
    data = json.loads(out)

    assert int(left.value.code or 0) == 0, data["findings"]
    assert (data["ok"], data["kills"], data["scratch"]) == (True, 4, "")
    assert "killed before the record of file" in err
    assert not (tmp_path / "out.txt").exists()
    assert not (tmp_path / ".nbckpt").exists()


def test_post_that_an_effect_performs_is_not_doubled(
    receiver: Receiver, tmp_path: Path
) -> None:
    pay = (
        "%%step pay --effects payments\n"
        "def perform(key):\n"
        "    return urllib.request.urlopen(BASE + '/kept', b'x').read().decode()\n"
        "said = nbckpt.effect('charge-1', perform=perform, dedup='24h')"
    )
    load = f"{LOAD}\nimport nbckpt\nBASE = {receiver.base!r}"
    found = rehearse(a_notebook(tmp_path, load, pay), lambda _: None, timeout=120)

    assert found["findings"] == []
    assert found["kills"] == 2
    # Once in each of the three passes that begin without a store.
    assert receiver.asked.count("POST /kept") == 3


def test_effect_whose_name_moves_is_reported(
    receiver: Receiver, tmp_path: Path
) -> None:
    pay = (
        "%%step pay --effects payments\n"
        "def perform(key):\n"
        "    return urllib.request.urlopen(BASE + '/moved', b'x').read().decode()\n"
        "name = f'charge-{random.getrandbits(64)}'\n"
        "said = nbckpt.effect(name, perform=perform, dedup='24h')"
    )
    load = f"{LOAD}\nimport nbckpt\nBASE = {receiver.base!r}"
    found = rehearse(a_notebook(tmp_path, load, pay), lambda _: None, timeout=120)

    words = [f["what"] for f in found["findings"] if f["kind"] == "effect"]
    assert "POST /moved was sent again (1 more)" in words
    assert "POST /moved was doubled (1 more)" in words


def test_notebook_that_fails_is_reported_and_not_killed(tmp_path: Path) -> None:
    notebook = a_notebook(tmp_path, LOAD, "%%step a\n1 / 0")
    found = rehearse(notebook, lambda _: None, timeout=120)

    assert (found["ok"], found["kills"]) == (False, 0)
    assert "ZeroDivisionError" in found["findings"][0]["what"]


def test_pass_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    wait = "%%step a\nimport threading\nthreading.Event().wait(300)"
    found = rehearse(a_notebook(tmp_path, LOAD, wait), lambda _: None, timeout=15)

    assert [f["kind"] for f in found["findings"]] == ["stopped"]
    assert "stopped in cell" in found["findings"][0]["what"]


# the comparison, on made-up states


class Script:
    """Stands for a scratch copy; gives the states that it was made with, in order."""

    def __init__(self, *states: State | str) -> None:
        self._states = list(states)
        self.asked: list[str] = []

    def reset(self) -> None:
        self.asked.append("reset")

    def ask_again(self, step: str) -> None:
        self.asked.append(f"again {step}")

    def run(self, change: Any = None) -> tuple[End, State]:
        self.asked.append("run" if change is None else "killed")
        found = self._states.pop(0)
        if isinstance(found, str):
            return End(found, 1, "Oh", "no"), State()  # type: ignore[arg-type]
        return THROUGH, found


def played(*states: State | str, always: set[str] | None = None) -> rehearsal._Stage:
    stage = rehearsal._Stage(Script(*states), ["a"], always or set(), lambda _: None)  # type: ignore[arg-type]
    stage.play()
    return stage


def a_state(**parts: Any) -> State:
    started = [Event(1.0, "started", "a", "it has no record yet")]
    made = {
        "values": {("a", "x"): "d1"},
        "files": {"out.txt": ("f1", 3)},
        "outputs": {"a": ["text"]},
        "started": started,
    }
    return State(**made | parts)


def begun(times: int) -> list[Event]:
    return [Event(1.0, "started", "a", "why")] * times


FINE = (a_state(), a_state(), "died", a_state(started=begun(2)), "died", a_state())


def test_equal_states_are_no_finding() -> None:
    stage = played(*FINE)
    assert (stage.findings, stage.kills) == ([], 2)


def test_chance_is_told_apart_only_if_something_differs() -> None:
    script = Script(*FINE)
    rehearsal._Stage(script, ["a"], set(), lambda _: None).play()  # type: ignore[arg-type]
    assert script.asked == [
        "reset",
        "run",
        "again a",
        "run",
        "reset",
        "killed",
        "run",
        "reset",
        "killed",
        "run",
    ]


@pytest.mark.parametrize(
    ("again", "kind", "what"),
    [
        (a_state(values={("a", "x"): "d2"}), "value", "x has another value"),
        (a_state(values={}), "value", "x has another value"),
        (a_state(files={}), "file", "file out.txt is missing"),
        (a_state(files={"out.txt": ("f2", 6)}), "file", "grown from 3 to 6 bytes"),
        (a_state(files={"out.txt": ("f2", 3)}), "file", "another content"),
        (a_state(outputs={"a": ["other"]}), "output", "its output differs"),
        (a_state(sent=Counter({("a", "mail"): 1})), "effect", "mail was sent again"),
        (a_state(effects={"a/k9"}), "effect", "effect k9 is new the second time"),
    ],
)
def test_difference_of_the_second_time_is_told_by_its_kind(
    again: State, kind: str, what: str
) -> None:
    stage = played(FINE[0], again, a_state(), *FINE[2:])
    assert [(f["kind"], f["when"]) for f in stage.findings] == [(kind, "twice")]
    assert what in stage.findings[0]["what"]


def test_new_file_is_told() -> None:
    files = {"out.txt": ("f1", 3), "more.txt": ("f2", 1)}
    stage = played(FINE[0], a_state(files=files), a_state(), *FINE[2:])
    assert stage.findings[0]["what"] == "file more.txt should not be there"


def test_what_differs_by_chance_is_not_told_of_each_kill() -> None:
    def drawn(digest: str, times: int = 1) -> State:
        return a_state(values={("a", "x"): digest}, started=begun(times))

    stage = played(
        drawn("1"), drawn("2"), drawn("3"), "died", drawn("4", 2), "died", drawn("5")
    )
    assert [f["when"] for f in stage.findings] == ["twice"]


def test_request_that_a_kill_doubled_or_lost_is_told() -> None:
    once = Counter({("a", "POST /a"): 1})
    stage = played(
        a_state(sent=once),
        a_state(sent=once),
        "died",
        a_state(sent=once + once, started=begun(2)),
        "died",
        a_state(),
    )
    assert [(f["kind"], f["what"]) for f in stage.findings] == [
        ("effect", "POST /a was doubled (1 more)"),
        ("lost", "POST /a was lost (1 fewer)"),
    ]


def test_body_that_ran_again_after_its_record_is_told() -> None:
    stage = played(*FINE[:5], a_state(started=begun(2)))
    assert [(f["kind"], f["when"]) for f in stage.findings] == [
        ("ran-again", "killed after a")
    ]
    assert stage.findings[0]["what"] == "its body ran 2 times: why"


def test_body_in_flight_may_run_twice_but_not_three_times() -> None:
    stage = played(*FINE[:3], a_state(started=begun(3)), *FINE[4:])
    assert [f["when"] for f in stage.findings] == ["killed before the record of a"]


def test_step_that_is_never_skipped_may_run_again() -> None:
    assert played(*FINE[:5], a_state(started=begun(2)), always={"a"}).findings == []
    says_so = a_state(started=begun(2), again={"a"})
    assert played(*FINE[:5], says_so).findings == []


def test_kill_that_did_not_happen_is_told() -> None:
    stage = played(*FINE[:2], "completed", "died", a_state())
    assert [f["kind"] for f in stage.findings] == ["stopped"]


def test_resume_that_does_not_get_through_is_told() -> None:
    stage = played(*FINE[:3], "failed", "died", a_state())
    assert [f["what"] for f in stage.findings] == [
        "the notebook failed in cell 1: Oh no"
    ]


@pytest.mark.parametrize("states", [("failed",), (a_state(), "failed")])
def test_without_a_reference_nothing_is_killed(states: tuple[State | str, ...]) -> None:
    stage = played(*states)
    assert (len(stage.findings), stage.kills) == (1, 0)


def test_findings_stand_in_the_order_in_which_they_were_found() -> None:
    again = a_state(
        values={("a", "x"): "d2", ("a", "y"): "d3"},
        files={"out.txt": ("f2", 4)},
        outputs={"a": ["other"]},
    )
    stage = played(FINE[0], again, a_state(), *FINE[2:])
    assert [(f["kind"], f["what"]) for f in stage.findings] == [
        ("value", "x has another value"),
        ("value", "y has another value"),
        ("file", "file out.txt has grown from 3 to 4 bytes: written twice?"),
        ("output", "its output differs"),
    ]


def test_page_holds_each_finding_or_says_that_there_is_none() -> None:
    found = {"kind": "file", "step": "", "when": "twice", "what": "file a is missing"}
    data: Any = {"notebook": "nb", "ok": False, "steps": ["a"], "kills": 2}
    shown = pages.plain(rehearsal_page({**data, "findings": [found], "scratch": "/s"}))
    assert "file a is missing" in shown
    assert "kept: /s" in shown
    clean = pages.plain(rehearsal_page({**data, "findings": [], "scratch": ""}))
    assert "nothing lost, nothing doubled" in clean


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a notebook whose passes are made up, and temporary files in the test's folder."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(rehearsal.tempfile, "tempdir", str(tmp_path / "temporary"))
    states = list(FINE)

    def run(*_: object) -> tuple[End, State]:
        found = states.pop(0)
        if isinstance(found, str):
            return End("died", 1), State()
        return THROUGH, found

    monkeypatch.setattr(scratch.Scratch, "run", run)
    monkeypatch.setattr(scratch.Scratch, "ask_again", lambda *_: None)
    (tmp_path / "home").mkdir()
    return a_notebook(tmp_path / "home", LOAD, "%%step a\nx = 1")


def test_scratch_copy_is_removed(home: Path, tmp_path: Path) -> None:
    assert rehearse(home, lambda _: None)["scratch"] == ""
    assert names_in(tmp_path / "temporary") == []


def test_scratch_copy_stays_when_asked_for(home: Path, tmp_path: Path) -> None:
    found = rehearse(home, lambda _: None, keep=True)
    (kept,) = (tmp_path / "temporary").iterdir()
    assert found["scratch"] == str(kept)
    assert (kept / "work" / "nb.ipynb").exists()


def test_progress_goes_to_standard_error_and_the_page_to_standard_output(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["rehearse", str(home)])
    out, err = capsys.readouterr()
    assert int(left.value.code or 0) == 0
    assert "1 steps run twice, 2 kills" in out
    assert err.splitlines() == [
        "the whole notebook once",
        "each of 1 steps a second time",
        "killed before the record of a",
        "killed after a",
    ]


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (["%%step a --nope\nx = 1"], "--nope"),
        (["%%step\nx = 1"], "name"),
    ],
)
def test_wrong_step_line_is_refused_before_anything_is_copied(
    home: Path, tmp_path: Path, sources: list[str], said: str
) -> None:
    notebook = a_notebook(home.parent, LOAD, *sources)
    with pytest.raises(BadStep, match=said):
        rehearse(notebook, lambda _: None)
    assert names_in(tmp_path / "temporary") == []


# the scratch copy


def test_copy_leaves_stores_out_and_follows_no_link_back(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    for folder in (home / ".nbckpt", home / "data", other):
        folder.mkdir(parents=True)
    notebook = a_notebook(home, LOAD)
    (home / "data" / "in.csv").write_text("1")
    (other / "far.txt").write_text("real")
    (home / "link.txt").symlink_to(other / "far.txt")
    (home / "gone.txt").symlink_to(other / "missing.txt")
    root = tmp_path / "root"
    root.mkdir()
    scratch.Scratch(notebook, root, 0.0, big=False).reset()

    work = root / "work"
    assert names_in(work) == ["data", "link.txt", "nb.ipynb"]
    (work / "link.txt").write_text("changed")
    assert (other / "far.txt").read_text() == "real"


def test_link_to_a_folder_that_holds_it_is_left_out(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    for folder in (home / "a", home / "b", root):
        folder.mkdir(parents=True)
    (home / "a" / "up").symlink_to(home)
    (home / "a" / "beside").symlink_to(home / "b")
    (home / "b" / "beside").symlink_to(home / "a")
    (home / "b" / "itself").symlink_to("itself")
    scratch.Scratch(a_notebook(home, LOAD), root, 0.0, big=False)
    assert [*map(str, sorted((root / "first").rglob("*")))] == [
        str(root / "first" / name)
        for name in ("a", "a/beside", "b", "b/beside", "nb.ipynb")
    ]


def test_folders_that_are_made_again_are_left_out(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    for name in (".git", ".venv", "node_modules", "__pycache__", "kept"):
        (home / name).mkdir(parents=True)
        (home / name / "file").write_text("x")
    (home / "nb.out.ipynb").write_text("{}")
    root.mkdir()
    scratch.Scratch(a_notebook(home, LOAD), root, 0.0, big=False)
    assert names_in(root / "first") == ["kept", "nb.ipynb"]


def test_run_that_the_notebook_names_is_rehearsed_under_its_name(
    tmp_path: Path,
) -> None:
    for name, line, run_id in (
        ("named", "%nbckpt start orders-7", "orders-7"),
        ("free", "x = 1", "rehearsal"),
    ):
        home, root = tmp_path / name, tmp_path / f"{name}-root"
        home.mkdir()
        root.mkdir()
        notebook = a_notebook(home, LOAD, line)
        assert scratch.Scratch(notebook, root, 0.0, big=False).run_id == run_id


def test_kernel_is_told_of_the_rehearsal_and_not_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NBCKPT_OVERLAP", "replace")
    monkeypatch.setenv("NBCKPT_STORE", "elsewhere")
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    copy = scratch.Scratch(a_notebook(home, LOAD), root, 0.0, big=False)
    environment = copy._environment()
    assert environment["NBCKPT_REHEARSAL"] == "1"
    assert environment["NBCKPT_NOTEBOOK"] == str(root / "work" / "nb.ipynb")
    assert environment["NBCKPT_STORE"] == str(root / "store")
    assert "NBCKPT_OVERLAP" not in environment
    assert "PYTEST_CURRENT_TEST" not in environment


def test_reset_brings_the_folder_back(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    notebook = a_notebook(home, LOAD)
    copy = scratch.Scratch(notebook, root, 0.0, big=False)
    copy.reset()
    (root / "work" / "left.txt").write_text("x")
    copy.reset()
    assert names_in(root / "work") == ["nb.ipynb"]


def test_large_folder_is_copied_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".nbckpt").mkdir(parents=True)
    notebook = a_notebook(home, LOAD)
    (home / ".nbckpt" / "pack").write_bytes(b"x" * 5000)
    monkeypatch.setattr(scratch, "LIMIT", 2000)
    (tmp_path / "one").mkdir()
    scratch.Scratch(notebook, tmp_path / "one", 0.0, big=False)
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "big.bin").write_bytes(b"x" * 5000)
    (home / "data").symlink_to(tmp_path / "far")
    with pytest.raises(BadStep, match="--big"):
        scratch.Scratch(notebook, tmp_path / "two", 0.0, big=False)
    (tmp_path / "two").mkdir()
    scratch.Scratch(notebook, tmp_path / "two", 0.0, big=True)
    assert (tmp_path / "two" / "first" / "data" / "big.bin").exists()


def test_kill_before_the_record_stands_in_a_check_and_changes_no_code(
    tmp_path: Path,
) -> None:
    document = make_copy(a_notebook(tmp_path, LOAD, "%%step  a --note x\ny = 1"), {})
    scratch.killed_before("a")(document)
    first, _, body = document.cells[1].source.partition("\n")
    assert first == f"%%step {scratch.CHECK}a --note x"
    assert body == "y = 1"
    assert scratch.step_name(document.cells[1]) == "a"


def test_kill_after_the_record_stands_in_a_cell_below(tmp_path: Path) -> None:
    document = make_copy(a_notebook(tmp_path, LOAD, "%step a\ny = 1", "z = 2"), {})
    scratch.killed_after("a")(document)
    sources = [cell.source for cell in document.cells]
    assert sources[1:] == ["%step a\ny = 1", scratch.KILL, "z = 2"]
