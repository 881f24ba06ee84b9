"""A click answers as the command does; then the buttons are sealed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt import settling
from nbckpt.buttons import Buttons, has_reader
from nbckpt.history import Reader
from nbckpt.records import Question, RunRecord
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

ASKED = Question("r-1", "go", "Go <on>?", "a", "", ("yes", "no"), 1.0)


@pytest.fixture
def session(tmp_path: Path) -> Any:
    def open_store() -> Store:
        return Store(tmp_path / "s", load_secret())

    store = open_store()
    store.transact(lambda tx: tx.put("run/r-1", RunRecord("r-1").to_json()))
    store.transact(settling.question(ASKED))
    store.close()
    return SimpleNamespace(is_held=False, open_store=open_store, silent=False)


def shown(session: Any, asked: Question, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return buttons, and what their display was last updated with."""
    seen: dict[str, Any] = {}
    handle = SimpleNamespace(update=lambda data, **_: seen.update(data))
    monkeypatch.setattr("IPython.display.display", lambda *_, **__: handle)
    buttons = Buttons(session, asked)
    buttons.show()
    return buttons, seen


def stored(session: Any) -> Question:
    store = session.open_store()
    (found,) = Reader(store).questions("r-1")
    store.close()
    return found


def test_click_records_the_answer_and_seals_the_buttons(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buttons, seen = shown(session, ASKED, monkeypatch)
    yes, no = buttons.box.children[1].children
    assert (yes.description, no.description) == ("yes", "no")
    no.click()
    assert stored(session).answer == "no"
    assert "answered no by" in seen["text/plain"]
    assert "Go &lt;on&gt;?" in seen["text/html"]


def test_second_click_is_told_who_was_first(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    buttons, seen = shown(session, ASKED, monkeypatch)
    store = session.open_store()
    store.transact(settling.answer(ASKED, "yes", "ada", 2.0))
    store.close()
    buttons.box.children[1].children[1].click()
    assert stored(session).answer == "yes"
    assert "by ada" in seen["text/plain"]


def test_text_field_answers_a_question_without_options(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = session.open_store()
    asked = Question("r-1", "go", "Who?", "a")
    store.transact(settling.question(asked))
    store.close()
    buttons, _ = shown(session, asked, monkeypatch)
    field, button = buttons.box.children[1].children
    field.value = "bob"
    button.click()
    assert stored(session).answer == "bob"


def test_answer_that_could_not_be_recorded_leaves_the_buttons(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbckpt.errors import StoreFull

    buttons, seen = shown(session, ASKED, monkeypatch)
    monkeypatch.setattr(Store, "transact", _full(StoreFull("no room")))
    buttons.box.children[1].children[0].click()
    assert seen == {}
    assert "no room" in buttons.box.children[0].value


def _full(error: Exception) -> Any:
    def transact(*_: object, **__: object) -> None:
        raise error

    return transact


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
