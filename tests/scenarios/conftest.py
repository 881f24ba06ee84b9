"""A stage for each scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def stage_of(tmp_path: Path) -> Iterator[Callable[[str], Stage]]:
    """Give a function that sets up the notebook of a case."""
    stages: list[Stage] = []

    def make(case: str) -> Stage:
        stages.append(Stage(case, tmp_path / str(len(stages))))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()
