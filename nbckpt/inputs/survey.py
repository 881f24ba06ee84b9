"""The evidence of a run against the world: which files are as its steps left them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt.inputs.proofs import Writers

if TYPE_CHECKING:
    from nbckpt.inputs.proofs import Paths
    from nbckpt.records import PlanRecord, StepRecord
    from nbckpt.runs.journal import Journal


class Survey:
    """Verifies the files of a run that this process holds.

    Parameters
    ----------
    journal : Journal
        The run's memory.
    plan : PlanRecord or None
        What the notebook's file holds now, if its path is known.
    paths : Paths
        Names of files.
    """

    def __init__(self, journal: Journal, plan: PlanRecord | None, paths: Paths) -> None:
        self._journal = journal
        self._plan = plan
        self._paths = paths
        self._made = False

    def writers(self) -> Writers:
        """Return who wrote which file, of the steps that the notebook still has."""
        journal = self._journal
        order = [step.name for step in journal.plan(journal.run_id).steps]
        steps, attempts = (
            journal.steps(journal.run_id),
            journal.attempts(journal.run_id),
        )
        return Writers(self._paths, order, steps, attempts, self._edited(steps))

    def _edited(self, steps: dict[str, StepRecord]) -> frozenset[str]:
        """Return the steps whose code in the notebook's file is another than recorded."""
        planned = self._plan.steps if self._plan else ()
        found = {step.name: step.code for step in planned if step.name in steps}
        return frozenset(
            name
            for name, code in found.items()
            if code != steps[name].fingerprint.code
            and code not in self._journal.mark(self._journal.run_id, name).accepted
        )

    def left(self, record: StepRecord) -> dict[str, set[str]]:
        """Return what a step and those below it left in modules: digests by dotted name."""
        run_id = self._journal.run_id
        order = [step.name for step in self._journal.plan(run_id).steps]
        if record.step not in order:
            return {}
        below = set(order[order.index(record.step) :])
        found: dict[str, set[str]] = {}
        for name, other in self._journal.steps(run_id).items():
            for key, value in other.contents.values.items() if name in below else ():
                if "." in key:
                    found.setdefault(key, set()).add(value.digest)
        return found

    def verify(self, record: StepRecord) -> list[str]:
        """Return which files of a record are not as they should be."""
        return self.writers().verify(record) if record.evidence.files else []

    def explained(self, record: StepRecord, files: dict[str, str]) -> dict[str, str]:
        """Return digests of files as a step had read them, if the run explains a change.

        Parameters
        ----------
        record : StepRecord
            The step.
        files : dict
            Name → digest now.

        Returns
        -------
        dict
            Recorded digests of files that the step itself or one below changed.
        """
        recorded = record.fingerprint.files
        if files == recorded:
            return files
        writers = self.writers()
        return {
            name: recorded[name]
            if name in recorded and writers.explain(record, name)
            else now
            for name, now in files.items()
        }

    def listings(self, record: StepRecord) -> dict[str, Any]:
        """Return what the folders that a step listed hold, but for the run's doing."""
        read = record.fingerprint
        if not (read.folders or read.globs):
            return {}
        return self.writers().listings(record)

    def make(self) -> None:
        """Verify the evidence of every recorded step, once, before the first body runs.

        What does not check out stands in the history before anything is changed.
        """
        if self._made:
            return
        self._made = True
        writers, steps = self.writers(), self._journal.steps(self._journal.run_id)
        findings = {name: writers.verify(record) for name, record in steps.items()}
        found = {name: texts for name, texts in findings.items() if texts}
        good = len(steps) - len(found)
        self._journal.note("surveyed", verified=good, findings=found)
