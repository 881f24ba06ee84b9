"""What a step leaves when its body returned: from the kernel's state to its record."""

from __future__ import annotations

import sys
import time
import types
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nbckpt.codecs import stored_globals
from nbckpt.current import Gathered
from nbckpt.inputs.proofs import ABSENT, Paths
from nbckpt.inputs.watch import Touched
from nbckpt.inputs.workingfolder import ASKING
from nbckpt.records import SEEDED_BY_STEP, Contents, Evidence, StepRecord, Value
from nbckpt.source.lasting import lasting
from nbckpt.state import ambient, snapshots, variables
from nbckpt.state.checkpoints import Work, pack_name
from nbckpt.state.modulestate import home
from nbckpt.store.packs import Pack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.inputs.fingerprint import Body
    from nbckpt.outputs import Recording
    from nbckpt.plan import Step
    from nbckpt.records import Attempt, Fingerprint
    from nbckpt.session import Session
    from nbckpt.state.loose import Loose


@dataclass(slots=True)
class Running:
    """A step whose body is running, or ran and is not saved yet."""

    step: Step
    body: Body
    fingerprint: Fingerprint
    reason: str
    attempt: Attempt
    earlier: StepRecord | None
    """What stood before it, if that could be believed."""
    before: snapshots.Snapshot
    ground: snapshots.Snapshot
    """The same, without names that the body binds: they are its own, even if equal."""
    bare: snapshots.Snapshot
    """The same, without those that it may bind either."""
    loose: Loose
    """Tells which of those it did bind."""
    around: ambient.State
    aliases: dict[str, str]
    """Digests of names whose objects overlap with inputs."""
    started: float
    seconds: float = 0.0
    recording: Recording | None = None
    touched: Touched | None = None
    gathered: Gathered = field(default_factory=Gathered)
    rebound: set[str] = field(default_factory=set)
    """Names that it bound, of those that it may bind."""
    left: dict[str, str] | None = None
    """Digests of all names after a body whose save failed."""


def completion(
    running: Running, session: Session
) -> tuple[StepRecord, Pack, snapshots.Snapshot]:
    """Write what a step leaves and return the record of it.

    Parameters
    ----------
    running : Running
        A step whose body returned and whose checks are true.
    session : Session
        The kernel's hold on its run.

    Returns
    -------
    tuple of StepRecord, Pack and Snapshot
        The bytes that the record names are on disk, or come along in the pack.

    Raises
    ------
    OSError
        If they can't be written.
    """
    step, attempt = running.step, running.attempt
    touched = running.touched or Touched()
    work, after = _work(running, session)
    names = work.changes.names
    why = _why_not_kept(work, running.body, session)
    name = pack_name(session.run_id, attempt.token, attempt.order)
    if why or step.always:
        contents, pack = Contents(bound=tuple(names)), Pack(name, None)
    else:
        contents, pack = session.checkpoints.write(name, work, session.secrets())
    values = _digests(names, session)
    record = StepRecord(
        run_id=session.run_id,
        step=step.name,
        attempt=attempt.attempt,
        token=attempt.token,
        order=attempt.order,
        fingerprint=_fingerprint(running, touched, work, session),
        evidence=_evidence(running, touched, session),
        contents=replace(contents, values=values),
        started_at=running.started,
        completed_at=time.time(),
        seconds=running.seconds,
        runs_again=why,
    )
    return record, pack, after


def _evidence(running: Running, touched: Touched, session: Session) -> Evidence:
    """Return the evidence of a step that just completed.

    A file that it made and removed again is none; one that stood before must stay away.
    A database of its own that it opened and left as it was goes on being evidence.
    """
    step, paths, earlier = running.step, session.paths, _earlier(running)
    left = touched.opened.keys() & earlier
    names = {*touched.written, *paths.expand(step.writes), *left}
    digests = {name: paths.digest(name) for name in sorted(names)}
    files = {
        name: digest
        for name, digest in digests.items()
        if digest != ABSENT or name in touched.removed
    }
    made = {*touched.lasting_folders(paths)}
    made |= {n for n in earlier - files.keys() if paths.locate(n).exists()}
    told = running.gathered
    return Evidence(
        files=files,
        checks=step.checks,
        note="\n".join(filter(None, [step.note, *dict.fromkeys(told.notes)])),
        learned=told.learned,
        confirmed=tuple(dict.fromkeys(told.confirmed)),
        made=tuple(sorted(made)),
    )


def files_read(
    fingerprint: Fingerprint, touched: Touched, paths: Paths
) -> dict[str, str]:
    """Return the digests of the files that a step read, as they were before it.

    Parameters
    ----------
    fingerprint : Fingerprint
        Holds the declared ones already.
    touched : Touched
        Files that were noticed.
    paths : Paths
        Names of files.

    Returns
    -------
    dict
        Name → digest.
    """
    found = dict(fingerprint.files)
    for name, before in touched.read.items():
        if name in touched.written:
            if before:
                found[name] = before
        else:
            found[name] = paths.digest(name)
    return found


def _earlier(running: Running) -> set[str]:
    """Return what attempts before this one wrote or made."""
    before = running.earlier
    found = {*before.evidence.files, *before.evidence.made} if before else set()
    claimed = {name for name in running.attempt.writes if not name.endswith("/")}
    return found | claimed


def _work(running: Running, session: Session) -> tuple[Work, snapshots.Snapshot]:
    """Return what a step's body did, and the namespace after it."""
    session.names.note(running.body.attributes)
    values, namespace = session.values(), session.namespace
    ground = snapshots.cleared(running.ground, running.bare, running.rebound)
    after = snapshots.take(values, namespace, ground)
    changed = snapshots.changes(running.before, after)
    homes = {home(name) for name in changed.names}
    # A module that ``try: import`` did not find is none that a skip must import.
    imported = running.body.reads.modules & sys.modules.keys()
    around = _around(running, session)
    withheld = ambient.unnamed(around, _texts(running.body))
    work = Work(
        changes=variables.hide(changed, values, namespace, session.secrets()),
        around=ambient.without_variables(around, withheld),
        withheld=withheld,
        outputs=running.recording,
        result=session.result(),
        magics=running.body.reads.magics,
        imports=sorted({*imported, *filter(None, homes)}),
        binds=frozenset(_bound(running, session)),
    )
    return work, after


def _around(running: Running, session: Session) -> ambient.State:
    """Return what a body set around the variables."""
    now = ambient.capture()
    # A stream that the step seeded may stand where it stood, and is set all the same.
    seeded = {stream: now[stream] for stream in sorted(session.seeding.own)}
    found = ambient.changed(running.around, now) | seeded
    # A project that moves takes its folders along.
    return {n: session.paths.name(v) if n == "folder" else v for n, v in found.items()}


def _texts(body: Body) -> set[str]:
    """Return the texts that a step's source spells out, and the lines of its magics."""
    magics = body.reads.magics
    lines = {line for _, line in magics}
    return body.reads.constants | lines | ambient.values_in_magics(magics)


def _why_not_kept(work: Work, body: Body, session: Session) -> str:
    """Return why a step's work can't be kept whole; empty if it can."""
    found = session.checkpoints.refusals(work)
    found = found or lasting(body.calls, session.namespace)
    spelled = body.reads.constants | ambient.values_in_magics(body.reads.magics)
    unspelled = ambient.unspelled(work.around, spelled)
    if unspelled and not found:
        return (
            f"os.environ[{unspelled[0]!r}]: its value is not stored, it may be secret"
        )
    return found


def _digests(names: list[str], session: Session) -> dict[str, Value]:
    """Return the digests of names as inputs of later steps."""
    session.inputs.forget_names(names)
    known = [name for name in names if name in session.names]
    return {name: session.inputs.value(name) for name in known}


def _fingerprint(
    running: Running, touched: Touched, work: Work, session: Session
) -> Fingerprint:
    """Return a step's fingerprint with what only its run could tell."""
    before, after = running.around, ambient.streams()
    own = session.seeding.own
    moved = {n for n in after if before[n] not in (None, after[n])} - own
    random = session.seeding.digests(sorted(moved), running.around)
    if running.body.reads.seeds:
        session.seeding.mark(moved)
    found, implied = running.fingerprint, _implied(running, work, session)
    modules, versions = session.inputs.grounds(implied, running.body.reads.modules)
    changed = set(work.changes.names) - running.body.reads.bound
    return replace(
        found,
        inputs={**implied, **found.inputs},
        sharing=session.sharing(
            running.body, changed - running.rebound, running.before
        ),
        modules={**modules, **found.modules},
        versions={**versions, **found.versions},
        files=files_read(found, touched, session.paths),
        environment=found.environment | _variables(running, touched, session),
        **touched.listings(session.paths),
        working_folder=_working_folder(running, touched, session),
        random=random | dict.fromkeys(sorted(own), SEEDED_BY_STEP),
        unknown=found.unknown or _unsteady(running.step, touched, session.paths),
    )


def _unsteady(step: Step, touched: Touched, paths: Paths) -> str:
    """Return which file the step did not see as it is now; empty if there is none."""
    own = {*touched.written, *touched.opened, *paths.expand(step.writes)}
    for name in touched.still.changed(paths, own):
        return (
            f"file {name!r} was changed while the step ran, after it had opened it "
            f"(if the step itself changes it: %%step {step.name} --writes {name})"
        )
    return ""


def _working_folder(
    running: Running, touched: Touched, session: Session
) -> tuple[str, ...]:
    """Return the ways to the folder that a body told paths from, or asked for."""
    last = {call.rpartition(".")[2] for call in running.body.calls}
    is_used = touched.is_placed or bool(last & ASKING)
    return session.working_folder.ways(touched.began) if is_used else ()


def _variables(running: Running, touched: Touched, session: Session) -> dict[str, str]:
    """Return the digests of the environment variables that a body read as they were."""
    before, ignored = running.around["environment"], running.step.ignore
    read = touched.environment.items()
    return session.inputs.variables(
        {n: v for n, v in read if v == before.get(n) and n not in ignored}
    )


def _implied(running: Running, work: Work, session: Session) -> dict[str, str]:
    """Return what changed names held before, where the source does not bind them.

    They are bound again when the step is skipped, which is right only on top of what
    the step had found. Of a name that no alias or function explains only the outcome
    is known: the step is then skipped if it would change nothing. So it is with names
    that it may have bound, or did the last time, and that hold what they held before.
    """
    changed = set(work.changes.names)
    own = work.binds | set(running.earlier.contents.bound if running.earlier else ())
    held = (changed - work.binds) | (own - changed)
    return {
        name: running.aliases.get(name) or session.inputs.value(name).digest
        for name in sorted(held & running.before.parts.keys())
        if name in session.names and name not in running.step.ignore
    }


def _bound(running: Running, session: Session) -> set[str]:
    """Return the names that a body, or a function that it reaches, binds."""
    reached = map(session.names.get, running.fingerprint.inputs)
    codes = [f.__code__ for f in reached if isinstance(f, types.FunctionType)]
    reads = running.body.reads
    return set().union(reads.bound, reads.assigned, *map(stored_globals, codes))


def aliases(
    names: Iterable[str], snapshot: snapshots.Snapshot, session: Session
) -> dict[str, str]:
    """Return the digests of names whose objects overlap with some that are read.

    Parameters
    ----------
    names : iterable of str
        Names that a step reads.
    snapshot : Snapshot
        The namespace before its body.
    session : Session
        The kernel's hold on its run.

    Returns
    -------
    dict
        Name → digest; a body can change these without naming them.
    """
    read = set(names)
    groups = [g for g in snapshot.components if len(g) > 1 and g & read]
    found = sorted(set().union(*groups))
    return {name: session.inputs.value(name).digest for name in found}
