"""The measurements; each needs a process of its own, for a shell exists once in one."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jupyter_client.session import Session

from nbckpt.loops.ledger import GROUP_SECONDS
from nbckpt.panel import screen
from nbckpt.panel.view import LoopView, RunView, State, StepView
from tests.bench.shell import Shell, written_bytes
from tests.bench.subjects import SUBJECTS, load_plainly, save_plainly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS = 60
ITEMS = 100_000
PANEL_STEPS, PANEL_UPDATES = 200, 200
TENTHS = 10
Seconds = dict[str, float]


def time_steps(_: str, folder: Path, scale: float) -> Seconds:
    """Time trivial cells and steps, and a durable commit of one small record.

    numpy and pandas are loaded, as they are in most notebooks.
    """
    del folder
    count = max(4, int(STEPS * scale))
    shell = Shell()
    bare = [shell.run(f"bare_{number} = 1") for number in range(count)]
    shell.start()
    loaded = [shell.run(f"plain_{number} = 1") for number in range(count)]
    commit = [_time_commit(shell, number) for number in range(count)]
    cells = [f"%%step t{number}\nx_{number} = 1" for number in range(count)]
    runs = [shell.run(cell) for cell in cells]
    skips = [shell.run(cell) for cell in cells]
    assert len(shell.session.journal.attempts(shell.session.run_id)) == count + 1
    shell.close()
    found = {"bare": bare, "loaded": loaded, "commit": commit}
    found |= {"run": runs, "run_last": runs[-count // 4 :]}
    found |= {"skip": skips}
    return {name: statistics.median(times) for name, times in found.items()}


def _time_commit(shell: Shell, number: int) -> float:
    """Time one durable commit."""
    record = {"number": number, "name": "a small record"}
    begun = time.perf_counter()
    shell.session.store.transact(lambda tx: tx.put(f"bench/{number}", record))
    return time.perf_counter() - begun


class Timed:
    """A function whose seconds are kept, to be taken off its cell's."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.seconds = 0.0

    def __call__(self) -> Any:
        """Call the function."""
        begun = time.perf_counter()
        found = self._function()
        self.seconds = time.perf_counter() - begun
        return found


LOOP = """started = [time.perf_counter()]
for item in {items}:
    if item in marks:
        started.append(time.perf_counter())
started.append(time.perf_counter())"""


def time_items(_: str, folder: Path, scale: float) -> Seconds:
    """Time a loop over items, each a checkpoint, and the same loop without.

    The plain way to the same end makes one durable commit for each group of items.
    """
    del folder
    count, shell = max(TENTHS, int(ITEMS * scale)), Shell()
    shell.start()
    marks = {count // TENTHS, count - count // TENTHS}
    shell.run(f"import time, nbckpt\nmarks = {marks}")
    shell.run("%%step bare\n" + LOOP.format(items=f"range({count})"))
    bare = shell.named("started")
    commit = statistics.median(_time_commit(shell, number) for number in range(9))
    shell.run("%%step loop\n" + LOOP.format(items=f"nbckpt.items(range({count}))"))
    begun, first, last, ended = shell.named("started")
    shell.close()
    groups = 1 + int((ended - begun) / GROUP_SECONDS)
    plain = bare[-1] - bare[0] + groups * commit
    found = {"items": ended - begun, "items_plain": plain}
    return found | {"items_first": first - begun, "items_last": ended - last}


MAKE = "%%step make\nvalue = get_ipython().subject()"


def time_saves(name: str, folder: Path, scale: float) -> Seconds:
    """Time the step that makes a value, then steps that leave or change it."""
    subject, shell = SUBJECTS[name], Shell()
    build = Timed(lambda: subject.build(scale))
    shell.lend(build)
    shell.start()
    begun = written_bytes()
    found = {"save": shell.run(MAKE) - build.seconds}
    found["save_bytes"] = written_bytes() - begun
    first = _time_plain_saves(name, shell.value, folder)
    found["untouched"] = shell.run("%%step idle\nidle = 1")
    found["read"] = shell.run(f"%%step look\nlook = {subject.read}")
    begun = written_bytes()
    found["changed"] = shell.run(f"%%step change\n{subject.change}")
    found["changed_bytes"] = written_bytes() - begun
    second = _time_plain_saves(name, shell.value, folder)
    shell.close()
    # The better of two: whatever else the machine does must not flatter us.
    return found | {kind: min(first[kind], second[kind]) for kind in first}


def _time_plain_saves(name: str, value: Any, folder: Path) -> Seconds:
    """Time the plain ways of saving a value; the last file stays."""
    subject, path = SUBJECTS[name], folder / "plain"
    unsynced = save_plainly(subject, value, path, sync=False)
    synced = save_plainly(subject, value, path, sync=True)
    size = path.stat().st_size
    return {"plain_unsynced": unsynced, "plain_synced": synced, "plain_bytes": size}


def time_restore(name: str, folder: Path, scale: float) -> Seconds:
    """Time the skip of the step that made a value, in a process that never had it."""
    subject, shell = SUBJECTS[name], Shell()
    shell.lend(_never)
    shell.start()
    first = load_plainly(subject, folder / "plain")
    restore = shell.run(MAKE)
    second = load_plainly(subject, folder / "plain")
    assert subject.equal(shell.value, subject.build(scale))
    shell.close()
    return {"restore": restore, "plain_load": min(first, second)}


def _never() -> None:
    """Fail: a step that has to be skipped ran."""
    raise AssertionError("the body ran")


def time_panel(_: str, folder: Path, scale: float) -> Seconds:
    """Time updates of the panel of 200 steps, as they go to the wire, and a commit.

    First with half of the steps skipped and half to come, which folds; then with the two
    in turns, so that no line folds.
    """
    del folder
    count, shell = max(4, int(PANEL_STEPS * scale)), Shell()
    shell.start()
    commit = [_time_commit(shell, number) for number in range(9)]
    shell.close()
    screen.INTERVAL = 0.0
    folded = _time_updates(_a_run(count, lambda n: n < count // 2))
    unfolded = _time_updates(_a_run(count, lambda n: n % 2 == 0))
    return {
        "commit": statistics.median(commit),
        "panel_item": folded[0],
        "panel_step": folded[1],
        "panel_long": unfolded[1],
    }


def _a_run(count: int, is_skipped: Callable[[int], bool]) -> RunView:
    """Return a run in the middle of which a step runs."""
    steps = tuple(
        StepView(
            number=n,
            name=f"step-{n}",
            state=State.SKIPPED if is_skipped(n) else State.PENDING,
            saved=2.0 if is_skipped(n) else 0.0,
            evidence=("file a.csv 0123456789ab", "check x") if is_skipped(n) else (),
        )
        for n in range(count)
    )
    middle = replace(steps[count // 2], state=State.RUNNING, started_at=1.0)
    return RunView("bench", steps, 1.0, 2.0).put(middle)


def _time_updates(run: RunView) -> tuple[float, float]:
    """Time the updates after an item, and after a step; the medians."""
    shown = [run]
    panel = screen.Screen(_Wire(), lambda: shown[0])
    panel.show()
    items, steps = [], []
    for number in range(PANEL_UPDATES):
        done = (LoopView("1", number, PANEL_UPDATES),)
        shown[0] = replace(shown[0], items=done)
        items.append(_time(panel.refresh))
        first = replace(shown[0].steps[0], saved=float(number))
        shown[0] = shown[0].put(first)
        steps.append(_time(panel.refresh))
    return statistics.median(items), statistics.median(steps)


class _Wire:
    """A shell whose messages are made ready for the wire, and end there."""

    def __init__(self) -> None:
        self.display_pub = SimpleNamespace(session=self, pub_socket=None, topic=b"")
        self._session = Session(key=b"bench")

    def get_parent(self) -> dict[str, Any]:
        """Return the request that runs."""
        return self._session.msg("execute_request")

    def send(
        self, _: Any, kind: str, content: Any, parent: Any, *, ident: bytes
    ) -> None:
        """Make a message ready: its JSON, and its signature."""
        self._session.serialize(self._session.msg(kind, content, parent), ident)


def _time(function: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


MEASURES = {
    "steps": time_steps,
    "panel": time_panel,
    "items": time_items,
    "saves": time_saves,
    "restore": time_restore,
}
