"""Who is at the keyboard."""

from __future__ import annotations

import getpass
import re
from typing import TYPE_CHECKING

from nbckpt.runs.persons import person, said_by

if TYPE_CHECKING:
    import pytest


def test_words_carry_the_name_that_the_system_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert person() == "ada"
    assert re.fullmatch(r"ada at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", said_by())


def test_nameless_user_is_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise OSError

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert person() == "somebody"
