"""What a step costs, as multiples of the plain way in the same round."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.subjects import SUBJECTS
from tests.bench.worker import measure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.bench.measures import Seconds

WITHOUT_FILES = ("steps", "items", "panel")
RATIOS: dict[str, tuple[str, str]] = {
    "trivial step run / bare cell": ("run", "bare"),
    "trivial step run / durable commit": ("run", "commit"),
    "trivial step skipped / bare cell": ("skip", "bare"),
    "trivial step skipped / durable commit": ("skip", "commit"),
    "last quarter of the steps / bare cell": ("run_last", "bare"),
    "plain cell with nbckpt loaded / bare cell": ("loaded", "bare"),
    "panel of 200 steps, an item / durable commit": ("panel_item", "commit"),
    "panel of 200 steps, a step / durable commit": ("panel_step", "commit"),
    "panel of 200 lines, a step / durable commit": ("panel_long", "commit"),
    "items / bare loop and a commit for each 20 ms": ("items", "items_plain"),
    "last tenth of the items / first tenth": ("items_last", "items_first"),
    "save / plain synced": ("save", "plain_synced"),
    "save / plain unsynced": ("save", "plain_unsynced"),
    "save, bytes / plain file": ("save_bytes", "plain_bytes"),
    "restore / plain load": ("restore", "plain_load"),
    "next step touches nothing / plain synced": ("untouched", "plain_synced"),
    "next step touches nothing / plain unsynced": ("untouched", "plain_unsynced"),
    "next step only reads / plain synced": ("read", "plain_synced"),
    "next step only reads / plain unsynced": ("read", "plain_unsynced"),
    "one row changed / plain synced": ("changed", "plain_synced"),
    "one row changed / plain unsynced": ("changed", "plain_unsynced"),
    "one row changed, bytes / plain file": ("changed_bytes", "plain_bytes"),
}
Found = dict[str, Any]


def run_round(subject: str, scale: float, where: Path | None = None) -> Seconds:
    """Measure a value, trivial steps or items, once in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="nbckpt-bench-", dir=where))
    try:
        if subject in WITHOUT_FILES:
            return measure(subject, subject, folder, scale)
        saves = measure("saves", subject, folder, scale)
        return saves | measure("restore", subject, folder, scale)
    finally:
        shutil.rmtree(folder)


def ratios(seconds: Seconds) -> dict[str, float]:
    """Return the multiples that one round gives."""
    return {
        label: seconds[ours] / seconds[plain]
        for label, (ours, plain) in RATIOS.items()
        if ours in seconds and plain in seconds
    }


def summary(rounds: list[Seconds]) -> Found:
    """Return the medians of rounds: of each ratio in its round, not of ratios' parts."""
    told = [ratios(one) for one in rounds]
    return {
        "ratios": {name: _median(one[name] for one in told) for name in told[0]},
        "medians": {name: _median(one[name] for one in rounds) for name in rounds[0]},
        "rounds": rounds,
    }


def _median(values: Iterable[float]) -> float:
    """Return a median."""
    return float(statistics.median(values))


def all_subjects() -> list[str]:
    """Return the names of all that is measured."""
    return [*WITHOUT_FILES, *SUBJECTS]


def table(found: dict[str, Found]) -> str:
    """Return results as text."""
    lines = []
    for subject, results in found.items():
        lines += ["", f"{subject:<46}{'multiple':>10}{'ours':>14}{'plain':>14}"]
        lines += [
            _row(label, times, results["medians"])
            for label, times in results["ratios"].items()
        ]
    return "\n".join(lines[1:])


def _row(label: str, multiple: float, medians: Seconds) -> str:
    """Return one line of the table."""
    ours, plain = (_told(name, medians[name]) for name in RATIOS[label])
    return f"  {label:<44}{multiple:>10.3g}{ours:>14}{plain:>14}"


def _told(name: str, value: float) -> str:
    """Return a measured value with its unit."""
    if name.endswith("_bytes"):
        return f"{value / 1e6:.3f} MB"
    return f"{value * 1e3:.2f} ms"
