"""Whether a handle is spent is told without touching it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nbckpt.codecs import handles, listings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def spent_listing(folder: Path) -> object:
    with os.scandir(folder) as listing:
        return listing


def test_folder_that_another_thread_has_open_for_a_moment_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = spent_listing(tmp_path)
    passing = [os.open(tmp_path, os.O_RDONLY)]
    look = listings._open_folders

    def look_and_close() -> set[str]:
        found = look()
        while passing:
            os.close(passing.pop())
        return found

    monkeypatch.setattr(listings, "_open_folders", look_and_close)
    reduce = handles.reducer(type(listing))
    assert reduce is not None
    assert reduce(listing) == (listings.revive_listing, ())


def test_listing_that_is_not_over_is_refused_and_loses_no_entry(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with os.scandir(tmp_path) as listing:
        reduce = handles.reducer(type(listing))
        assert reduce is not None
        assert isinstance(reduce(listing), str)
        assert [entry.name for entry in listing] == ["a"]
