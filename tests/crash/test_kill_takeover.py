"""Two processes on one run, one of them killed or stopped at any point: one holder.

The holder of a step that charges cards is stopped (SIGSTOP) in the middle of a call; a
second process starts under each overlap policy and is killed, or stopped, before and
after its durable operations and calls from where it looks for its run. Then the holder
goes on, if it still can, and a third process finishes. By default a sample is tried; with
``NBCKPT_KILL_ALL=1`` all points are.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.runs.history import Reader
from nbckpt.store import Store
from nbckpt.trust import load_secret
from tests.crash import receivers
from tests.crash.lab import Lab, sample
from tests.crash.test_kill_effects import ALL, STOP, Trial, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Tell = Callable[[str, list[tuple[int, str]], list[str]], None]

KINDS = ("keyed", "opaque", "queryable")
KILL = -int(signal.SIGKILL)
POINTS = 8
SKIP = {"NBCKPT_OVERLAP": "skip"}
REPLACE = {"NBCKPT_OVERLAP": "replace"}
CONCURRENT = {"NBCKPT_OVERLAP": "concurrent", "NBCKPT_RUN_ID": ""}
ENDED = "former holder ended"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with (
        pytest.MonkeyPatch.context() as patch,
        Lab(folder := tmp_path_factory.mktemp("takeover")) as found,
    ):
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        yield found


@pytest.fixture
def tell(record_testsuite_property: Callable[[str, object], None]) -> Tell:
    """Return what prints and records a figure, and fails where something was wrong."""

    def told(what: str, points: list[tuple[int, str]], wrong: list[str]) -> None:
        record_testsuite_property(f"kill points, {what}", len(points))
        print(f"\n{what}: {len(points)} points, {len(wrong)} violations")  # noqa: T201
        assert not wrong, "\n".join(wrong)

    return told


class Race(Trial):
    """The step that charges, its holder, and those that start beside it."""

    former = 0

    def leave(self, number: int, when: str = "before") -> None:
        """Have a holder that is stopped at a point."""
        ended = self.ask(number=number, when=when, by=STOP)
        assert ended["status"] == -STOP
        self.former = ended["pid"]

    def start(self, number: int, when: str, **job: Any) -> dict[str, Any]:
        """Let a second process start, and die at a point; return how it ended."""
        return self.ask(taking=True, number=number, when=when, **job)

    def go_on(self, pid: int) -> int:
        """Let a process that was stopped go on; return how it ended."""
        status: int = self.lab.ask(**{"continue": pid})["status"]
        return status

    def lines(self, run_id: str = receivers.RUN) -> Counter[str]:
        """Return the kinds of the lines of a run's history."""
        store = Store(self.folder / ".nbckpt", load_secret())
        found = Counter(line.kind for _, line in Reader(store).history(run_id))
        store.close()
        return found

    def token(self) -> int:
        """Return the fencing token of the run as it stands."""
        store = Store(self.folder / ".nbckpt", load_secret())
        lease = Reader(store).lease(receivers.RUN)
        store.close()
        return lease.token if lease else 0

    def closed(self, found: list[str]) -> list[str]:
        """Return what is wrong in the end; the folder is removed."""
        found += self.wrong()
        shutil.rmtree(self.folder)
        return [f"{self.folder.name}: {text}" for text in found]


def calls(labels: list[str]) -> list[int]:
    """Return the points at which cards are charged."""
    return [n for n, label in enumerate(labels, 1) if label == "call charge"]


def sampled(labels: list[str]) -> list[tuple[int, str]]:
    """Return the points to try, of those that a process comes to."""
    return sample(labels, 2 * len(labels) if ALL else POINTS)


def race(
    lab: Lab, folder: Path, kind: str, **job: Any
) -> tuple[int, list[tuple[int, str]]]:
    """Return where the holder is to be stopped, and points of who starts beside it."""
    at = calls(whole(lab, folder, kind))[1]
    trial = Race(lab, folder / "beside", kind)
    trial.leave(at)
    trial.start(0, "before", **job)
    found = sampled(trial.points())
    trial.go_on(trial.former)
    return at, found


def sweep(
    lab: Lab,
    folder: Path,
    kind: str,
    attempt: Callable[[Race, int, int, str], list[str]],
) -> tuple[list[tuple[int, str]], list[str]]:
    """Try an heir at each point; return the points, and what was wrong."""
    at, points = race(lab, folder, kind, env=REPLACE)
    wrong: list[str] = []
    for number, when in points:
        trial = Race(lab, folder / f"{when}-{number}", kind)
        wrong += attempt(trial, at, number, when)
    return points, wrong


def try_heir(
    trial: Race, at: int, number: int, when: str, fault: str = ""
) -> list[str]:
    """Kill the heir at a point; the next one ends the former holder and finishes."""
    trial.leave(at)
    token = trial.token()
    trial.start(number, when, env=REPLACE, sabotage=fault)
    # Once the run is the heir's, nobody need replace any more: it is dead.
    is_taken = trial.token() > token
    trial.finish(env=SKIP if is_taken else REPLACE, sabotage=fault)
    ended, found = trial.go_on(trial.former), []
    if ended != KILL or trial.lines()[ENDED] != 1:
        found.append(
            f"the former holder ended by {ended}, {trial.lines()[ENDED]} lines"
        )
    return trial.closed(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(3600 if ALL else 600)
def test_heir_killed_at_any_point_leaves_the_former_holder_to_the_next(
    lab: Lab, tmp_path: Path, kind: str, tell: Tell
) -> None:
    tell(f"{kind}, heir", *sweep(lab, tmp_path, kind, try_heir))


def test_note_of_a_former_holder_taken_away_too_early_charges_twice(
    lab: Lab, tmp_path: Path
) -> None:
    """Negative control: the test above can fail."""
    at = calls(whole(lab, tmp_path, "queryable"))[1]
    trial = Race(lab, tmp_path / "beside", "queryable")
    trial.leave(at)
    trial.start(0, "before", env=REPLACE, sabotage="forget_first")
    # What it writes last before it asks is that the former holder is gone.
    last = trial.points().index("call find")
    trial.go_on(trial.former)
    trial = Race(lab, tmp_path / "killed", "queryable")
    wrong = try_heir(trial, at, last, "after", "forget_first")
    print(f"\nforget first: {len(wrong)} violations")  # noqa: T201
    assert any("2 times" in text for text in wrong)


def try_both(
    trial: Race, at: int, number: int, when: str, *, is_killed: bool = False
) -> list[str]:
    """Stop the heir as well; the former goes on or dies, then the heir, then a third."""
    trial.leave(at)
    heir = trial.start(number, when, env=REPLACE, by=STOP)
    if is_killed:
        os.kill(trial.former, signal.SIGKILL)
    trial.go_on(trial.former)
    if heir["status"] == -STOP:
        trial.go_on(heir["pid"])
    trial.finish(env=SKIP)
    return trial.closed([])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(3600 if ALL else 600)
def test_former_holder_and_heir_that_both_go_on_charge_each_card_once(
    lab: Lab, tmp_path: Path, kind: str, tell: Tell
) -> None:
    tell(f"{kind}, former and heir", *sweep(lab, tmp_path, kind, try_both))


@pytest.mark.timeout(3600 if ALL else 600)
def test_holder_killed_at_any_point_of_its_heir_is_followed_by_it(
    lab: Lab, tmp_path: Path, tell: Tell
) -> None:
    found = sweep(lab, tmp_path, "opaque", partial(try_both, is_killed=True))
    tell("opaque, former killed beside its heir", *found)


def try_lock(trial: Race, at: int) -> list[str]:
    """Stop the holder in a transaction, which locks the store, until it is ended."""
    trial.leave(at)
    told = trial.run(env=REPLACE)
    found = [] if "stays locked" in told["text"] else [f"it was told {told}"]
    os.kill(trial.former, signal.SIGKILL)
    trial.finish(env=SKIP)
    trial.go_on(trial.former)
    return trial.closed(found)


@pytest.mark.timeout(3600 if ALL else 600)
def test_holder_stopped_in_a_transaction_keeps_all_out_until_it_is_ended(
    lab: Lab, tmp_path: Path, tell: Tell
) -> None:
    labels = whole(lab, tmp_path, "queryable")
    commits = [(n, "before") for n, label in enumerate(labels, 1) if "COMMIT" in label]
    points = commits if ALL else commits[4:5]
    wrong: list[str] = []
    for number, _ in points:
        wrong += try_lock(Race(lab, tmp_path / str(number), "queryable"), number)
    tell("holder in a transaction", points, wrong)


def try_skip(trial: Race, at: int, number: int, when: str) -> list[str]:
    """Kill a start that is refused; the holder comes to its end as if nothing was."""
    trial.leave(at)
    token = trial.token()
    trial.start(number, when, env=SKIP)
    refused = trial.run(env=SKIP)
    found = [] if refused["error"] == "RunHeld" else [f"refused with {refused}"]
    (trial.folder / "report.json").unlink()
    trial.go_on(trial.former)
    is_same = trial.token() == token
    ended = json.loads((trial.folder / "report.json").read_text())
    trial.answers = ended["answers"]
    if ended["error"]:
        found.append(f"the holder ended with {ended['text']}")
    skipped = trial.lines()["skipped start"]
    if skipped not in ({1, 2} if number else {2}) or not is_same:
        found.append(f"{skipped} lines, same holder: {is_same}")
    if late := trial.run(env=SKIP)["error"]:
        found.append(f"a late start ended with {late}")
    return trial.closed(found)


@pytest.mark.timeout(3600 if ALL else 600)
def test_start_that_is_skipped_and_killed_leaves_the_holder_alone(
    lab: Lab, tmp_path: Path, tell: Tell
) -> None:
    at, points = race(lab, tmp_path, "opaque", env=SKIP)
    points.append((0, "before"))
    wrong: list[str] = []
    for number, when in points:
        trial = Race(lab, tmp_path / f"{when}-{number}", "opaque")
        wrong += try_skip(trial, at, number, when)
    tell("skipped start", points, wrong)


class Concurrent(Race):
    """The step that charges, in more than one run."""

    def runs(self) -> list[str]:
        store = Store(self.folder / ".nbckpt", load_secret())
        found = [run.run_id for run in Reader(store).runs()]
        store.close()
        return found

    def wrong(self) -> list[str]:
        """Return what is wrong: each run charges each card once, under its own key."""
        charged, runs = self.charged(), len(self.runs())
        found = [
            f"{c} {charged[c]} times" for c in receivers.CARDS if charged[c] != runs
        ]
        path = self.folder / receivers.LOG
        keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
        return found + (["a key twice"] if len(set(keys)) < len(keys) else [])


def try_concurrent(trial: Concurrent, at: int, number: int, when: str) -> list[str]:
    """Kill a run beside the holder's; both are gone on with by their names."""
    trial.leave(at)
    trial.start(number, when, env=CONCURRENT)
    trial.go_on(trial.former)
    mine, *others = trial.runs()
    found = [] if len(others) <= 1 else [f"runs {trial.runs()}"]
    for run_id in (mine, *others):
        trial.finish(env={**SKIP, "NBCKPT_RUN_ID": run_id})
    return trial.closed(found)


@pytest.mark.timeout(3600 if ALL else 600)
def test_concurrent_run_that_is_killed_goes_on_as_a_run_of_its_own(
    lab: Lab, tmp_path: Path, tell: Tell
) -> None:
    at, points = race(lab, tmp_path, "queryable", env=CONCURRENT)
    wrong: list[str] = []
    for number, when in points:
        trial = Concurrent(lab, tmp_path / f"{when}-{number}", "queryable")
        wrong += try_concurrent(trial, at, number, when)
    tell("concurrent run", points, wrong)
