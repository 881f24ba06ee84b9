"""Who sees a panel: the user's word, else whoever looks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from traitlets import TraitError

from nbckpt import magics
from nbckpt.errors import BadStep
from nbckpt.panel.preference import VARIABLE, NbCkpt

if TYPE_CHECKING:
    from tests.notebook import Notebook


def a_shell(*, looks: bool) -> Any:
    """Return a shell of a kernel whose client takes input from a person, or not."""
    parent = {"content": {"allow_stdin": looks}}
    return SimpleNamespace(kernel=1, get_parent=lambda: parent)


TERMINAL: Any = SimpleNamespace()


@pytest.mark.parametrize(
    ("word", "shell", "mode"),
    [
        ("", a_shell(looks=True), "live"),
        ("auto", a_shell(looks=True), "live"),
        ("", a_shell(looks=False), "off"),
        ("", TERMINAL, "off"),
        ("live", a_shell(looks=False), "live"),
        ("live", TERMINAL, "off"),
        ("static", a_shell(looks=True), "static"),
        ("static", TERMINAL, "static"),
        ("off", a_shell(looks=True), "off"),
    ],
)
def test_environment_says_what_is_shown(
    word: str, shell: Any, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, word)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert NbCkpt().mode(shell) == mode


def test_nothing_is_shown_under_pytest_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert NbCkpt().mode(a_shell(looks=True)) == "off"
    monkeypatch.setenv(VARIABLE, "live")
    assert NbCkpt().mode(a_shell(looks=True)) == "live"


def test_config_magic_changes_what_is_shown(notebook: Notebook) -> None:
    notebook.run("%config NbCkpt.progress = 'static'")
    preference = notebook.names[magics.HOOKS].preference
    assert preference.progress == "static"
    notebook.run("%config NbCkpt")
    assert "NbCkpt.progress" in notebook.shown()


def test_preference_leaves_with_the_extension(notebook: Notebook) -> None:
    shell = notebook.shell
    assert any(isinstance(each, NbCkpt) for each in shell.configurables)
    magics.unload(shell)
    assert not any(isinstance(each, NbCkpt) for each in shell.configurables)


def test_unknown_word_is_refused_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "loud")
    with pytest.raises(BadStep, match="Choose one of: auto, off, static, live"):
        NbCkpt().mode(TERMINAL)
    with pytest.raises(TraitError, match="static"):
        NbCkpt(progress="loud")
