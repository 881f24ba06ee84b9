"""nbckpt: long notebook jobs that survive anything.

In a notebook: ``%load_ext nbckpt``, then ``%%step NAME`` on top of each cell whose work
must not be lost.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nbckpt.errors import NbckptError, WaitingForAnswer

if TYPE_CHECKING:
    from nbckpt.current import current_run
    from nbckpt.effects.calls import effect, idempotency_key
    from nbckpt.effects.transactions import receive, relay, transaction
    from nbckpt.loops.iteration import items
    from nbckpt.loops.maps import map  # noqa: A004 - what it is
    from nbckpt.panel.widget import progress
    from nbckpt.people.decisions import check, decide, evidence, note, unknown
    from nbckpt.people.questions import ask

__all__ = [
    "NbckptError",
    "WaitingForAnswer",
    "ask",
    "check",
    "current_run",
    "decide",
    "effect",
    "evidence",
    "idempotency_key",
    "items",
    "load_ipython_extension",
    "map",
    "note",
    "progress",
    "receive",
    "relay",
    "transaction",
    "unknown",
    "unload_ipython_extension",
]
__version__ = "0.1.0"

HOMES = {
    "ask": "people.questions",
    "check": "people.decisions",
    "current_run": "current",
    "decide": "people.decisions",
    "effect": "effects.calls",
    "evidence": "people.decisions",
    "idempotency_key": "effects.calls",
    "items": "loops.iteration",
    "map": "loops.maps",
    "note": "people.decisions",
    "progress": "panel.widget",
    "receive": "effects.transactions",
    "relay": "effects.transactions",
    "transaction": "effects.transactions",
    "unknown": "people.decisions",
}
"""Public name → module that it is loaded from when it is first used."""


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)


def load_ipython_extension(shell: Any) -> None:
    """Install nbckpt in a shell; called by ``%load_ext nbckpt``.

    Parameters
    ----------
    shell : InteractiveShell
        The shell.
    """
    from nbckpt.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take nbckpt out of a shell; called by ``%unload_ext nbckpt``.

    Parameters
    ----------
    shell : InteractiveShell
        The shell.
    """
    from nbckpt.magics import unload

    unload(shell)
