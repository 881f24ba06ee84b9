"""Killed at any durable operation around a question, the run asks once and takes one answer.

Three passes are killed, each in a folder of its own: the one that asks, the one in which
a person answers, and the one that finds an answer given in advance. Whatever was killed,
the notebook then comes to its end with one question and one answer, which is never lost
and never asked for again. By default a sample in which every kind of operation occurs;
with ``NBCKPT_KILL_ALL=1`` all points.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING

import nbformat
import pytest

from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle import words
from tests.crash import tidy
from tests.crash.lab import Lab, Outcome, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 12
PASSES = 4
SETUP = """%load_ext nbckpt
import os, nbckpt
log = os.open("bodies.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
def said(text):
    os.write(log, f"{text}\\n".encode())"""
LOAD = "%%step load --ignore said\nsaid('load')\nrows = 4"
APPROVE = """%%step approve --ignore said
said('approve')
word = nbckpt.ask(f"Delete {rows} rows?", ["yes", "no"], name="delete")"""
DELETE = (
    "%%step delete --ignore said\nsaid('delete')\nleft = 0 if word == 'yes' else rows"
)
NOTEBOOK = (SETUP, LOAD, APPROVE, DELETE, "digest = f'{word} {left}'")
ANSWERS = (SETUP, "%nbckpt answer delete yes --step approve")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("answers")
    with pytest.MonkeyPatch.context() as patch, Lab(folder) as found:
        # The person who answers has the same key as the processes.
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        yield found


class Trial:
    """One notebook that asks, and what was wrong with it."""

    def __init__(self, lab: Lab, sabotage: str = "") -> None:
        self.lab, self.sabotage = lab, sabotage
        self.folder = lab.new_folder()
        self.problems: list[str] = []

    def run(self, cells: tuple[str, ...], number: int = 0, when: str = "") -> Outcome:
        """Run cells in a process, which may be killed."""
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(notebook, self.folder / "nb.ipynb")
        ended = self.lab.run(
            self.folder, number=number, when=when, sabotage=self.sabotage
        )
        left = tidy.read(self.folder / ".nbckpt")
        if ended.status not in (0, 1, -signal.SIGKILL) or not left.sound:
            self.problems.append(f"ended by {ended.status}, sound: {left.sound}")
        return ended

    def answer(self) -> None:
        """Answer as a person does who sees that the run waits."""
        store = Store(self.folder / ".nbckpt", load_secret())
        open_ones = [q for q in Reader(store).questions("nb-1") if not q.answered]
        if [q.id for q in open_ones] != ["delete"]:
            self.problems.append(f"it waits, but what is open is {open_ones}")
        else:
            words.answer(store, Reader(store).run("nb-1"), "delete", "yes")
        store.close()

    def finish(self) -> int:
        """Run to the end, answering where it waits; return how often it waited."""
        waits = 0
        for _ in range(PASSES):
            ended = self.run(NOTEBOOK)
            if not ended.error:
                if ended.digest != "yes 0":
                    self.problems.append(f"it came to {ended.digest}")
                return waits
            if "WaitingForAnswer" not in ended.error:
                break
            waits += 1
            self.answer()
        self.problems.append(f"it did not end: {ended.error}")
        return waits

    def judge(self, *, given: int) -> list[str]:
        """See that the history has one question and one answer."""
        store = Store(self.folder / ".nbckpt", load_secret())
        kinds = Counter(line.kind for _, line in Reader(store).history("nb-1"))
        steps = Reader(store).steps("nb-1").keys()
        store.close()
        told = {kind: kinds[kind] for kind in ("given", "asked", "answered")}
        if told != {"given": given, "asked": 1, "answered": 1}:
            self.problems.append(f"the history has {told}")
        if steps != {"load", "approve", "delete"}:
            self.problems.append(f"recorded: {steps}")
        shutil.rmtree(self.folder)
        return self.problems


def asking(trial: Trial, number: int, when: str) -> tuple[Outcome, list[str]]:
    """Kill the pass that asks."""
    killed = trial.run(NOTEBOOK, number, when)
    if trial.finish() != 1:
        trial.problems.append("it did not wait once after the kill")
    return killed, trial.judge(given=0)


def answering(trial: Trial, number: int, when: str) -> tuple[Outcome, list[str]]:
    """Kill the process in which a person answers."""
    trial.run(NOTEBOOK)
    killed = trial.run(ANSWERS, number, when)
    store = Store(trial.folder / ".nbckpt", load_secret())
    is_answered = Reader(store).questions("nb-1")[0].answered
    store.close()
    if trial.finish() != (not is_answered):
        trial.problems.append("an answer that was recorded did not count")
    return killed, trial.judge(given=0)


def advancing(trial: Trial, number: int, when: str) -> tuple[Outcome, list[str]]:
    """Kill the pass that finds its answer given in advance."""
    trial.run(ANSWERS)
    killed = trial.run(NOTEBOOK, number, when)
    if trial.finish():
        trial.problems.append("it waited for an answer that was given")
    return killed, trial.judge(given=1)


KINDS = {"asking": asking, "answering": answering, "advancing": advancing}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(7200 if ALL else 900)
def test_kill_around_a_question_asks_once_and_loses_no_answer(
    lab: Lab, kind: str, record_testsuite_property: Callable[[str, object], None]
) -> None:
    attempt = KINDS[kind]
    whole, wrong = attempt(Trial(lab), 0, "before")
    assert wrong == []
    labels = whole.points
    chosen = sample(labels, 2 * len(labels) if ALL else POINTS)
    for number, when in chosen:
        found = attempt(Trial(lab), number, when)[1]
        wrong += [f"{when} {number} ({labels[number - 1]}): {text}" for text in found]
    record_testsuite_property(f"kill points, {kind}", len(chosen))
    print(f"\n{kind}: {len(chosen)} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(900)
def test_without_one_transaction_an_answer_in_advance_is_lost(lab: Lab) -> None:
    """Negative control: the test above can fail."""
    whole, wrong = advancing(Trial(lab, "advance_first"), 0, "before")
    assert wrong == []
    commits = [n for n, label in enumerate(whole.points, 1) if "COMMIT" in label]
    for number in reversed(commits):
        trial = Trial(lab, "advance_first")
        found = advancing(trial, number, "after")[1]
        if any("waited for an answer" in text for text in found):
            return
    pytest.fail(f"no violation at {len(commits)} commits")
