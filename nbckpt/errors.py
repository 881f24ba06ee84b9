"""Every error that nbckpt raises, as one tree.

::

    NbckptError
    ├── BadStep          the ``%%step`` line or a command is wrong; nothing ran
    ├── BadNotebook      a notebook file is missing, empty or broken
    ├── NotFound         no such run, step or store
    ├── CheckFailed      the body ran, but a completion check is not true
    ├── SaveFailed       the body ran, but its checkpoint could not be written
    ├── StopForHuman     it can't be known what is right; a person must say
    │   └── WaitingForAnswer a question was asked and is not answered yet
    ├── AlreadySettled   somebody else settled it first
    ├── RunHeld          another living process holds the run
    ├── StoreError       the store can't be used
    │   ├── StoreRefused     unsafe place, owner, file system or schema
    │   ├── StoreDamaged     a value is not what was written
    │   └── StoreFull        no room left on the disk
    └── ValueRefused     a value can't be kept (has the path of the variable)
    Fenced (BaseException)   another process took the run over

`Fenced` derives from `BaseException` so that ``except Exception`` in a cell can't
swallow it.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class OwnFramesHidden:
    """Has a notebook show a user's error that passes through it without our own frames.

    The error and its traceback stay as they are.
    """

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, kind: object, error: object, trace: TracebackType | None
    ) -> None:
        """Mark the frames that an error came through."""
        for frame, _ in traceback.walk_tb(trace):
            if frame.f_globals.get("__name__", "").startswith(f"{__package__}."):
                # The name that IPython, its debugger and pytest look for.
                frame.f_locals["__tracebackhide__"] = True


class Shown:
    """How an error looks in a notebook: one line, without our own frames."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class NbckptError(Shown, Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    what : str
        What is wrong and where (run, step, variable, file).
    remedy : str, optional
        What to do next.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        """Return what is wrong, then what to do next."""
        return f"{self.what}. {self.remedy}" if self.remedy else self.what


class BadStep(NbckptError):
    """The ``%%step`` line or a command is wrong; nothing ran."""


class BadNotebook(NbckptError):
    """A notebook file is missing, empty or broken."""


class NotFound(NbckptError):
    """No such run, step or store."""


class CheckFailed(NbckptError):
    """The body ran, but a completion check is not true."""


class SaveFailed(NbckptError):
    """The body ran, but its checkpoint could not be written; values are in memory."""


class StopForHuman(NbckptError):
    """It can't be known what is right; a person must say."""


class WaitingForAnswer(StopForHuman):
    """A question was asked; the run goes on from here once it is answered."""


class AlreadySettled(NbckptError):
    """Somebody else settled it first, or the run is over; what stands is unchanged."""


class RunHeld(NbckptError):
    """Another living process holds the run."""


class StoreError(NbckptError):
    """The store can't be used."""


class StoreRefused(StoreError):
    """The store is in an unsafe place, of another owner, or of another schema."""


class StoreDamaged(StoreError):
    """A value in the store is not what was written."""


class StoreFull(StoreError):
    """No room is left for the store."""


class ValueRefused(NbckptError):
    """A value can't be kept; the message holds the path of the variable."""


class Fenced(Shown, BaseException):
    """Another process took the run over; this one can write nothing more.

    Parameters
    ----------
    what : str
        Who took the run over, and when.
    remedy : str, optional
        What to do next.
    """

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        """Return who took the run over, then what to do next."""
        return f"{self.what}. {self.remedy}" if self.remedy else self.what
