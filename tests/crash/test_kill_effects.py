"""Killed at any point around its effects, a step has each of them once, or asks.

A step that charges cards, one by one or as items, is killed with SIGKILL before and after
its durable operations and each call of the receiver, then run again from the files alone.
By default a sample is tried in which every kind of operation occurs; with
``NBCKPT_KILL_ALL=1`` all points are.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.records import EffectState
from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.settle.resolving import Said, resolve
from tests.crash import receivers
from tests.crash.lab import Lab, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 8
PASSES = 10
STOP = int(signal.SIGSTOP)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with (
        pytest.MonkeyPatch.context() as patch,
        Lab(folder := tmp_path_factory.mktemp("effects")) as found,
    ):
        # The person who answers has the same key as the processes.
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        yield found


class Trial:
    """The step that charges, run until it is completed."""

    def __init__(
        self, lab: Lab, folder: Path, kind: str, shape: str = "one by one"
    ) -> None:
        self.lab, self.folder, self.kind, self.shape = lab, folder, kind, shape
        self.answers: list[str] = []
        self.stops = self.passes = 0
        if (ready := folder.parent / "ready").exists():
            # What comes before the step that charges is not what is looked at here.
            shutil.copytree(ready, folder)
        else:
            folder.mkdir()

    def ask(self, **job: Any) -> dict[str, Any]:
        """Run the step once; return how the process ended or stopped."""
        (self.folder / "report.json").unlink(missing_ok=True)
        self.passes += 1
        return self.lab.ask(
            folder=str(self.folder), receiver=self.kind, shape=self.shape, **job
        )

    def run(self, **job: Any) -> dict[str, Any]:
        """Run the step once; return what it told, or nothing if it was killed."""
        ended = self.ask(**job)
        if ended["status"] == -signal.SIGKILL:
            return {}
        assert ended["status"] == 0
        told: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return told

    def points(self) -> list[str]:
        return (self.folder / "points.log").read_text().splitlines()

    def charged(self) -> Counter[str]:
        path = self.folder / receivers.LOG
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["card"] for line in lines)

    def unknown(self) -> list[str]:
        """Return the keys of effects whose outcome is not known."""
        store = Store(self.folder / ".nbckpt", load_secret())
        found = Reader(store).effects(receivers.RUN) if store.exists else []
        store.close()
        return [one.key for one in found if one.state is EffectState.INTENT]

    def answer(self) -> None:
        """Look at the receiver, as a person does, and say what was done."""
        store = Store(self.folder / ".nbckpt", load_secret())
        reader = Reader(store)
        for one in reader.effects(receivers.RUN):
            if one.state is EffectState.INTENT:
                card = one.item or one.name.removeprefix("charge-")
                is_done = card in self.charged()
                said = Said("done", f"charged {card}") if is_done else Said("not-done")
                resolve(store, reader.run(receivers.RUN), one.key, said)
        store.close()

    def finish(self, **job: Any) -> None:
        """Run the step until it is completed; answer where it stops for a person."""
        for _ in range(PASSES):
            told = self.run(**job)
            if not told["error"]:
                self.answers = told["answers"]
                return
            assert told["error"] == "StopForHuman", told["text"]
            self.stops += 1
            self.answer()
        raise AssertionError(told)

    def wrong(self) -> list[str]:
        """Return what is wrong with the charges and their outcomes."""
        charged = self.charged()
        wrong = [f"{card} {n} times" for card, n in charged.items() if n != 1]
        wrong += [f"{card} missing" for card in receivers.CARDS if not charged[card]]
        if self.answers != [f"charged {card}" for card in receivers.CARDS]:
            wrong.append(f"outcomes {self.answers}")
        path = self.folder / receivers.WORK
        worked = len(path.read_text().split()) if path.exists() else 0
        # Threads end items faster than one thread writes that they are done.
        at_once = len(receivers.CARDS) if self.shape == "threads" else 1
        if worked > len(receivers.CARDS) + (self.passes - 1) * at_once:
            wrong.append(f"worked on {worked} items in {self.passes} passes")
        return wrong


def try_point(trial: Trial, sabotage: str = "", **job: Any) -> list[str]:
    """Kill the step at a point, finish it, and return what was wrong."""
    trial.run(sabotage=sabotage, **job)
    expected = 1 if trial.kind == "opaque" and trial.unknown() else 0
    trial.finish(sabotage=sabotage)
    wrong = trial.wrong()
    if trial.stops != expected:
        wrong.append(f"stopped {trial.stops} times, not {expected}")
    shutil.rmtree(trial.folder)
    return [f"{trial.kind} {job['when']} {job['number']}: {text}" for text in wrong]


def prepare(lab: Lab, folder: Path) -> None:
    """Run what comes before the step that charges."""
    assert not Trial(lab, folder / "ready", "").run()["error"]


def whole(
    lab: Lab, folder: Path, kind: str, shape: str = "one by one", **job: Any
) -> list[str]:
    """Return the points of an uninterrupted run, in order."""
    prepare(lab, folder)
    trial = Trial(lab, folder / "whole", kind, shape)
    told = trial.run(**job)
    assert not told["error"], told["text"]
    return trial.points()


PLACES = [(kind, "one by one") for kind in sorted(receivers.CONTRACTS)]
PLACES += [(kind, "items") for kind in ("keyed", "late", "opaque")]
PLACES += [("opaque", "map"), ("opaque", "threads")]


@pytest.mark.parametrize(("kind", "shape"), PLACES)
@pytest.mark.timeout(3600 if ALL else 600)
def test_kill_at_any_point_leaves_each_effect_once_or_asks(
    lab: Lab,
    tmp_path: Path,
    kind: str,
    shape: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    labels = whole(lab, tmp_path, kind, shape)
    chosen = sample(labels, 2 * len(labels) if ALL else POINTS)
    wrong: list[str] = []
    for number, when in chosen:
        trial = Trial(lab, tmp_path / f"{when}-{number}", kind, shape)
        wrong += try_point(trial, number=number, when=when)
    record_testsuite_property(f"kill points, {kind} receiver, {shape}", len(chosen))
    print(f"\n{kind}, {shape}: {len(chosen)} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


CONTROLS = [
    ("no_intent", "opaque"),
    ("no_key", "keyed"),
    ("no_key", "late-keyed"),
    ("no_lookup", "queryable"),
    ("no_lookup", "late"),
    ("no_settle", "lagging"),
]


@pytest.mark.parametrize(("fault", "kind"), CONTROLS)
def test_without_its_contract_a_receiver_has_effects_twice(
    lab: Lab, tmp_path: Path, fault: str, kind: str
) -> None:
    """Negative control: the test above can fail."""
    labels = enumerate(whole(lab, tmp_path, kind, sabotage=fault), 1)
    wrong: list[str] = []
    for number in [n for n, label in labels if label == "call charge"]:
        trial = Trial(lab, tmp_path / str(number), kind)
        wrong += try_point(trial, fault, number=number, when="after")
    print(f"\n{fault}, {kind}: {len(wrong)} violations")  # noqa: T201
    assert any("2 times" in text for text in wrong)


def overtake(trial: Trial, number: int, sabotage: str, heirs: str) -> list[str]:
    """Stop a process, let another take over and finish, continue the first."""
    zombie = trial.ask(number=number, when="after", by=STOP, sabotage=sabotage)
    assert zombie["status"] == -STOP
    was_calling = trial.unknown()
    trial.finish(env={"NBCKPT_OVERLAP": "replace"}, sabotage=heirs)
    trial.lab.ask(**{"continue": zombie["pid"]})
    wrong = [f"stopped at {number}: {text}" for text in trial.wrong()]
    # On another host nobody can end it: the call that it is in the middle of goes on.
    is_allowed = bool(was_calling and heirs and not sabotage)
    return [text for text in wrong if not (is_allowed and "2 times" in text)]


@pytest.mark.parametrize("kind", ["opaque", "queryable"])
@pytest.mark.parametrize("heirs", ["", "no_end"])
@pytest.mark.timeout(600)
def test_process_that_was_taken_over_charges_nothing_more(
    lab: Lab, tmp_path: Path, heirs: str, kind: str
) -> None:
    labels = whole(lab, tmp_path, kind)
    chosen = range(1, len(labels) + 1, 1 if ALL else 4)
    wrong: list[str] = []
    for number in chosen:
        trial = Trial(lab, tmp_path / str(number), kind)
        wrong += overtake(trial, number, "", heirs)
    text = f"{kind}, taken over: {len(chosen)} points, {len(wrong)} violations"
    print(f"\n{text}")  # noqa: T201
    assert wrong == []


def test_without_the_fence_a_process_that_was_taken_over_charges_again(
    lab: Lab, tmp_path: Path
) -> None:
    """Negative control: the test above can fail."""
    labels = enumerate(whole(lab, tmp_path, "queryable"), 1)
    wrong: list[str] = []
    # It has asked, and is about to write its intent.
    for number in [n for n, label in labels if label == "call find"]:
        trial = Trial(lab, tmp_path / str(number), "queryable")
        wrong += overtake(trial, number, "no_fence", "no_end")
    print(f"\nno fence: {len(wrong)} violations")  # noqa: T201
    assert any("2 times" in text for text in wrong)


@pytest.mark.parametrize("kind", ["keyed", "lagging", "opaque", "queryable"])
@pytest.mark.timeout(3600 if ALL else 600)
def test_second_kill_while_the_first_is_settled_changes_nothing(
    lab: Lab, tmp_path: Path, kind: str
) -> None:
    first = whole(lab, tmp_path, kind).index("call charge") + 1
    trial = Trial(lab, tmp_path / "resumed", kind)
    trial.run(number=first, when="after")
    trial.ask()
    chosen = sample(labels := trial.points(), 2 * len(labels) if ALL else POINTS)
    wrong: list[str] = []
    for number, when in chosen:
        trial = Trial(lab, tmp_path / f"{when}-{number}", kind)
        trial.run(number=first, when="after")
        wrong += try_point(trial, number=number, when=when)
    text = f"{kind}, killed twice: {len(chosen)} points, {len(wrong)} violations"
    print(f"\n{text}")  # noqa: T201
    assert not wrong, "\n".join(wrong)
