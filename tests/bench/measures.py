"""The measurements; each needs a process of its own, for a shell exists once in one."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from nbckpt.ledger import GROUP_SECONDS
from tests.bench.shell import Shell, written_bytes
from tests.bench.subjects import SUBJECTS, load_plainly, save_plainly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS = 60
ITEMS = 100_000
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
    assert len(shell.session.attempts()) == count + 1
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


MEASURES = {
    "steps": time_steps,
    "items": time_items,
    "saves": time_saves,
    "restore": time_restore,
}
