"""Settings of libraries are read without importing them, and set as they were."""

from __future__ import annotations

import decimal
import sys

import pytest

from nbckpt.state.settings import SETTINGS


@pytest.mark.parametrize("section", SETTINGS)
def test_reading_a_setting_imports_nothing_and_setting_it_changes_nothing(
    section: str,
) -> None:
    read, write = SETTINGS[section]
    before, loaded = read(), set(sys.modules)
    assert set(sys.modules) == loaded
    if before is not None:
        write(before)
    assert read() == before


@pytest.mark.parametrize(
    ("section", "module"),
    [("printing", "numpy"), ("matplotlib", "matplotlib"), ("dtype", "torch")],
)
def test_library_that_is_not_imported_has_no_setting(
    section: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    assert SETTINGS[section][0]() is None


def test_what_decimals_met_so_far_is_no_setting() -> None:
    read, _ = SETTINGS["decimal"]
    before = read()
    assert decimal.Decimal(1) / 3
    assert read() == before
