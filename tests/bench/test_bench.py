"""Each benchmark runs and gives its ratios; no time is judged here.

The figures themselves: ``python -m tests.bench``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.report import RATIOS, all_subjects, ratios, run_round, summary, table

if TYPE_CHECKING:
    from pathlib import Path

TINY = 0.002


@pytest.mark.parametrize("subject", all_subjects())
def test_benchmark_runs_and_gives_its_ratios(subject: str, tmp_path: Path) -> None:
    seconds = run_round(subject, TINY, tmp_path)
    found = ratios(seconds)
    ours = {ours for ours, _ in RATIOS.values()} & seconds.keys()
    assert {RATIOS[label][0] for label in found} == ours
    assert all(ratio > 0 for ratio in found.values())
    assert not list(tmp_path.iterdir())


def test_table_tells_the_median_of_the_ratios_of_rounds() -> None:
    rounds = [
        {"save": save, "plain_synced": plain}
        for save, plain in ((1.0, 1.0), (9.0, 3.0), (4.0, 2.0))
    ]
    found = summary(rounds)
    assert found["ratios"] == {"save / plain synced": 2.0}
    assert "save / plain synced" in table({"array": found})
