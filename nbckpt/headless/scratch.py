"""A scratch copy of a notebook's folder, in which it runs as often as is needed."""

from __future__ import annotations

import os
import shutil
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt import keys, sightings
from nbckpt.errors import BadStep
from nbckpt.headless.document import make_copy
from nbckpt.headless.loop import kernel_name
from nbckpt.headless.passes import End, Pass
from nbckpt.headless.twice import comparable, is_ignored
from nbckpt.plan import step_line
from nbckpt.runs.history import Reader
from nbckpt.source.cells import read_sources
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.finding.starting import find_start
from nbckpt.verbs.forms.pages import size
from nbckpt.verbs.settle.marks import rerun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.records import Event

LEFT_OUT = shutil.ignore_patterns(
    ".nbckpt", ".git", ".venv", "venv", "node_modules", "__pycache__", "*.out.ipynb",
    ".ipynb_checkpoints",
)  # fmt: skip
LIMIT = 200_000_000
"""A larger folder is copied only when asked for."""
HIDDEN = {
    "PYTEST_CURRENT_TEST",
    "NBCKPT_OVERLAP",
    "NBCKPT_VERSION",
    "NBCKPT_STOP_ON_REDO",
}


@dataclass(slots=True)
class State:
    """What a notebook has come to."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)
    """Step and name → digest."""
    files: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Path → digest and size."""
    outputs: dict[str, list[str]] = field(default_factory=dict)
    """Step → its outputs."""
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    effects: set[str] = field(default_factory=set)
    """Step and id of each recorded effect."""
    started: list[Event] = field(default_factory=list)
    again: set[str] = field(default_factory=set)
    """Steps that can't be skipped, and say so."""


class Scratch:
    """A scratch copy of a notebook's folder.

    Parameters
    ----------
    notebook : Path
        The file, which is only read.
    root : Path
        An empty folder.
    timeout : float
        Seconds after which a pass is ended; 0: never.
    big : bool
        Whether a large folder may be copied.

    Raises
    ------
    BadStep
        If the folder is large.
    """

    def __init__(
        self, notebook: Path, root: Path, timeout: float, *, big: bool
    ) -> None:
        self._first = root / "first"
        self._work = root / "work"
        self._log = root / "sent"
        self._timeout = timeout
        self._notebook = self._work / notebook.name
        held = sum(_sizes(notebook.parent))
        if held > LIMIT and not big:
            raise BadStep(
                f"the folder {notebook.parent} holds {size(held)}, which would be copied",
                "Copy it all the same: --big",
            )
        # What links lead to is copied, so that nothing is written through them.
        shutil.copytree(
            notebook.parent,
            self._first,
            ignore=_left_out,
            ignore_dangling_symlinks=True,
        )
        start = find_start(read_sources(notebook))
        self._store = self._work / start.store if start.store else root / "store"
        self.run_id = start.run_id or "rehearsal"

    def reset(self) -> None:
        """Bring the folder back as it was, without a store."""
        for folder in (self._work, self._store):
            shutil.rmtree(folder, ignore_errors=True)
        self._log.unlink(missing_ok=True)
        shutil.copytree(self._first, self._work)

    def run(self, change: Callable[[Any], None] | None = None) -> tuple[End, State]:
        """Let one kernel go through the notebook.

        Parameters
        ----------
        change : callable, optional
            Changes the document that is executed.

        Returns
        -------
        tuple of End and State
            How it ended, and what is there now.
        """
        document = make_copy(self._notebook, {})
        if change is not None:
            change(document)
        _insert(
            document, 0, _call("nbckpt.sightings", f"note_into({str(self._log)!r})")
        )
        kernel = kernel_name(document, lambda _: None)
        environment = self._environment()
        through = Pass(document, self._work, environment, kernel, lambda: None)
        timer = threading.Timer(self._timeout, through.stop, kwargs={"now": True})
        if self._timeout:
            timer.start()
        try:
            return through.run(), self._state(document)
        finally:
            timer.cancel()

    def ask_again(self, step: str) -> None:
        """Have a step and all after it run again."""
        store = Store(self._store, load_secret())
        try:
            rerun(store, Reader(store).run(self.run_id), step, and_after=True)
        finally:
            store.close()

    def _environment(self) -> dict[str, str]:
        """Return the environment of a kernel."""
        kept = {name: text for name, text in os.environ.items() if name not in HIDDEN}
        return kept | {
            "NBCKPT_REHEARSAL": "1",
            "NBCKPT_NOTEBOOK": str(self._notebook),
            "NBCKPT_STORE": str(self._store),
            "NBCKPT_RUN_ID": self.run_id,
            "JPY_SESSION_NAME": str(self._notebook),
        }

    def _state(self, document: Any) -> State:
        """Return what the notebook has come to."""
        state = State(
            outputs=dict(_outputs(document)),
            files=dict(self._files()),
            sent=sightings.read(self._log),
        )
        store = Store(self._store, load_secret())
        try:
            self._recorded(Reader(store), state)
        finally:
            store.close()
        return state

    def _recorded(self, reader: Reader, state: State) -> None:
        """Add what the store tells."""
        for step, record in reader.steps(self.run_id).items():
            values = record.contents.values.items()
            state.values |= {(step, n): v.digest for n, v in values if not v.unknown}
            state.again |= {step} if record.runs_again else set()
        prefix = f"effect/{self.run_id}/"
        rows = reader.store.scan(prefix)
        state.effects = {key.removeprefix(prefix) for key, _ in rows}
        lines = [event for _, event in reader.history(self.run_id)]
        state.started = [event for event in lines if event.kind == "started"]

    def _files(self) -> Iterator[tuple[str, tuple[str, int]]]:
        """Yield the files of the folder."""
        for path in sorted(self._work.rglob("*")):
            parts = path.relative_to(self._work).parts
            own = {".nbckpt", "__pycache__", ".ipynb_checkpoints"} & {*parts}
            if path.is_file() and not own and path != self._notebook:
                data = path.read_bytes()
                yield "/".join(parts), (keys.digest(data), len(data))


def _left_out(place: str, names: list[str]) -> set[str]:
    """Return what is not copied; a link to a folder that holds it would have no end."""
    above = {folder.resolve() for folder in (Path(place), *Path(place).parents)}
    links = (Path(place, name) for name in names if Path(place, name).is_symlink())
    back = {link.name for link in links if Path(os.path.realpath(link)) in above}
    return LEFT_OUT(place, names) | back


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the size of each file that would be copied."""
    for place, folders, names in os.walk(folder, followlinks=True):
        left = _left_out(place, [*folders, *names])
        folders[:] = [name for name in folders if name not in left]
        paths = (os.path.join(place, name) for name in names if name not in left)  # noqa: PTH118
        yield from (os.path.getsize(path) for path in paths if os.path.isfile(path))  # noqa: PTH113, PTH202


def _outputs(document: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the outputs of each step that nobody said to ignore."""
    for cell in document.cells:
        name = step_name(cell)
        if name and not is_ignored(cell):
            yield name, comparable(cell.outputs)


def step_name(cell: Any) -> str:
    """Return the step that a cell is; empty for other cells."""
    line = step_line(cell.source) if cell.cell_type == "code" else None
    words = (line or "").removeprefix(CHECK).split()
    return words[0] if words else ""


def _call(module: str, call: str) -> str:
    """Return code that calls a function and leaves no name behind."""
    return f"__import__({module!r}, fromlist=['x']).{call}"


def _insert(document: Any, place: int, source: str) -> None:
    """Put a cell of our own into a document."""
    cell = {"cell_type": "code", "source": source, "outputs": []}
    made = type(document)(**cell, execution_count=None, metadata=type(document)())
    document.cells.insert(place, made)


KILL = "__import__('os').kill(__import__('os').getpid(), 9)"
CHECK = f'--check "{KILL}" '


def killed_before(step: str) -> Callable[[Any], None]:
    """Return what makes a document kill its kernel when a step's body has ended.

    Parameters
    ----------
    step : str
        The step. A check kills: the body is done, nothing of it is recorded yet.
    """

    def change(document: Any) -> None:
        for cell in document.cells:
            if step_name(cell) == step:
                magic, _, rest = cell.source.partition("step")
                cell.source = f"{magic}step {CHECK}{rest.lstrip(' ')}"
                return

    return change


def killed_after(step: str) -> Callable[[Any], None]:
    """Return what makes a document kill its kernel right after a step's record.

    Parameters
    ----------
    step : str
        The step; a cell below it kills.
    """

    def change(document: Any) -> None:
        names = [step_name(cell) for cell in document.cells]
        _insert(document, names.index(step) + 1, KILL)

    return change
