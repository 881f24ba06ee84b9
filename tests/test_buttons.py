"""A click answers as the command does; then the buttons are sealed."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.panel.buttons import (
    Buttons,
    Choice,
    again_from,
    answers_of,
    has_reader,
    words_on,
)
from nbckpt.people import settling
from nbckpt.records import (
    EffectRecord,
    EffectState,
    PlannedStep,
    PlanRecord,
    Question,
    RunRecord,
)
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

    from tests.notebook import Notebook

LOST = EffectRecord("r-1", "a", "charge", "", "k-1", EffectState.INTENT, 1.0, 1.0, 1, 1)
ASKED = Question("r-1", "go", "Go <on>?", "a", "", ("yes", "no"), 1.0)


@pytest.fixture
def session(tmp_path: Path) -> Any:
    def open_store() -> Store:
        return Store(tmp_path / "s", load_secret())

    store = open_store()
    store.transact(lambda tx: tx.put("run/r-1", RunRecord("r-1").to_json()))
    store.transact(settling.question(ASKED))
    plan = PlanRecord((PlannedStep(1, "a", ""), PlannedStep(2, "b", "")))
    store.transact(lambda tx: tx.put("plan/r-1", plan.to_json()))
    store.transact(lambda tx: tx.put("effect/r-1/a/k-1", LOST.to_json()))
    store.close()
    return SimpleNamespace(is_held=False, open_store=open_store, silent=False)


def shown(session: Any, asked: Question, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the buttons of a question, and both displays as they stand."""
    return offered(session, asked.text, answers_of(asked), monkeypatch)


def offered(
    session: Any, text: str, choices: list[Choice], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return buttons, and both displays as they stand: the words and the widget."""
    outputs: list[dict[str, Any]] = []

    def display(data: dict[str, Any], **_: object) -> Any:
        outputs.append(dict(data))
        return SimpleNamespace(update=partial(update, len(outputs) - 1))

    def update(number: int, data: dict[str, Any], **_: object) -> None:
        outputs[number] = dict(data)

    monkeypatch.setattr("IPython.display.display", display)
    buttons = Buttons(session, text, choices)
    buttons.show()
    return buttons, outputs


def pressable(buttons: Buttons) -> Any:
    """Return the buttons, and a field for text before them."""
    return buttons.box.children[0].children


def stored(session: Any) -> Question:
    store = session.open_store()
    (found,) = Reader(store).questions("r-1")
    store.close()
    return found


def test_click_records_the_answer_and_seals_the_buttons(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buttons, outputs = shown(session, ASKED, monkeypatch)
    yes, no = pressable(buttons)
    assert (yes.description, no.description) == ("yes", "no")
    no.click()
    assert stored(session).answer == "no"
    words, widget = outputs
    assert "answered no by" in words["text/plain"]
    assert "Go &lt;on&gt;?" in words["text/html"]
    assert set(widget.values()) == {""}
    # Another tab is told of the widget's state alone.
    [line] = buttons.box.children
    assert f"<p>{line.value}</p>" == words["text/html"]


def test_words_are_no_widget_and_tell_what_is_asked_and_the_commands(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{ASKED.text}\x1b\ud800"
    _, outputs = offered(session, text, answers_of(ASKED), monkeypatch)
    words, widget = outputs
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert widget["text/html"] == ""
    assert set(words) == {"text/plain", "text/html"}
    command = "nbckpt answer r-1 go yes"
    assert words["text/plain"].splitlines()[1] == command
    assert "\x1b" not in words["text/plain"]
    assert "<p>Go &lt;on&gt;?\N{REPLACEMENT CHARACTER}?</p>" in words["text/html"]
    assert command in words["text/html"]


def test_second_click_is_told_who_was_first(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buttons, outputs = shown(session, ASKED, monkeypatch)
    store = session.open_store()
    store.transact(settling.answer(ASKED, "yes", "ada", 2.0))
    store.close()
    pressable(buttons)[1].click()
    assert stored(session).answer == "yes"
    assert "by ada" in outputs[0]["text/plain"]


def test_text_field_answers_a_question_without_options(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = session.open_store()
    asked = Question("r-1", "go", "Who?", "a")
    store.transact(settling.question(asked))
    store.close()
    buttons, _ = shown(session, asked, monkeypatch)
    field, button = pressable(buttons)
    field.value = "bob"
    button.click()
    assert stored(session).answer == "bob"


def test_answer_that_could_not_be_recorded_leaves_the_buttons(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbckpt.errors import StoreFull

    buttons, outputs = shown(session, ASKED, monkeypatch)
    monkeypatch.setattr(Store, "transact", _full(StoreFull("no room")))
    pressable(buttons)[0].click()
    assert "nbckpt answer" in outputs[0]["text/plain"]
    assert "no room" in buttons.box.children[1].value
    assert len(pressable(buttons)) == 2


def _full(error: Exception) -> Any:
    def transact(*_: object, **__: object) -> None:
        raise error

    return transact


def test_button_says_which_command_does_the_same(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, outputs = shown(session, ASKED, monkeypatch)
    assert "nbckpt answer r-1 go yes" in outputs[0]["text/html"]
    assert "nbckpt answer r-1 go no" in outputs[0]["text/html"]


def test_question_with_one_option_has_one_button_and_no_field(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Question("r-1", "ok", "Seen?", "a", "", ("ok",))
    buttons, _ = shown(session, asked, monkeypatch)
    [button] = pressable(buttons)
    assert button.description == "ok"


@pytest.mark.parametrize(
    ("number", "state", "word"),
    [
        (0, EffectState.DONE, "done"),
        (1, EffectState.FAILED, "not-done"),
        (2, EffectState.INTENT, "redo"),
    ],
)
def test_click_settles_an_effect_as_resolve_does(
    session: Any,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    state: EffectState,
    word: str,
) -> None:
    buttons, outputs = offered(session, "did it?", words_on(LOST), monkeypatch)
    assert f"nbckpt resolve r-1 k-1 --{word}" in outputs[0]["text/html"]
    pressable(buttons)[number].click()
    [found] = effects(session)
    assert (found.state, found.answer and found.answer.word) == (state, word)
    assert f"effect charge of step a, run r-1: {word}" in outputs[0]["text/plain"]


def test_click_on_an_effect_that_was_settled_meanwhile_changes_nothing(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buttons, outputs = offered(session, "did it?", words_on(LOST), monkeypatch)
    other, _ = offered(session, "did it?", words_on(LOST), monkeypatch)
    pressable(other)[0].click()
    pressable(buttons)[1].click()
    [found] = effects(session)
    assert found.state is EffectState.DONE
    assert "was settled meanwhile: done, said by" in outputs[0]["text/plain"]


@pytest.mark.parametrize(("number", "steps"), [(0, ["a"]), (1, ["a", "b"])])
def test_click_has_steps_run_again(
    session: Any, monkeypatch: pytest.MonkeyPatch, number: int, steps: list[str]
) -> None:
    buttons, outputs = offered(session, "stopped", again_from("r-1", "a"), monkeypatch)
    pressable(buttons)[number].click()
    store = session.open_store()
    reader = Reader(store)
    assert [step for step in "ab" if reader.mark("r-1", step).rerun] == steps
    store.close()
    assert "again next time" in outputs[0]["text/plain"]


def effects(session: Any) -> list[EffectRecord]:
    store = session.open_store()
    found = Reader(store).effects("r-1")
    store.close()
    return found


UNKNOWN = """\
%%step pay
import nbckpt

def perform():
    raise {error}

nbckpt.effect("charge", perform)"""


@pytest.fixture
def offers(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the buttons that are shown in a notebook where somebody can click."""
    found: list[Any] = []

    def buttons(_: Any, text: str, choices: list[Choice]) -> Any:
        return SimpleNamespace(show=lambda: found.append((text, choices)))

    parent = {"content": {"allow_stdin": True}}
    monkeypatch.setattr("nbckpt.panel.buttons.Buttons", buttons)
    monkeypatch.setattr(notebook.shell, "kernel", object(), raising=False)
    monkeypatch.setattr(notebook.shell, "get_parent", lambda: parent, raising=False)
    return found


def test_effect_of_unknown_outcome_is_offered_where_the_step_stops(
    notebook: Notebook, offers: list[Any]
) -> None:
    cell = UNKNOWN.format(error="OSError('lost')")
    notebook.error(cell)
    assert offers == []
    notebook.error(cell)
    [(text, choices)] = offers
    assert "charge" in text
    assert [choice.word for choice in choices] == [
        "It happened", "It did not happen", "Do it again",
    ]  # fmt: skip


def test_step_that_must_not_be_redone_is_offered_again_from_here(
    notebook: Notebook, offers: list[Any]
) -> None:
    cell = "%%step a --stop-on-redo\nassert False"
    notebook.error(cell)
    notebook.error(cell)
    [(text, choices)] = offers
    assert "attempted and not completed" in text
    assert choices[1].word == "Run again from here on"
    store = notebook.session.store
    assert "runs again next time" in choices[0].act(store, "")


def test_error_of_the_users_own_offers_nothing(
    notebook: Notebook, offers: list[Any]
) -> None:
    notebook.error("1 / 0")
    notebook.error("%%step a\n1 / 0")
    assert offers == []


@pytest.mark.parametrize(
    ("shell", "reader"),
    [
        (SimpleNamespace(), False),
        (SimpleNamespace(kernel=1, get_parent=lambda: None), False),
        (SimpleNamespace(kernel=1, get_parent=lambda: {"content": {}}), False),
        (
            SimpleNamespace(
                kernel=1, get_parent=lambda: {"content": {"allow_stdin": True}}
            ),
            True,
        ),
    ],
)
def test_reader_is_there_if_the_client_takes_input(shell: Any, *, reader: bool) -> None:
    assert has_reader(shell) is reader
