"""Killed at any point around its effects, a step has each of them once, or asks.

A step that charges four cards is killed with SIGKILL before and after its durable
operations and each call of the receiver, then run again from the files alone. By default
a sample is tried in which every kind of operation occurs; with ``NBCKPT_KILL_ALL=1`` all
points are.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.history import Reader
from nbckpt.records import EffectState
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.resolving import Said, resolve
from tests.crash import receivers
from tests.crash.lab import Lab, sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ALL = bool(os.environ.get("NBCKPT_KILL_ALL"))
POINTS = 24
PASSES = 10


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
    """One step, run until it is completed."""

    def __init__(self, lab: Lab, folder: Path, kind: str) -> None:
        self.lab, self.folder, self.kind = lab, folder, kind
        self.answers: list[str] = []
        self.stops = 0
        folder.mkdir()

    def run(self, **job: Any) -> dict[str, Any]:
        """Run the step once; return what it told, or nothing if it was killed."""
        (self.folder / "report.json").unlink(missing_ok=True)
        job = {"sabotage": "", **job}
        ended = self.lab.ask(folder=str(self.folder), receiver=self.kind, **job)
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
                card = one.name.removeprefix("charge-")
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
            if told["error"] == "StopForHuman":
                self.stops += 1
                self.answer()
            else:
                assert told["error"] == "TimeoutError", told["text"]
        raise AssertionError(told)


def try_point(lab: Lab, folder: Path, kind: str, **job: Any) -> list[str]:
    """Kill the step at a point, finish it, and return what was wrong."""
    trial = Trial(lab, folder, kind)
    trial.run(**job)
    expected = len(trial.unknown()) if kind == "opaque" else 0
    trial.finish(sabotage=job.get("sabotage", ""))
    wrong = [f"{card} {n} times" for card, n in trial.charged().items() if n != 1]
    wrong += [
        f"{card} missing" for card in receivers.CARDS if card not in trial.charged()
    ]
    if trial.stops != expected:
        wrong.append(f"stopped {trial.stops} times, not {expected}")
    if trial.answers != [f"charged {card}" for card in receivers.CARDS]:
        wrong.append(f"outcomes {trial.answers}")
    shutil.rmtree(folder)
    return [f"{kind} {job['when']} {job['number']}: {text}" for text in wrong]


def try_points(
    lab: Lab, folder: Path, kind: str, wanted: int, **job: Any
) -> tuple[int, list[str]]:
    """Try points of an uninterrupted run; return how many, and what was wrong."""
    whole = Trial(lab, folder / "whole", kind)
    told = whole.run()
    assert told["error"] in ("", "TimeoutError"), told["text"]
    chosen = sample(labels := whole.points(), wanted or 2 * len(labels))
    wrong: list[str] = []
    for number, when in chosen:
        place = folder / f"{when}-{number}"
        wrong += try_point(lab, place, kind, number=number, when=when, **job)
    return len(chosen), wrong


@pytest.mark.parametrize("kind", sorted(receivers.CONTRACTS))
@pytest.mark.timeout(3600 if ALL else 600)
def test_kill_at_any_point_leaves_each_effect_once_or_asks(
    lab: Lab,
    tmp_path: Path,
    kind: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    tried, wrong = try_points(lab, tmp_path, kind, 0 if ALL else POINTS)
    record_testsuite_property(f"kill points, {kind} receiver", tried)
    print(f"\n{kind}: {tried} points, {len(wrong)} violations")  # noqa: T201
    assert not wrong, "\n".join(wrong)


def calls(lab: Lab, folder: Path, kind: str, fault: str) -> list[tuple[int, str]]:
    """Return the points around the answers of a receiver."""
    whole = Trial(lab, folder / "calls", kind)
    assert not whole.run(sabotage=fault)["error"]
    labels = enumerate(whole.points(), 1)
    return [(n, "after") for n, label in labels if label == "call charge"]


@pytest.mark.parametrize(
    ("fault", "kind"), [("no_intent", "opaque"), ("no_key", "keyed")]
)
def test_without_intent_or_key_effects_happen_twice(
    lab: Lab, tmp_path: Path, fault: str, kind: str
) -> None:
    """Negative control: the test above can fail."""
    wrong: list[str] = []
    for number, when in calls(lab, tmp_path, kind, fault):
        place, job = tmp_path / str(number), {"number": number, "when": when}
        wrong += try_point(lab, place, kind, sabotage=fault, **job)
    print(f"\n{fault}: {len(wrong)} violations")  # noqa: T201
    assert any("2 times" in text for text in wrong)
