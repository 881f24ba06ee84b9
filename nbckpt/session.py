"""A kernel's hold on its run: which notebook, which store, which run, and its state."""

from __future__ import annotations

import atexit
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nbckpt import keys, places
from nbckpt.credentials import Secrets
from nbckpt.errors import BadNotebook
from nbckpt.inputs.claims import Claims
from nbckpt.inputs.fingerprint import Body, Inputs
from nbckpt.inputs.imported import Imported
from nbckpt.inputs.passes import Passes
from nbckpt.inputs.proofs import Paths
from nbckpt.inputs.survey import Survey
from nbckpt.inputs.watch import Touched, Watch
from nbckpt.inputs.workingfolder import WorkingFolder
from nbckpt.outputs import Recorder, replay
from nbckpt.plan import Step, doubles, planned, read_plan, twice
from nbckpt.records import (
    Attempt,
    Fingerprint,
    PlanRecord,
    RunRecord,
    StepRecord,
)
from nbckpt.runs import journal, parameters, postures
from nbckpt.runs import opening as runs
from nbckpt.runs.adoption import adopt
from nbckpt.runs.history import Reader
from nbckpt.runs.identity import Wish, cell_id, identify, wish_of_environment
from nbckpt.runs.leases import Hold, Leases
from nbckpt.runs.worktree import WorktreeWatch
from nbckpt.source.cells import ENDINGS, parse_body, read_sources
from nbckpt.state import ambient, snapshots, variables
from nbckpt.state.checkpoints import Checkpoints, Restored
from nbckpt.state.loose import inherited
from nbckpt.state.modulestate import Names
from nbckpt.state.seeding import Seeding
from nbckpt.state.stillness import Stillness
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HIDDEN = ("get_ipython", "In", "Out", "exit", "quit", "open")


class Session:
    """A kernel's hold on its run.

    Parameters
    ----------
    shell : InteractiveShell
        The kernel's shell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.namespace: dict[str, Any] = shell.user_ns
        self.identity = identify(self.namespace)
        self.imported = Imported(Paths(self.identity.base))
        self.passes = Passes()
        self.working_folder = WorkingFolder(self.identity.base, self.passes)
        self.names = Names(self.namespace, self.imported.noticing)
        self.wish = wish_of_environment()
        self._started = Wish()
        self._leases: Leases | None = None
        self._doubles: set[str] = set()
        self._hidden = {*shell.user_ns_hidden, *HIDDEN}
        self._hold: Hold | None = None
        self._store: Store | None = None
        self._seen: dict[str, tuple[str, str]] = {}
        self._names: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._taken: snapshots.Snapshot | None = None
        self.silent = False
        self.stillness = Stillness()
        self.seeding = Seeding()

    @property
    def run_id(self) -> str:
        """The run that is held."""
        return self.journal.run_id

    @property
    def is_held(self) -> bool:
        """Whether this kernel holds its run."""
        return self._hold is not None

    def begin(self, wish: Wish) -> str:
        """Hold the run that the user names, or the notebook's current one.

        Parameters
        ----------
        wish : Wish
            From ``%nbckpt start``; what it leaves out comes from the environment.

        Returns
        -------
        str
            The run's id.
        """
        self.release()
        named = ((k, getattr(wish, k)) for k in ("run_id", "version", "store"))
        given = {k: v for k, v in named if v}
        environment = wish_of_environment()
        wants_new = wish.fresh or wish.overlap == "concurrent"
        if wants_new and wish != self._started:
            # Not the run that this kernel took before, or was refused.
            given = {"run_id": environment.run_id, **given}
        stops = wish.stop_on_redo or environment.stop_on_redo
        self.wish = replace(self.wish, **given, fresh=wish.fresh, stop_on_redo=stops)
        if wish.overlap != "skip":
            self.wish = replace(self.wish, overlap=wish.overlap)
        self.hold()
        self._started = wish
        return self.run_id

    def hold(self) -> None:
        """Hold the run, once."""
        if self._hold is not None:
            return
        self.store = self._store = self._store or self.open_store()
        self.plan = self._read_plan()
        run = self._open_run()
        self.worktree = WorktreeWatch(self.store, run.run_id, self.identity.base)
        if self._leases is None or self._leases.store is not self.store:
            self._leases = Leases(self.store)
        self._hold = self._leases.hold(
            run.run_id,
            self.wish.overlap,
            lambda tx, _: runs.refuse_cancelled(tx, run.run_id),
        )
        self.journal = journal.Journal(
            self.store, run.run_id, self._hold.token, self._hold.guard
        )
        self.paths = Paths(self.identity.base)
        self.inputs = Inputs(self.names, self.paths, self.store.secret, self.imported)
        self.checkpoints = Checkpoints(self.store, self.namespace)
        self.recorder = Recorder(self.shell, self.store.folder / "spill")
        self.claims = Claims(self.journal)
        self.passes.look_at(self.working_folder.standing, self.inputs.standing)
        self.watch = Watch(self.paths, self.store.folder, self.claims.take)
        self.survey = Survey(self.journal, self.plan, self.paths)
        try:
            postures.enter(self.journal, self.plan, self.wish, self.worktree)
        except BaseException:
            self.release()  # else the next cell would go on without the plan
            raise
        atexit.register(self.release)

    def alone(self) -> None:
        """Make sure, before an effect, that no former holder acts any more."""
        if self._hold is not None:
            self._hold.alone()

    def open_store(self) -> Store:
        """Return the notebook's store."""
        base, notebook = self.identity.base, self.identity.notebook or ""
        named = self.wish.store
        folder = base / named if named else places.wanted(base, str(notebook))
        return Store(folder, load_secret())

    def _open_run(self) -> RunRecord:
        """Return the run, begun if need be; refuse another workflow version."""
        wish, stem = self.wish, self.identity.stem
        run_id = keys.check_run_id(wish.run_id) if wish.run_id else ""
        wanted = RunRecord(run_id, str(self.identity.notebook or ""), wish.version)
        fresh = wish.fresh or wish.overlap == "concurrent"
        if not run_id and not fresh:
            adopt(self.store, stem, wanted.notebook, self.plan)
        run = runs.open_run(self.store, stem, wanted, fresh=fresh)
        # Taken: a second start in this kernel means this run, not a new one each time.
        self.wish = replace(wish, run_id=run.run_id, fresh=False)
        if run.why:
            sys.stderr.write(f"nbckpt: {run.why}; this is {run.run_id}\n")
        runs.check_version(self.store, run, wish.version)
        parameters.check_given(Reader(self.store), run, wish)
        return run

    def _read_plan(self) -> PlanRecord | None:
        """Return the plan that the notebook's file holds, if its path is known."""
        notebook = self.identity.notebook
        if notebook is None or notebook.suffix not in ENDINGS:
            return None
        try:
            sources = read_sources(notebook)
        except BadNotebook:
            return None
        self._doubles = doubles(sources)
        return read_plan(sources, parse_body)

    def enter(self, step: Step, body: Body) -> None:
        """Check that a step's name is its own in this pass, and that the plan knows it."""
        if not self.stillness.holds:
            self.inputs.forget()
        self.seeding.notice()
        self._taken = None
        self._dropped |= set(step.drop)
        cell = cell_id(self.shell)
        before = self._seen.get(step.name)
        double = before is not None and self._are_two(before, (cell, body.code))
        if double or step.name in self._doubles:
            raise twice(step.name)
        self._seen[step.name] = (cell, body.code)
        self.passes.enter(step.name)
        self._plan_for(step, body, self._name_before(step.name, cell))

    def _plan_for(self, step: Step, body: Body, gone: str) -> None:
        """Have the plan hold a step, and not the name that its cell had before."""
        plan = self.journal.plan(self.run_id)
        steps = [other for other in plan.steps if other.name != gone]
        if all(step.name != other.name for other in steps):
            steps.append(planned(len(plan.steps) + 1, step, body.code))
        if len(steps) != len(plan.steps) or gone:
            # What is durable and written later brings it along: no attempt without it.
            grown = replace(plan, steps=tuple(steps))
            self.journal.write_plan(grown, durable=False)

    def _name_before(self, name: str, cell: str) -> str:
        """Return the name that a cell had in this kernel, if no cell has it any more."""
        if not cell:
            return ""
        before, self._names[cell] = self._names.get(cell, name), name
        return "" if before in self._names.values() else before

    def _are_two(self, before: tuple[str, str], now: tuple[str, str]) -> bool:
        """Tell whether two executions under one name come from two cells.

        A front end tells its cells apart; programs that send cells without ids run each
        once in a pass, so that other code means another cell.
        """
        if before[0] and now[0]:
            return before[0] != now[0]
        return before[1] != now[1] and hasattr(self.shell, "kernel")

    def values(self, *, still: bool = False) -> variables.Namespace:
        """Return the user's variables that are kept; still: nothing ran meanwhile."""
        left_out, moved = self._hidden | self._dropped, self.names.moved(still=still)
        return variables.user_names(self.namespace | moved, left_out)

    def _left(self) -> snapshots.Snapshot | None:
        """Return what the last step left, if a body that begins now finds it so."""
        return self.stillness.snapshot if self.stillness.holds else None

    def snapshot(self) -> snapshots.Snapshot:
        """Return the namespace as it is before a body, taken once for each step."""
        self._taken = self._taken or self._left()
        self._taken = self._taken or snapshots.take(self.values(), self.namespace)
        return self._taken

    def sharing(
        self, body: Body, changed: set[str], before: snapshots.Snapshot | None = None
    ) -> dict[str, str]:
        """Return what shares objects with names that a body changes, and does not bind."""
        changed = {name for name in changed if name in self.names}
        if not changed:
            return {}
        own = body.reads.bound | body.reads.assigned
        return snapshots.sharing(before or self.snapshot(), changed, own)

    def digests(self) -> dict[str, str]:
        """Return a digest of each variable, to tell within this kernel what changed."""
        parts = snapshots.take(self.values(), self.namespace).parts
        return {name: part.digest for name, part in parts.items()}

    def executing(self) -> None:
        """Take note that a cell, or anything else, begins to run."""
        self.seeding.notice()
        self.stillness.executing()
        self.passes.executing()

    def note_source(self, source: str) -> None:
        """Take note of a plain cell's source: it may seed, or begin the notebook anew."""
        if "load_ext nbckpt" in source or "nbckpt start" in source:
            self._seen.clear()
            self.passes.begin()
        self.seeding.note_source(source)

    def fingerprint(
        self, step: Step, body: Body, record: StepRecord | None
    ) -> Fingerprint:
        """Return a step's fingerprint as things stand."""
        recorded = record.fingerprint if record else Fingerprint()
        visible = set(self.values(still=self._left() is not None))
        found = self.inputs.fingerprint(step, body, visible, recorded)
        if record is None:
            inputs = self.passes.tried_again(step.name, found.inputs)
            return replace(found, inputs=inputs)
        left = self.survey.left(record)
        return replace(
            found,
            sharing=self.sharing(body, inherited(body.reads, record)),
            inputs=self.passes.explained(recorded.inputs, found.inputs, left),
            files=self.survey.explained(record, found.files),
            **self.survey.listings(record),
            working_folder=self.working_folder.compared(recorded.working_folder),
            random=self.seeding.compared(recorded.random, ambient.streams()),
        )

    def _reachable(self, step: Step, body: Body, inputs: Iterable[str]) -> list[Any]:
        """Return the values that a body can use without opening them itself."""
        names = {*body.reads.names, *inputs, *step.ignore}
        return [self.namespace[name] for name in names if name in self.namespace]

    def start_watching(
        self, step: Step, body: Body, inputs: Iterable[str], attempt: Attempt
    ) -> None:
        """Begin to notice files and to record outputs."""
        self.claims.start(attempt, self.survey.writers())
        self.watch.touched = Touched()
        self.watch.consider(self._reachable(step, body, inputs))
        self.watch.start()
        self.recorder.start()

    def bind(self, record: StepRecord, restored: Restored) -> Callable[[], None]:
        """Bind a checkpoint's names; return what takes it back."""
        self._taken = None
        touched = {*restored.values, *record.contents.deleted}
        before = {n: self.names.get(n, variables.MISSING) for n in touched}
        for name, value in restored.values.items():
            self.names.bind(name, value)
        for name in record.contents.deleted:
            self.names.unbind(name)

        def undo() -> None:
            for name, value in before.items():
                if value is variables.MISSING:
                    self.names.unbind(name)
                else:
                    self.names.bind(name, value)

        return undo

    def bring_back(self, record: StepRecord, restored: Restored) -> None:
        """Restore what is around the variables, and show the outputs again."""
        for name, line in restored.magics:
            if name in ambient.REPLAYED:
                self.shell.run_line_magic(name, line)
        ambient.restore(restored.around, self.paths.base)
        self.seeding.mark(record.seeded)
        self._remember(record)
        self.replay(restored.outputs, restored.result)
        self.stillness.settle()

    def _remember(self, record: StepRecord) -> None:
        """Take the digests of a step's names from its record."""
        self.inputs.forget_names([*record.contents.bound, *record.contents.deleted])
        for name, value in record.contents.values.items():
            again = partial(self.checkpoints.load_again, record.contents, name)
            self.inputs.remember(name, value, again)

    def replay(self, outputs: bytes, result: Any = variables.MISSING) -> None:
        """Show recorded outputs again, and bind ``_`` and ``Out``."""
        if self.silent and hasattr(self.shell, "kernel"):
            return  # a terminal prints all the same
        replay(self.shell, outputs)
        if result is not variables.MISSING:
            self.shell.displayhook.update_user_ns(result)

    def result(self) -> Any:
        """Return the value that the running cell showed as its result, if any."""
        value = getattr(self.shell.displayhook.exec_result, "result", None)
        return variables.MISSING if value is None else value

    def secrets(self) -> Secrets:
        """Return what must not reach the disk."""
        return Secrets.of_environment()

    def completed(
        self, record: StepRecord, snapshot: snapshots.Snapshot | None
    ) -> None:
        """Take note of a step that is recorded."""
        self._remember(record)
        self.seeding.mark(record.seeded)
        self.stillness.settle(snapshot)
        self._complete_if_done()

    def _complete_if_done(self) -> None:
        """Mark the run completed when every step of its plan is."""
        plan, steps = self.journal.plan(self.run_id), self.journal.steps(self.run_id)
        if all(step.name in steps for step in plan.steps) and self.plan is not None:
            self.journal.complete_run()

    def release(self) -> None:
        """Give the run back."""
        hold, self._hold = self._hold, None
        if hold is None:
            return
        self.recorder.uninstall()
        hold.release()
        self.store.close()
        self._store = None
        atexit.unregister(self.release)
