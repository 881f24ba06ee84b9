"""Folders: which names count, what matches a pattern, and what the run itself did."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nbckpt.inputs import folders
from nbckpt.inputs.folders import (
    Doing,
    fixed_part,
    is_listing,
    lies_in,
    matches,
    names_in,
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.txt", "sub/c.csv", "sub/deep/d.csv", ".hidden/e.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def test_names_in_a_folder_are_in_order(base: Path) -> None:
    assert names_in(base) == (".hidden", "a.csv", "b.txt", "sub")
    assert names_in(base / "none") == names_in(base / "a.csv") == ()


@pytest.mark.parametrize(
    "scrap",
    [
        "__pycache__", ".git", ".nbckpt", ".ipynb_checkpoints", ".~nb.ipynb",
        ".nb.ipynb.4711.tmp", "x.db-wal", "x.db-shm", "x.db-journal",
    ],
)  # fmt: skip
def test_what_tools_leave_does_not_count(base: Path, scrap: str) -> None:
    before = names_in(base)
    (base / scrap).touch()
    assert names_in(base) == before
    assert scrap not in matches(base, "*")


@pytest.mark.parametrize("name", [".env", "tmp", "git", "x.tmp", "journal", "nbckpt"])
def test_what_people_name_so_does_count(base: Path, name: str) -> None:
    (base / name).touch()
    assert name in names_in(base)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.csv", ["a.csv"]),
        ("*", [".hidden", "a.csv", "b.txt", "sub"]),
        ("[ab].*", ["a.csv", "b.txt"]),
        ("*/*.csv", [".hidden/e.csv", "sub/c.csv"]),
        ("sub/c.csv", ["sub/c.csv"]),
        ("sub/none", []),
        ("a.csv/x", []),
        ("none/*", []),
        ("sub/**/*.csv", ["sub/c.csv", "sub/deep/d.csv"]),
        ("sub/**", ["sub", "sub/c.csv", "sub/deep", "sub/deep/d.csv"]),
        ("**/deep", ["sub/deep"]),
        ("**/deep/*", ["sub/deep/d.csv"]),
    ],
)
def test_pattern_matches_files_and_folders(
    base: Path, pattern: str, found: list[str]
) -> None:
    assert matches(base, pattern) == tuple(found)


def test_whole_pattern_outside_the_notebooks_folder_has_whole_names(base: Path) -> None:
    other = base / "sub"
    assert matches(other, f"{base}/*.csv") == (f"{base}/a.csv",)
    assert matches(other, f"{other}/*.csv") == ("c.csv",)


def test_search_stays_out_of_caches_and_links(base: Path) -> None:
    (base / "sub" / "cache").mkdir()
    (base / "sub" / "cache" / "CACHEDIR.TAG").touch()
    (base / "sub" / "cache" / "f.csv").touch()
    (base / "sub" / "loop").symlink_to(base / "sub")
    assert matches(base, "sub/**/*.csv") == ("sub/c.csv", "sub/deep/d.csv")
    assert "sub/cache/f.csv" in matches(base, "sub/cache/*")


def test_folder_that_may_not_be_looked_into_is_empty(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path) -> None:
        raise PermissionError(13, "no", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert names_in(base) == ()


@pytest.mark.parametrize(
    ("pattern", "fixed"),
    [
        ("*.csv", "."),
        ("data/*.csv", "data"),
        ("data/a/[xy]/z", "data/a"),
        ("data/a.csv", "data"),
        ("a.csv", "."),
        ("**/x", "."),
        ("/abs/*", "/abs"),
        ("/*", "/"),
    ],
)
def test_matches_lie_below_the_fixed_part(pattern: str, fixed: str) -> None:
    assert fixed_part(pattern) == fixed


@pytest.mark.parametrize(
    ("name", "folder", "inside"),
    [
        ("data/a", "data/", True),
        ("data/sub/a", "data/", True),
        ("data2/a", "data/", False),
        ("data", "data/", False),
        ("a", "./", True),
        ("/abs/a", "./", False),
        ("/abs/a", "/abs/", True),
    ],
)
def test_file_lies_in_its_folders(name: str, folder: str, inside: bool) -> None:
    assert lies_in(name, folder) is inside


def undone(before: str, now: str, *files: str, **more: object) -> list[str]:
    doing = Doing(lambda name: name not in more.get("unexplained", ()))  # type: ignore[operator]
    doing.take(files, more.get("made", ()))  # type: ignore[arg-type]
    return list(doing.undone("d", tuple(before.split()), tuple(now.split())))


def test_names_that_nobody_of_the_run_touched_stand_as_they_are() -> None:
    assert undone("a b", "b c") == ["b", "c"]
    assert undone("a b", "b c", "e/a", "e/c") == ["b", "c"]


def test_name_that_the_run_made_is_left_out() -> None:
    assert undone("a", "a c", "d/c") == ["a"]
    assert undone("a", "a c", "d/c/deep/x") == ["a"]
    assert undone("a", "a c", made=["d/c"]) == ["a"]
    assert undone("a", "a c", "d/") == ["a"]
    assert undone("a", "a c x", "d/c") == ["a", "x"]


def test_name_that_the_run_removed_is_still_there() -> None:
    assert undone("a b", "a", "d/b") == ["a", "b"]
    assert undone("a b", "a", made=["d/b"]) == ["a", "b"]
    assert undone("a b", "a", "d/b", unexplained={"d/b"}) == ["a"]


def test_name_that_was_there_before_the_run_changed_it_stays() -> None:
    assert undone("a b", "a b", "d/b") == ["a", "b"]


def listing_here() -> bool:
    return is_listing(sys._getframe())


def test_listing_by_the_user_is_one() -> None:
    assert listing_here()
    assert max(["x"], key=lambda _: listing_here()) == "x"
    assert is_listing(None)


def test_caller_is_found_through_pythons_own_modules(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    real = os.scandir

    def spy(path: str) -> object:
        seen.append(folders.caller(sys._getframe(1)))
        return real(path)

    monkeypatch.setattr(os, "scandir", spy)
    list(os.walk(base / "sub"))
    assert set(seen) == {__file__}
