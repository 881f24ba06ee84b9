"""nbckpt: long notebook jobs that survive anything.

In a notebook: ``%load_ext nbckpt``, then ``%%step NAME`` on top of each cell whose work
must not be lost.
"""

from __future__ import annotations

from typing import Any

from nbckpt.errors import NbckptError

__all__ = ["NbckptError", "load_ipython_extension", "unload_ipython_extension"]
__version__ = "0.1.0"


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
