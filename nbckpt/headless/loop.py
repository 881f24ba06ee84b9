"""``nbckpt run``: kernel after kernel, until the notebook is through.

The run is opened here, so that every kernel goes on with the same one. A kernel that
dies is followed by another, which skips what is done; a cell that kills two is left to a
person.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbckpt import keys
from nbckpt.answers import resuming
from nbckpt.errors import BadStep, NotFound, RunHeld
from nbckpt.headless.document import COLOURS, failed_line, make_copy, save
from nbckpt.headless.passes import End, Pass, stopped_by_signals
from nbckpt.headless.pinging import pinged
from nbckpt.headless.placing import place
from nbckpt.headless.progress import Progress, Say, Watch
from nbckpt.places import STORE, STORE_OF, require_target, wanted
from nbckpt.plan import read_plan, step_line, wrong_lines
from nbckpt.records import Overlap, RunRecord, RunState
from nbckpt.runs.adoption import adopt
from nbckpt.runs.history import Reader
from nbckpt.runs.leases import describe, is_held, note_refused
from nbckpt.runs.opening import open_run
from nbckpt.runs.pings import check_url
from nbckpt.source.cells import parse_body, read_cells, read_sources
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.finding.starting import find_start
from nbckpt.verbs.forms.pages import printable

if TYPE_CHECKING:
    from nbckpt.runs.identity import Wish

ASKS = 3
EXITS = {"StopForHuman": ASKS, "WaitingForAnswer": ASKS, "RunHeld": 4, "Fenced": 4}
ENDS = {
    ASKS: ("stopped for a human", "then    "),
    4: ("not completed (another holder has it)", "to go on"),
}
"""Exit code → how it ended, and what goes before the command."""
DEATHS = 2
"""A cell that kills so many kernels is not tried again."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    notebook: Path
    parameters: dict[str, str] = field(default_factory=dict)
    run_id: str = ""
    fresh: bool = False
    overlap: Overlap = "skip"
    version: str = ""
    output: str = ""
    store: Path | None = None
    ping: str = ""
    """URL that is told of the start, of life, and of the end."""
    stop_on_redo: bool = False

    @property
    def target(self) -> Path:
        """Where the executed notebook is saved."""
        if self.output:
            return Path(self.output).absolute()
        return self.notebook.with_name(f"{self.notebook.stem}.out.ipynb")

    @property
    def folder(self) -> Path:
        """Where the store lies."""
        base = self.notebook.parent
        return base / self.store if self.store else wanted(base, str(self.notebook))


def _to_stderr(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{printable(line)}\n")


def run(
    order: Order, say: Say, warn: Say = _to_stderr, watch: Watch | None = None
) -> int:
    """Execute a notebook to its end.

    Parameters
    ----------
    order : Order
        What the user asked for.
    say : callable
        Takes each line of progress.
    warn : callable, optional
        Takes each line about what went wrong; without it, they go to standard error.
    watch : callable, optional
        Gives a context in which the run's kernels work, from the store's folder, the
        run's id and what happened so far.

    Returns
    -------
    int
        Exit code: 0 completed, 1 a step failed or was interrupted, 3 stopped for a
        human, 4 another holder has the run.

    Raises
    ------
    BadNotebook, BadStep
        If the file is missing, empty or broken; if a step line or an option is wrong.
    RunHeld, StopForHuman
        If another process holds the run, or it has effects of other parameters.
    StoreError
        If the store can't be used.
    """
    named, order = bool(order.run_id), _checked(order)
    document = make_copy(order.notebook, order.parameters)
    kernel = kernel_name(document, warn)
    store = Store(order.folder, load_secret())
    try:
        opened = _open(order, store)
        run_id, given = opened.run_id, order.parameters
        own = place(Reader(store), run_id, order.notebook, given, named=named)
        if own != given:
            say(f"parameters of run {run_id}: {', '.join(own)}")
            document = make_copy(order.notebook, own)
        through = _Loop(order, opened, store, document, kernel)
        with pinged(order.ping, store, run_id, warn) as tell:
            code = through.run(say, warn, watch)
            tell(code, through.reason)
        return code
    finally:
        store.close()


def _checked(order: Order) -> Order:
    """Refuse a wrong order before anything starts; add what the notebook asks for."""
    cells = read_cells(order.notebook)
    _check_output(order)
    ping = check_url(order.ping) if order.ping else ""
    expected = [c.source if "raises-exception" not in c.tags else "" for c in cells]
    for wrong in wrong_lines(expected):
        raise wrong
    order = replace(order, ping=ping)
    return _with_start(order, find_start(cell.source for cell in cells))


def _check_output(order: Order) -> None:
    """Refuse an output that would replace the source, or that has no folder."""
    if order.target == order.notebook:
        raise BadStep(
            "--output names the notebook itself",
            "The source is never changed: choose another",
        )
    require_target(order.target)


def _with_start(order: Order, start: Wish) -> Order:
    """Return the order with what the notebook's own start line asks for."""
    return replace(
        order,
        run_id=_named_run(order, start),
        version=start.version or order.version,
        overlap=start.overlap if start.overlap != "skip" else order.overlap,
        fresh=start.fresh or order.fresh,
        store=order.notebook.parent / start.store if start.store else order.store,
    )


def _named_run(order: Order, start: Wish) -> str:
    """Return the run that order or notebook names; refuse two different ones."""
    if start.run_id and order.run_id not in {"", start.run_id}:
        raise BadStep(
            f"the notebook names its run {start.run_id!r} itself (%nbckpt start)",
            "Leave --run-id out, or take the name out of the notebook",
        )
    run_id = start.run_id or order.run_id
    return keys.check_run_id(run_id) if run_id else ""


def kernel_name(document: Any, warn: Say) -> str:
    """Return the kernel that a notebook asks for, or Python's if that is not here.

    Parameters
    ----------
    document : nbformat.NotebookNode
        The notebook.
    warn : callable
        Told if another kernel is taken.

    Returns
    -------
    str
        Name of an installed kernel.

    Raises
    ------
    NotFound
        If it is a kernel of another language that is not installed.
    """
    from jupyter_client.kernelspec import KernelSpecManager

    specs: Any = KernelSpecManager()
    wanted = document.metadata.get("kernelspec") or {}
    name = str(wanted.get("name") or "python3")
    if name in specs.find_kernel_specs():
        return name
    if str(wanted.get("language", "python")).lower() != "python":
        raise NotFound(
            f"the notebook asks for the kernel {name!r}, which is not installed",
            "nbckpt runs Python notebooks",
        )
    warn(f"nbckpt: the kernel {name!r} is not installed; python3 is taken instead")
    return "python3"


def _open(order: Order, store: Store) -> RunRecord:
    """Open the run once, for all kernels; refuse one that another process holds."""
    wanted = RunRecord(order.run_id, str(order.notebook), order.version)
    fresh = order.fresh or order.overlap == "concurrent"
    if fresh and not order.run_id:
        return open_run(store, order.notebook.stem, wanted, fresh=True)
    if not order.run_id:
        sources = read_sources(order.notebook)
        plan = read_plan(sources, parse_body)
        adopt(store, order.notebook.stem, wanted.notebook, plan)
    opened = open_run(store, order.notebook.stem, wanted)
    lease = Reader(store).lease(opened.run_id)
    if order.overlap == "skip" and lease is not None and is_held(lease):
        note_refused(store, opened.run_id, lease)
        raise RunHeld(
            f"run {opened.run_id} is held by {describe(lease)}",
            "Wait for it, or take it over: --overlap replace; or begin another run: "
            "--overlap concurrent",
        )
    return opened


class _Loop:
    """Kernel after kernel on one run."""

    def __init__(
        self, order: Order, opened: RunRecord, store: Store, document: Any, kernel: str
    ) -> None:
        self._order = order
        self._run = opened
        self._store = store
        self._document = document
        self._kernel = kernel
        self._deaths: Counter[int] = Counter()
        self._unsaved = ""
        self.reason = ""
        """How it ended, without the error's text, which can hold anything."""

    def run(self, say: Say, warn: Say, watch: Watch | None) -> int:
        """Execute until it is through; return the exit code."""
        run_id = self._run.run_id
        progress = Progress(Reader(self._store), run_id, say)
        say(f"run {run_id}: {self._order.notebook.name}")
        told = self._order.folder, run_id, progress.tally
        with watch(*told) if watch else nullcontext():
            end = self._passes(progress, warn)
        self._close(progress, end, say, warn)
        if end.kind != "completed" or self._unsaved:
            self.reason = f"{end.kind} in {self._where(end.cell)} {end.name}".rstrip()
        return self._exit_code(end)

    def _passes(self, progress: Progress, warn: Say) -> End:
        """Let kernel after kernel go through the notebook; return how the last ended."""
        while True:
            end = self._pass(progress, warn)
            if end.kind != "died":
                return end
            self._deaths[end.cell] += 1
            if self._deaths[end.cell] >= DEATHS:
                return end
            where = self._where(end.cell)
            warn(f"nbckpt: the kernel died in {where}; another one resumes")
            if end.text:
                warn(end.text)

    def _pass(self, progress: Progress, warn: Say) -> End:
        """Let one kernel go through the notebook."""

        def keep() -> None:
            self._save()
            progress.tell()

        def stop() -> None:
            if through.stop() == 1:
                warn("nbckpt: interrupting the cell; once more ends its kernel at once")

        folder = self._order.notebook.parent
        through = Pass(self._document, folder, self._environment(), self._kernel, keep)
        with stopped_by_signals(stop):
            end = through.run()
        keep()
        return end

    def _environment(self) -> dict[str, str]:
        """Return the environment of a kernel."""
        order = self._order
        # Only the first kernel takes the run over: one that follows a kernel which was
        # killed by its heir must not take it back.
        replaces = order.overlap == "replace" and max(self._deaths, default=-1) < 0
        told = {
            "NBCKPT_NOTEBOOK": str(order.notebook),
            "NBCKPT_JOB": "",
            STORE_OF: str(order.notebook),
            STORE: str(order.folder),
            "NBCKPT_RUN_ID": self._run.run_id,
            "NBCKPT_OVERLAP": "replace" if replaces else "skip",
            "NBCKPT_VERSION": order.version,
            "NBCKPT_STOP_ON_REDO": "1" if order.stop_on_redo else "",
            "JPY_SESSION_NAME": str(order.notebook),
        }
        return {**os.environ, **told}

    def _save(self) -> None:
        """Save the executed copy; a full disk must not end the run."""
        try:
            save(self._document, self._order.target)
            self._unsaved = ""
        except OSError as error:
            self._unsaved = f"{self._order.target} could not be saved: {error}"

    def _where(self, cell: int) -> str:
        """Return a cell's place for people: its step, or its number."""
        if cell < 0:
            return "its start"
        line = step_line(self._document.cells[cell].source)
        step = line.split()[0] if line else ""
        return f"step {step}" if step else f"cell {cell + 1}"

    def _close(self, progress: Progress, end: End, say: Say, warn: Say) -> None:
        """Tell how it ended, what was done, and how to go on."""
        reason = self._reason(end)
        if reason:
            warn(f"nbckpt: {reason}")
        if self._unsaved:
            warn(f"nbckpt: {self._unsaved}")
        left = f"not completed ({end.kind})", "to go on"
        word, again = ENDS.get(self._exit_code(end), left)
        if end.kind == "completed":
            word, again = "completed", "again   "
        say(f"run {self._run.run_id}: {word}")
        for line in progress.summary():
            say(line)
        say(f"notebook  {self._order.target}")
        say(f"{again}  {resuming(self._order.notebook, self._run.run_id)}")

    def _reason(self, end: End) -> str:
        """Return why the notebook is not through; empty if it is."""
        where, text = self._where(end.cell), COLOURS.sub("", end.text)
        match end.kind:
            case "failed":
                return f"{where} {self._failure(end, text)}"
            case "died":
                last = f"\n{text}" if text else ""
                return f"{where} killed its kernel {DEATHS} times; stopped there{last}"
            case "stopped":
                return f"interrupted in {where}; all that was completed is kept"
            case "unstarted":
                return f"the kernel {self._kernel!r} did not start: {text}"
            case _:
                return ""

    def _failure(self, end: End, text: str) -> str:
        """Return what a cell's error means."""
        if self._exit_code(end) == ASKS:
            return f"stopped for a human: {text}"
        line = failed_line(self._document.cells[end.cell].outputs)
        at = f"\n  at {line}" if line else ""
        return f"failed: {end.name}: {text}{at}"

    def _exit_code(self, end: End) -> int:
        """Return the exit code for how it ended."""
        if end.kind == "completed":
            return 1 if self._unsaved else 0
        if end.name == "Fenced" and self._is_cancelled():
            return ASKS
        return EXITS.get(end.name, 1) if end.kind == "failed" else 1

    def _is_cancelled(self) -> bool:
        """Tell whether a person cancelled the run while it ran."""
        run = Reader(self._store).run(self._run.run_id)
        return run.state is RunState.CANCELLED
