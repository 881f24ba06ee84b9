"""Whether a panel is shown: the user's word, or what the front end can do."""

from __future__ import annotations

import os
from typing import Any, Literal

from traitlets import Enum, default
from traitlets.config import Configurable

from nbckpt.errors import BadStep
from nbckpt.panel.buttons import has_reader

Mode = Literal["off", "static", "live"]
VARIABLE = "NBCKPT_PROGRESS"
WORDS = ("auto", "off", "static", "live")


class NbCkpt(Configurable):  # the name is what the user types after %config
    """What ``%config NbCkpt`` sets."""

    progress = Enum(
        WORDS,
        help="The panel of a run. live: shown and kept up to date; static: the names of "
        "the steps, which are the same each time; off: nothing; auto: live where "
        "somebody looks, off under nbclient, nbval, papermill and in a terminal.",
    ).tag(config=True)

    @default("progress")
    def _of_environment(self) -> str:
        """Return what the environment asks for."""
        return word_of_environment()

    def mode(self, shell: Any) -> Mode:
        """Return what is shown in a shell.

        Parameters
        ----------
        shell : InteractiveShell
            The shell; a terminal's can't change what it has shown.

        Returns
        -------
        {"off", "static", "live"}
            Under pytest nothing is shown unless somebody asks for it.
        """
        word: Any = self.progress
        if word == "auto":
            looks = has_reader(shell) and "PYTEST_CURRENT_TEST" not in os.environ
            return "live" if looks else "off"
        if word == "live" and not hasattr(shell, "kernel"):
            return "off"
        return word  # type: ignore[no-any-return]


def word_of_environment() -> str:
    """Return what ``NBCKPT_PROGRESS`` says.

    Returns
    -------
    str
        ``auto`` if it says nothing.

    Raises
    ------
    BadStep
        If there is no such word.
    """
    word = os.environ.get(VARIABLE) or "auto"
    if word not in WORDS:
        raise BadStep(f"{VARIABLE}={word!r}", f"Choose one of: {', '.join(WORDS)}")
    return word
