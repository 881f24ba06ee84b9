"""What would happen to each step if the notebook ran now: run, skip, or not to be told.

The same decision as a run's, `nbckpt.resume.decide`, on what can be found out without a
kernel. What only a kernel can tell makes a prediction *unknown*, never a guess: a
prediction of *run* or *skip* is what the next run does.
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from nbckpt.codecs import Canonical
from nbckpt.inputs.localmodules import source_digest
from nbckpt.inputs.proofs import Paths, Writers
from nbckpt.records import Fingerprint, Mark, PlannedStep, StepRecord
from nbckpt.resume import Run, Situation, Stop, decide
from nbckpt.verbs.prepare.outline import MISSING, Origin, Outlined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nbckpt.verbs.prepare.knowledge import Known

Word = Literal["run", "skip", "unknown", "stop"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """What would happen to a step, and why."""

    word: Word
    reason: str


def predict(
    steps: Sequence[Outlined], known: Known, paths: Paths, now: float | None = None
) -> dict[str, Prediction]:
    """Predict what a run of the notebook would do.

    Parameters
    ----------
    steps : sequence of Outlined
        The notebook's steps, in order.
    known : Known
        What the store knows of its run.
    paths : Paths
        Names of files.
    now : float, optional
        Wall clock in seconds since the epoch.

    Returns
    -------
    dict
        Step → prediction, in order.
    """
    oracle = _Oracle(steps, known, paths, time.time() if now is None else now)
    for step in steps:
        oracle.take(step)
    return oracle.found


class _Oracle:
    """Goes through the steps in order; what is not skipped makes others uncertain."""

    def __init__(
        self, steps: Sequence[Outlined], known: Known, paths: Paths, now: float
    ) -> None:
        self.found: dict[str, Prediction] = {}
        self._known = known
        self._paths = paths
        self._now = now
        self._recorded = {step.name: step for step in known.plan.steps}
        names = [step.step.name for step in steps]
        self._records = {n: r for n, r in known.records.items() if n in names}
        self._writers = Writers(
            paths, names, self._records, known.attempts, self._edited(steps)
        )
        self._moving: list[Outlined] = []
        self._stopped = ""

    def _edited(self, steps: Sequence[Outlined]) -> frozenset[str]:
        """Return the steps whose code is another than recorded: they run again."""
        found = {s.step.name: s.planned.code for s in steps}
        return frozenset(
            name
            for name, record in self._records.items()
            if found[name] != record.fingerprint.code
            and found[name] not in self._known.marks.get(name, Mark()).accepted
        )

    def take(self, step: Outlined) -> None:
        """Predict one step."""
        found = self._predict(step)
        self.found[step.step.name] = found
        if found.word == "stop":
            self._stopped = step.step.name
        if found.word != "skip":
            self._moving.append(step)

    def _predict(self, step: Outlined) -> Prediction:
        """Return what would happen to a step."""
        if self._stopped:
            return Prediction("unknown", f"the notebook stops at step {self._stopped}")
        record = self._records.get(step.step.name)
        doubts: list[str] = []
        decision = decide(self._situation(step, record, doubts))
        if isinstance(decision, Stop):
            return Prediction("stop", decision.reason)
        if isinstance(decision, Run) or record is None:
            return self._run(step, decision.reason)
        if not all(map(self._known.has_pack, record.contents.packs)):
            return Prediction("run", "its values can't be loaded: a pack is missing")
        if doubts:
            return Prediction("unknown", "; ".join(doubts[:3]))
        accepted = record.fingerprint.code != step.planned.code
        reason = "its code change was accepted" if accepted else "verified"
        return Prediction("skip", reason)

    def _run(self, step: Outlined, reason: str) -> Prediction:
        """Return that a body runs, or stops at what it made under another name."""
        former = self._known.formers.get(step.planned.code)
        return Prediction("stop", former) if former else Prediction("run", reason)

    def _situation(
        self, step: Outlined, record: StepRecord | None, doubts: list[str]
    ) -> Situation:
        """Return what a decision rests on; what can't be told goes into the doubts."""
        name = step.step.name
        mark = self._known.marks.get(name, Mark())
        attempt = self._known.attempts.get(name)
        now = record.fingerprint if record else Fingerprint()
        findings: list[str] = []
        if record is not None:
            moved = set(self._moved_files(record, doubts))
            now = replace(
                now,
                code=step.planned.code,
                options=step.step.options_fingerprint,
                inputs=self._inputs(step, record, doubts),
                files=self._files(step, record, moved),
                modules=self._modules(record, doubts),
                **({} if self._moving else self._writers.listings(record)),
            )
            findings = self._findings(record, moved)
            doubts += self._other_doubts(step, record)
        return Situation(
            record=record,
            now=now,
            findings=tuple(findings),
            accepted=mark.accepted,
            rerun=mark.rerun,
            always=step.step.always,
            age=self._now - record.completed_at if record else 0.0,
            max_age=step.step.max_age,
            last_attempt=attempt.state if attempt else None,
            stop_on_redo=step.step.stop_on_redo,
            damaged=self._known.damaged.get(name, ""),
        )

    def _moved_files(self, record: StepRecord, doubts: list[str]) -> Iterator[str]:
        """Yield files that a step which may run makes again."""
        needed = record.fingerprint.files.keys() | record.evidence.files.keys()
        lists = record.fingerprint.folders or record.fingerprint.globs
        for step in self._moving:
            if lists:
                doubts.append(f"step {step.step.name} may write where it lists files")
            other = self._records.get(step.step.name)
            written = set(self._paths.expand(step.step.writes))
            written |= other.evidence.files.keys() if other else set()
            attempt = self._known.attempts.get(step.step.name)
            written |= set(attempt.writes) if attempt else set()
            for name in sorted(needed & written):
                doubts.append(
                    f"file {name!r} is made by step {step.step.name}, which may run"
                )
                yield name

    def _files(
        self, step: Outlined, record: StepRecord, moved: set[str]
    ) -> dict[str, str]:
        """Return the digests of the files that a step reads, as a run takes them."""
        found = dict(record.fingerprint.files)
        names = set(self._paths.expand(step.step.reads)) | found.keys()
        for name in sorted(names - moved):
            if name not in found or not self._writers.explain(record, name):
                found[name] = self._writers.digest(name)
        return found

    def _findings(self, record: StepRecord, moved: set[str]) -> list[str]:
        """Return what the world does not confirm, apart from files made again."""
        files = {n: d for n, d in record.evidence.files.items() if n not in moved}
        steady = replace(record, evidence=replace(record.evidence, files=files))
        return self._writers.verify(steady)

    def _inputs(
        self, step: Outlined, record: StepRecord, doubts: list[str]
    ) -> dict[str, str]:
        """Return the inputs' digests as far as they can be told."""
        steady = self._is_steady(step.planned)
        found = {}
        for name, recorded in record.fingerprint.inputs.items():
            origin = step.origins.get(name, Origin(computed=True))
            doubt = self._doubt(name, origin)
            if not doubt:
                found[name], doubt = self._input(name, recorded, origin, steady=steady)
            if doubt:
                found[name] = recorded
                doubts.append(doubt)
        return found

    def _input(
        self, name: str, recorded: str, origin: Origin, *, steady: bool
    ) -> tuple[str, str]:
        """Return an input's digest, or why it can't be told from the source."""
        digests = self._digests(name, origin)
        if recorded in digests:
            return recorded, ""
        if len(digests) == 1 and not origin.computed:
            return digests.pop(), ""
        if digests or (origin.computed and not steady):
            return "", f"input {name!r}: the plain cells above it changed"
        return recorded, ""

    def _doubt(self, name: str, origin: Origin) -> str:
        """Return why an input can't be told at all; empty if it may be."""
        for step in self._moving:
            made = step.step.name in origin.steps or self._may_change(
                step, name, origin
            )
            if made:
                return f"input {name!r} comes from step {step.step.name}, which may run"
        if origin.volatile:
            return f"input {name!r} is computed by a plain cell and may differ"
        return ""

    def _may_change(self, step: Outlined, name: str, origin: Origin) -> bool:
        """Tell whether a step that may run makes or changes a name."""
        record = self._records.get(step.step.name)
        bound = {*record.contents.bound, *record.contents.deleted} if record else set()
        if name in bound or name in step.bound or step.dynamic:
            return True
        # What known code does inside a value stands in its record; new code may do more.
        is_new = record is None or record.fingerprint.code != step.planned.code
        return is_new and name in step.loaded and not origin.fixed

    def _digests(self, name: str, origin: Origin) -> set[str]:
        """Return the digests that an input can have: written out, or recorded."""
        found = set()
        if origin.literal is not MISSING:
            found.add(Canonical(origin.literal, {}).digest)
        for other in reversed(self._before()):
            value = other.contents.values.get(name)
            if value is not None:
                found.add(value.digest)
                break
        return found

    def _before(self) -> list[StepRecord]:
        """Return the records of the steps above, in the notebook's order."""
        above = list(self.found)
        return [self._records[name] for name in above if name in self._records]

    def _is_steady(self, planned: PlannedStep) -> bool:
        """Tell whether the plain cells above are those of the step's last confirmation."""
        recorded = self._recorded.get(planned.name)
        if recorded is None or self._known.plan.source != "notebook":
            return False
        confirmed = self._known.confirmed.get(planned.name, 0.0)
        # A plan that is younger was written by a pass that did not come this far.
        return (
            recorded.before == planned.before
            and self._known.plan.written_at <= confirmed
        )

    def _modules(self, record: StepRecord, doubts: list[str]) -> dict[str, str]:
        """Return the digests of local modules, as the notebook's folder holds them."""
        found = dict(record.fingerprint.modules)
        for name in found:
            path = self._paths.base.joinpath(*name.split("."))
            files = [path.with_suffix(".py"), path / "__init__.py"]
            source = next((file for file in files if file.is_file()), None)
            if source is None:
                doubts.append(f"module {name!r} is not in the notebook's folder")
            else:
                found[name] = source_digest(source)
        return found

    def _other_doubts(self, step: Outlined, record: StepRecord) -> Iterator[str]:
        """Yield what only the kernel can tell of a step."""
        yield from self._differences_here(record)
        in_place = sorted({*record.contents.bound} - set(step.bound))
        if in_place and not self._is_steady(step.planned):
            yield f"what shares objects with {in_place[0]!r}: the plain cells changed"
        drawn = sorted(record.drawn)
        if drawn and any(map(self._may_draw, self._moving)):
            yield f"random stream {drawn[0]!r} may stand elsewhere"
        if drawn and not self._is_steady(step.planned):
            yield f"random stream {drawn[0]!r}: the plain cells above it changed"

    def _differences_here(self, record: StepRecord) -> Iterator[str]:
        """Yield how this process differs from the kernel that made a record."""
        for name, digest in record.fingerprint.environment.items():
            if self._known.environment(name) != digest:
                yield f"environment variable {name!r} differs here"
        for package, version in record.fingerprint.versions.items():
            if _version(package) not in {"", version}:
                yield f"version of {package} differs here"

    def _may_draw(self, step: Outlined) -> bool:
        """Tell whether a step that may run moves random streams."""
        record = self._records.get(step.step.name)
        same = record is not None and record.fingerprint.code == step.planned.code
        return not same or bool(record and record.fingerprint.random)


def _version(package: str) -> str:
    """Return the version of a package in this environment; empty if it can't be told."""
    if package == "python":
        return f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
