"""What a run waits for is shown with the exact command that lets it go on."""

from __future__ import annotations

import builtins
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.cli import main
from nbckpt.panel.looking import look as panel
from nbckpt.runs.history import Reader
from nbckpt.verbs.look.handover import handover, handover_text
from nbckpt.verbs.prepare.planning import plan_run
from nbckpt.verbs.serve.monitoring import Monitor, Watching
from nbckpt.verbs.serve.remembering import Memory
from nbckpt.verbs.standing.status import Status, runs, status
from nbckpt.verbs.standing.waiting import OpenEffect, effect_lines, settling
from tests.notebook import Notebook, write_cells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAY = (
    "%%step pay\nimport nbckpt\npaid = nbckpt.effect('charge', lambda key: there(key))"
)
ASK = "%%step ask\nimport nbckpt\nsaid = nbckpt.ask('Delete?', ['yes', 'no'], name='d')"
CAUGHT = """
for name in ("charge", "other"):
    try:
        nbckpt.effect(name, lambda key: there(key))
    except TimeoutError:
        pass
"""
SAID = "--done VALUE|--not-done|--redo"


@pytest.fixture
def notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Notebook]:
    """Return a kernel that knows its notebook, whose receiver is cut off."""
    monkeypatch.chdir(tmp_path)
    write_cells(ASK, PAY)
    monkeypatch.setenv("NBCKPT_NOTEBOOK", str(tmp_path / "etl.ipynb"))
    monkeypatch.setattr(builtins, "there", cut_off, raising=False)
    found = Notebook(capsys)
    yield found
    found.close()


def cut_off(key: str) -> str:
    raise TimeoutError(f"no answer for {key[:3]}")


def looked(notebook: Notebook) -> Status:
    return status(Reader(notebook.session.store), notebook.journal.run("etl-1"))


def said_everywhere(notebook: Notebook) -> list[str]:
    """Return what each verb that looks at the run shows of it."""
    pages = []
    for line in ("status", "plan", "handover"):
        notebook.shown()
        notebook.run(f"%nbckpt {line} etl-1")
        pages.append(notebook.shown())
    return pages


def told(words: str) -> None:
    """Run the line of a shell in this process."""
    _, *rest = shlex.split(words)
    with pytest.raises(SystemExit) as ended:
        main(rest)
    assert ended.value.code == 0


def test_effect_of_unknown_outcome_is_settled_by_the_command_that_is_shown(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.error(PAY)
    (effect,) = looked(notebook)["effects"]
    assert effect["command"] == f"nbckpt resolve etl-1 {effect['key']} {SAID}"
    assert "TimeoutError" in effect["error"]
    for page in said_everywhere(notebook):
        assert effect["command"] in page
    told(effect["command"].replace(SAID, "--not-done"))
    assert looked(notebook)["effects"] == []
    for page in said_everywhere(notebook):
        assert "nbckpt resolve" not in page
    monkeypatch.setattr(builtins, "there", str, raising=False)
    notebook.run(PAY)
    assert notebook.names["paid"] == effect["key"]


def test_effect_that_a_person_has_redone_waits_for_nobody(notebook: Notebook) -> None:
    notebook.error(PAY)
    notebook.run("%nbckpt resolve charge --redo")
    assert looked(notebook)["effects"] == []


def test_effect_that_is_under_way_is_not_for_a_person(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    look = lambda _: seen.append(looked(notebook)["effects"])  # noqa: E731
    monkeypatch.setattr(builtins, "there", look, raising=False)
    notebook.run(PAY)
    assert seen == [[]]


def test_step_that_stopped_shows_why_and_what_to_do(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "there", str, raising=False)
    sends = PAY.replace("there(key)", "there((key, amount))")
    notebook.run("amount = 1")
    notebook.run(sends)
    notebook.run("amount = 2")
    notebook.error(sends)
    data = looked(notebook)
    assert (data["effects"], data["state"]) == ([], "waiting")
    notebook.shown()
    notebook.run("%nbckpt status")
    shown = " ".join(notebook.shown().split())
    assert "stopped pay: " in shown
    assert "nbckpt resolve etl-1 pay.charge-" in shown
    assert "--done [VALUE]|--redo" in shown
    notebook.run("%nbckpt resolve charge --redo")
    assert looked(notebook)["stops"] == []


def test_question_is_answered_by_the_command_that_is_shown(notebook: Notebook) -> None:
    notebook.error(ASK)
    notebook.session.hold()
    for page in said_everywhere(notebook):
        assert "nbckpt answer etl-1 d yes" in page
    told("nbckpt answer etl-1 d yes")
    for page in map(str.lower, said_everywhere(notebook)):
        assert "answer first" not in page
        assert "to answer:" not in page
        assert "stopped " not in page
    notebook.run(ASK)
    assert notebook.names["said"] == "yes"


def test_command_names_the_store_that_a_shell_would_not_find(
    notebook: Notebook,
) -> None:
    notebook.run("%nbckpt start --store elsewhere")
    notebook.error(PAY)
    notebook.error(ASK)
    notebook.session.hold()
    where = f"--store {notebook.session.store.folder}"
    data = looked(notebook)
    assert data["effects"][0]["command"].startswith(f"nbckpt resolve {where} etl-1 ")
    assert data["questions"][0]["commands"][0].startswith(f"nbckpt answer {where}")
    told(data["effects"][0]["command"].replace(SAID, "--done x"))
    other = PAY.replace("charge'", "other'")
    notebook.error(other)
    again: Any = notebook.error(other)
    assert f"nbckpt resolve {where} etl-1 " in again.remedy


def test_handover_and_plan_put_it_before_the_command_that_goes_on(
    notebook: Notebook,
) -> None:
    notebook.error(PAY)
    reader, run = Reader(notebook.session.store), notebook.journal.run("etl-1")
    page = handover_text(handover(reader, run))
    assert 0 < page.index("Settle first") < page.index("Command: ")
    notes = plan_run(reader, run)["notes"]
    assert [note for note in notes if note.startswith("settle first")]


def test_many_effects_are_cut_for_people() -> None:
    one = OpenEffect(
        name="a", step="s", item="7", key="k", since=5.0, error="", command="cmd"
    )
    lines = effect_lines([one] * 10)
    assert lines[-1] == "  and 2 effects more"
    assert sum("a, s, 7: begun at" in line for line in lines) == 8
    assert settling([one] * 10)[-1] == "nbckpt status shows 2 more"
    assert effect_lines([]) == settling([]) == []


def words_of(notebook: Notebook) -> set[str]:
    """Return the words for the run and its only begun step, from all that show them."""
    reader, run = Reader(notebook.session.store), notebook.journal.run("etl-1")
    data = status(reader, run)
    (line,) = runs(reader)
    view = panel(reader, run)
    begun = [step["state"] for step in data["steps"] if step["attempt"]]
    shown = {str(step.state) for step in view.steps if step.state != "pending"}
    page = handover(reader, run)
    flights = {one["state"] for one in page["in_flight"]}
    return {data["state"], line["state"], page["state"], *begun, *shown, *flights}


def watched(notebook: Notebook) -> tuple[str, str]:
    """Return what a monitor says once the kernel has given its run back."""
    notebook.session.release()
    folder, told = notebook.session.identity.base / ".nbckpt", []
    watching = Watching(folder, ["etl-1"], 60.0)
    Monitor(watching, Memory(folder, ""), lambda _: True, told.append).once()
    notebook.session.hold()
    return told[0]["word"], told[0]["text"]


def test_every_form_of_a_run_says_that_its_question_is_answered(
    notebook: Notebook,
) -> None:
    notebook.error(ASK)
    notebook.session.hold()
    assert words_of(notebook) == {"waiting"}
    assert watched(notebook)[0] == "waiting"
    told("nbckpt answer etl-1 d yes")
    assert words_of(notebook) == {"answered"}
    word, text = watched(notebook)
    command = looked(notebook)["resume"]
    assert command.endswith("etl.ipynb --run-id etl-1")
    assert word == "answered"
    assert f"to go on: {command}" in text
    page, _, hand = said_everywhere(notebook)
    assert "run etl-1: answered, ready to go on, 0 of 2 steps done" in page
    assert f"To go on: {command}" in page
    assert "State: answered, ready to go on" in hand
    assert "waiting" not in page + hand
    notebook.run(ASK)
    assert words_of(notebook) == {"completed", "done", "open"}


def test_question_of_a_plain_cell_is_waited_for_as_well(notebook: Notebook) -> None:
    ask = 'import nbckpt\nnbckpt.ask("Go on?", ["yes"], name="d")'
    notebook.error(ask)
    assert looked(notebook)["state"] == "waiting"
    assert watched(notebook)[0] == "waiting"
    told("nbckpt answer etl-1 d yes")
    assert watched(notebook)[0] == "answered"
    notebook.run(ask)
    notebook.session.release()
    assert looked(notebook)["state"] == "open"


def test_stop_of_a_step_is_answered_once_its_effect_is_settled(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.error(PAY)
    notebook.error(PAY)
    assert words_of(notebook) == {"waiting"}
    told("nbckpt resolve etl-1 charge --not-done")
    assert words_of(notebook) == {"answered"}
    monkeypatch.setattr(builtins, "there", str, raising=False)
    notebook.run(PAY)
    assert looked(notebook)["state"] == "open"


def test_step_with_one_more_open_question_or_effect_still_waits(
    notebook: Notebook,
) -> None:
    two = PAY + "\n" + PAY.partition("\n")[2].replace("charge", "other")
    notebook.error("%%step pay\nnbckpt = __import__('nbckpt')\n" + CAUGHT)
    notebook.error(two)
    assert words_of(notebook) == {"waiting"}
    notebook.run("%nbckpt resolve charge --redo")
    assert words_of(notebook) == {"waiting"}
    notebook.run("%nbckpt resolve other --redo")
    assert words_of(notebook) == {"answered"}


def test_word_about_another_step_answers_nothing(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.error(PAY)
    monkeypatch.setattr(builtins, "there", str, raising=False)
    sends = "%%step sends\nnbckpt.effect('mail', lambda key: there((key, amount)))"
    notebook.run("import nbckpt\namount = 1")
    notebook.run(sends)
    notebook.run("amount = 2")
    notebook.error(sends)
    (stop,) = looked(notebook)["stops"]
    assert stop["step"] == "sends"
    notebook.run("%nbckpt resolve charge --redo")
    assert looked(notebook)["stops"] == [stop]
    assert looked(notebook)["state"] == "waiting"
    notebook.run("%nbckpt resolve mail --redo")
    states = {step["name"]: step["state"] for step in looked(notebook)["steps"]}
    assert states["sends"] == "answered"


def test_renamed_step_is_answered_by_a_word_about_its_former_effect(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "there", str, raising=False)
    bill = PAY.replace("step pay", "step bill")
    notebook.run(PAY)
    write_cells(bill)
    notebook.restart()
    notebook.error(bill)
    assert words_of(notebook) == {"waiting"}
    notebook.run("%nbckpt resolve charge --done")
    assert words_of(notebook) == {"answered"}
