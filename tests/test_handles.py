"""Whether a handle is spent is told without touching it."""

from __future__ import annotations

import csv
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from nbckpt.codecs import handles, listings

if TYPE_CHECKING:
    from pathlib import Path


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


def test_writer_of_a_workbook_is_kept_once_it_is_closed(tmp_path: Path) -> None:
    writer: Any = object.__new__(pd.ExcelWriter)
    reduce: Any = handles.reducer(type(writer))
    with (tmp_path / "w.xlsx").open("wb") as file:
        writer._handles = SimpleNamespace(handle=file)
        assert "open writer" in reduce(writer)
    again, (kind,), state = reduce(writer)
    assert type(again(kind)) is pd.ExcelWriter
    assert state["_handles"].handle is file


def test_reader_of_lines_comes_back_as_one_whose_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a,b")
    with path.open() as file:
        reader = csv.reader(file)
    reduce: Any = handles.reducer(type(reader))
    again, arguments = reduce(reader)
    with pytest.raises(ValueError, match="closed file"):
        next(again(*arguments))
    assert reduce(again(*arguments)) == (again, arguments)
