"""Each folder of ``data`` behaves as its ``expect.md`` says, in real kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cases.driver import DATA, Case

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = sorted(path.parent for path in DATA.glob("*/case.json"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_case_behaves_as_it_states(folder: Path, tmp_path: Path) -> None:
    assert Case(folder, tmp_path).run() == []
