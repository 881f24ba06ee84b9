"""The verbs: functions from a store to JSON values, and their form for people.

`nbckpt.verbs.notebook` is the door for ``%nbckpt``, `nbckpt.cli` the one for a shell;
both show the same. The packages are the families of `nbckpt --help`, and what these share:
where a run stands (`standing`), what a word means (`finding`), how an answer looks (`forms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.verbs.forms.late import late

if TYPE_CHECKING:
    from nbckpt.session import Session
    from nbckpt.verbs import notebook
    from nbckpt.verbs.forms.showing import Shown
else:
    notebook = late("nbckpt.verbs.notebook")

__all__ = ["in_notebook"]


def in_notebook(session: Session, line: str) -> str | Shown:
    """Do what a ``%nbckpt`` line asks for; see `nbckpt.verbs.notebook.in_notebook`."""
    return notebook.in_notebook(session, line)
