"""``nbckpt rehearse``: each step twice, then killed at every boundary of a step.

The kernel is killed by SIGKILL where a body has ended and nothing of it is recorded,
and right after the record. Kills inside a body are not tried: what a body does twice
when it is run twice shows in the first part.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from nbckpt.headless.scratch import Scratch, State, killed_after, killed_before
from nbckpt.plan import read_plan, read_step, step_line
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.forms.pages import Page, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nbckpt.headless.passes import End


class Difference(TypedDict):
    """One thing that a repetition or a kill changes."""

    kind: str
    """``value``, ``file``, ``output``, ``effect``, ``lost``, ``ran-again``, ``stopped``."""
    step: str
    when: str
    """``twice``, or where the kernel was killed."""
    what: str


class Rehearsal(TypedDict):
    """What ``nbckpt rehearse --json`` prints."""

    notebook: str
    ok: bool
    steps: list[str]
    kills: int
    findings: list[Difference]
    scratch: str
    """Where the copy is, if it was kept."""


def rehearse(
    notebook: Path,
    say: Callable[[str], None],
    *,
    timeout: float = 0.0,
    big: bool = False,
    keep: bool = False,
) -> Rehearsal:
    """Run a notebook in a scratch copy: each step twice, then killed at every boundary.

    Parameters
    ----------
    notebook : Path
        The file, which is only read.
    say : callable
        Takes each line of progress.
    timeout : float, optional
        Seconds that one pass may take; 0: any.
    big : bool, optional
        Whether a large folder may be copied.
    keep : bool, optional
        Whether the scratch copy stays.

    Returns
    -------
    Rehearsal
        Findings, and how many kills were tried.

    Raises
    ------
    BadNotebook, BadStep
        If the notebook or a step line is wrong, or the folder is large.

    Notes
    -----
    Only files below the notebook's folder are a copy. Everything else is real: the
    notebook finds ``NBCKPT_REHEARSAL=1`` in its environment, and can turn to test
    receivers by it.
    """
    sources = read_sources(notebook)
    steps = [step.name for step in read_plan(sources, parse_body).steps]
    root = Path(tempfile.mkdtemp(prefix="nbckpt-rehearsal-")).resolve()
    try:
        scratch = Scratch(notebook, root, timeout, big=big)
        stage = _Stage(scratch, steps, _always(sources), say)
        stage.play()
    finally:
        if not keep:
            shutil.rmtree(root, ignore_errors=True)
    return stage.told(str(notebook), str(root) if keep else "")


def _always(sources: list[str]) -> set[str]:
    """Return the steps that are never skipped."""
    steps = [read_step(line) for line in map(step_line, sources) if line is not None]
    return {step.name for step in steps if step.always}


class _Stage:
    """Runs the passes and compares what they come to."""

    def __init__(
        self,
        scratch: Scratch,
        steps: list[str],
        always: set[str],
        say: Callable[[str], None],
    ) -> None:
        self.findings: list[Difference] = []
        self.kills = 0
        self._scratch = scratch
        self._steps = steps
        self._always = always
        self._say = say
        self._chance: set[object] = set()

    def told(self, notebook: str, kept: str) -> Rehearsal:
        """Return what was found."""
        return Rehearsal(
            notebook=notebook,
            ok=not self.findings,
            steps=self._steps,
            kills=self.kills,
            findings=self.findings,
            scratch=kept,
        )

    def play(self) -> None:
        """Run everything."""
        cold = self._cold("once")
        if cold is None or not self._steps:
            return
        self._say(f"each of {len(self._steps)} steps a second time")
        self._scratch.ask_again(self._steps[0])
        end, again = self._scratch.run()
        if not self._is_through(end, "twice"):
            return
        self._compare(cold, again, "twice")
        self._resent(cold, again)
        if self.findings:
            # What differs between two clean runs is chance, and no work of a kill.
            other = self._cold("once more, to tell chance from repetition")
            self._chance = set() if other is None else set(_differing(cold, other))
        for step in self._steps:
            self._kill(step, cold, before=True)
            self._kill(step, cold, before=False)

    def _cold(self, words: str) -> State | None:
        """Run the notebook from the start; None if it does not get through."""
        self._say(f"the whole notebook {words}")
        self._scratch.reset()
        end, state = self._scratch.run()
        return state if self._is_through(end, words) else None

    def _kill(self, step: str, cold: State, *, before: bool) -> None:
        """Kill the kernel at a boundary, resume, and compare."""
        when = f"killed {'before the record of' if before else 'after'} {step}"
        self._say(when)
        self.kills += 1
        self._scratch.reset()
        end, _ = self._scratch.run((killed_before if before else killed_after)(step))
        if end.kind != "died":
            self._is_through(end, when)
            self._add("stopped", step, when, "the kernel did not come to this point")
            return
        end, state = self._scratch.run()
        if not self._is_through(end, when):
            return
        self._compare(cold, state, when)
        self._counts(cold, state, when)
        self._repeated(state, when, step if before else "")

    def _add(self, kind: str, step: str, when: str, what: str) -> None:
        """Add a finding."""
        self.findings.append(Difference(kind=kind, step=step, when=when, what=what))

    def _is_through(self, end: End, when: str) -> bool:
        """Tell whether a pass went through; if not, that is a finding."""
        if end.kind != "completed":
            last = end.text.strip().splitlines()[-1:] or [""]
            what = f"the notebook {end.kind} in cell {end.cell}: {end.name} {last[0]}"
            self._add("stopped", "", when, what.strip())
        return end.kind == "completed"

    def _compare(self, cold: State, now: State, when: str) -> None:
        """Tell what differs from the run that nothing disturbed."""
        for key in _differing(cold, now):
            if key in self._chance:
                continue
            kind, step, name = key
            if kind == "file":
                what = _file_words(name, cold, now)
            elif kind == "value":
                what = f"{name} has another value"
            else:
                what = "its output differs"
            self._add(kind, step, when, what)

    def _resent(self, cold: State, again: State) -> None:
        """Tell what a step sent a second time."""
        for (step, what), times in (again.sent - cold.sent).items():
            self._add("effect", step, "twice", f"{what} was sent again ({times} more)")
        for name in sorted(again.effects - cold.effects):
            step, _, key = name.partition("/")
            self._add("effect", step, "twice", f"effect {key} is new the second time")

    def _counts(self, cold: State, now: State, when: str) -> None:
        """Tell what was sent too often or not at all."""
        for (step, what), times in (now.sent - cold.sent).items():
            self._add("effect", step, when, f"{what} was doubled ({times} more)")
        for (step, what), times in (cold.sent - now.sent).items():
            self._add("lost", step, when, f"{what} was lost ({times} fewer)")

    def _repeated(self, now: State, when: str, flight: str) -> None:
        """Tell which bodies ran again although they were recorded."""
        times = Counter(event.step for event in now.started)
        for step, count in times.items():
            expected = 2 if step == flight else 1
            if count > expected and step not in self._always | now.again:
                reason = [e.reason for e in now.started if e.step == step][-1]
                self._add(
                    "ran-again", step, when, f"its body ran {count} times: {reason}"
                )


def _differing(cold: State, now: State) -> Iterator[tuple[str, str, str]]:
    """Yield kind, step and name of what differs."""
    for step, name in sorted(cold.values.keys() | now.values.keys()):
        if cold.values.get((step, name)) != now.values.get((step, name)):
            yield "value", step, name
    for name in sorted(cold.files.keys() | now.files.keys()):
        if cold.files.get(name) != now.files.get(name):
            yield "file", "", name
    for step in cold.outputs:
        if cold.outputs[step] != now.outputs.get(step):
            yield "output", step, ""


def _file_words(name: str, cold: State, now: State) -> str:
    """Return how a file differs, for people."""
    if name not in now.files:
        return f"file {name} is missing"
    if name not in cold.files:
        return f"file {name} should not be there"
    before, after = cold.files[name][1], now.files[name][1]
    if after > before:
        return f"file {name} has grown from {before} to {after} bytes: written twice?"
    return f"file {name} has another content"


def rehearsal_page(data: Rehearsal) -> Page:
    """Return a rehearsal for people.

    Parameters
    ----------
    data : Rehearsal
        From `rehearse`.

    Returns
    -------
    Page
        The findings in one table.
    """
    said = f"{len(data['steps'])} steps run twice, {data['kills']} kills"
    page: list[str | Table] = [f"notebook {data['notebook']}: {said}"]
    rows = [
        (f["step"] or "-", f["kind"], f["when"], f["what"]) for f in data["findings"]
    ]
    head = ("step", "kind", "when", "what")
    page += ["", Table(head, rows) if rows else "nothing lost, nothing doubled"]
    if data["scratch"]:
        page.append(f"kept: {data['scratch']}")
    return page
