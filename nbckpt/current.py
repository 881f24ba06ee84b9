"""Where the code that calls us stands: the kernel's session, the step, the item."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbckpt import places
from nbckpt.errors import BadStep, NbckptError
from nbckpt.records import StepState
from nbckpt.runs.history import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.inputs.fingerprint import Body
    from nbckpt.plan import Step
    from nbckpt.records import Attempt, Question
    from nbckpt.session import Session


@dataclass(slots=True)
class Gathered:
    """What a body told of itself while it ran."""

    notes: list[str] = field(default_factory=list)
    learned: dict[str, Any] = field(default_factory=dict)
    confirmed: list[str] = field(default_factory=list)
    refused: dict[str, NbckptError] = field(default_factory=dict)
    """A check that is not true, a question without an answer: the step can't be done
    while one stands here, even if the body caught the error."""
    questions: dict[str, str] = field(default_factory=dict)
    """Where a question lies → its text: another one can't have its name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A body that runs."""

    session: Session
    step: Step
    body: Body
    attempt: Attempt
    gathered: Gathered = field(default_factory=Gathered)


item: ContextVar[str] = ContextVar("nbckpt_item", default="")
"""Key of the item that the calling thread works on; empty outside of items."""

asked: list[Question] = []
"""The question that ended the running cell; its buttons are shown below the error."""

_sessions: list[Session] = []
_places: list[Place] = []


def enter(session: Session | None) -> None:
    """Take note of the session of this kernel.

    Parameters
    ----------
    session : Session or None
        None: nbckpt was taken out.
    """
    _sessions[:] = [session] if session is not None else []
    _places.clear()


def begin(place: Place) -> None:
    """Take note that a body begins.

    Parameters
    ----------
    place : Place
        The body; the one before has ended.
    """
    _places[:] = [place]


def end() -> None:
    """Take note that no body runs any more."""
    _places.clear()


def session() -> Session:
    """Return this kernel's session.

    Raises
    ------
    BadStep
        If nbckpt is not loaded here.
    """
    if not _sessions:
        raise BadStep("nbckpt is not loaded in this process", "First: %load_ext nbckpt")
    return _sessions[0]


def running() -> Place | None:
    """Return the body that runs, or None between steps."""
    return _places[0] if _places else None


def store_named(here: Session) -> str:
    """Return the store's folder where a command would look for another one.

    Parameters
    ----------
    here : Session
        A session that holds its run.

    Returns
    -------
    str
        Empty if a shell in the notebook's folder finds it.
    """
    return places.named(here.store.folder, here.identity.base)


def place(what: str) -> Place:
    """Return the body that runs.

    Parameters
    ----------
    what : str
        The call that needs it, for the message.

    Raises
    ------
    BadStep
        If no step runs in this process.
    """
    session()
    if not _places:
        raise BadStep(
            f"nbckpt.{what} was called outside of a step",
            "Call it in a cell that begins with %%step NAME",
        )
    return _places[0]


@dataclass(frozen=True, slots=True)
class RunView:
    """A run, to look at.

    Attributes
    ----------
    run_id : str
        The run. All else is looked up when it is asked for, so that a view kept in a
        variable is the same input of a step at every resume.
    """

    run_id: str

    @property
    def notebook(self) -> str:
        """Path of the notebook that began it; empty if that was not known."""
        with _reading() as reader:
            return reader.run(self.run_id).notebook

    @property
    def version(self) -> str:
        """Workflow version of the run; empty if it has none."""
        with _reading() as reader:
            return reader.run(self.run_id).version

    @property
    def steps(self) -> dict[str, str]:
        """State of each step as it is recorded, in the order of the plan."""
        with _reading() as reader:
            steps, attempts = reader.steps(self.run_id), reader.attempts(self.run_id)
            names = [step.name for step in reader.plan(self.run_id).steps]
        found = dict.fromkeys(steps, StepState.COMPLETED)
        found |= {name: attempt.state for name, attempt in attempts.items()}
        left = {StepState.RUNNING: StepState.INTERRUPTED}  # its process is no more
        states = {name: found.get(name, StepState.PENDING) for name in names}
        return {
            name: str(state if name == self.step else left.get(state, state))
            for name, state in states.items()
        }

    @property
    def step(self) -> str:
        """The step that runs now; empty in a plain cell."""
        here = self._place()
        return here.step.name if here else ""

    @property
    def attempt(self) -> int:
        """Number of the attempt that runs now, from 1; 0 in a plain cell."""
        here = self._place()
        return here.attempt.attempt if here else 0

    @property
    def item(self) -> str:
        """Key of the item that the calling thread works on; empty outside of items."""
        return item.get() if self._place() else ""

    def _place(self) -> Place | None:
        """Return the body that runs, if it belongs to this run."""
        here = running()
        return here if here and here.attempt.run_id == self.run_id else None


def current_run() -> RunView:
    """Return a read-only view of this notebook's run.

    Returns
    -------
    RunView
        Its ``run_id``, ``notebook``, ``version`` and ``steps``, and the ``step``,
        ``attempt`` and ``item`` that work at the moment.

    Raises
    ------
    BadStep
        If nbckpt is not loaded in this process.
    RunHeld
        If another process holds the run.

    Notes
    -----
    Before the first step it begins or resumes the run, as that step would.

    Examples
    --------
    ``folder = Path("out") / nbckpt.current_run().run_id``
    """
    here = session()
    here.hold()
    return RunView(here.run_id)


@contextmanager
def _reading() -> Iterator[Reader]:
    """Read this kernel's store, also where it has given its run back."""
    here = session()
    store = here.store if here.is_held else here.open_store()
    try:
        yield Reader(store)
    finally:
        if not here.is_held:
            store.close()
