"""Files as evidence: content alone counts, and the run itself explains what it changed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.errors import CheckFailed
from nbckpt.inputs.proofs import ABSENT, Paths, Writers, evaluate_checks, require_checks
from nbckpt.records import (
    Attempt,
    Contents,
    Evidence,
    Fingerprint,
    StepRecord,
    StepState,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "f").write_text("now")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "g.csv").write_text("g")
    return Paths(tmp_path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("{base}/f", "f"),
        ("{base}/sub/g.csv", "sub/g.csv"),
        ("{base}/sub/../f", "f"),
        ("{base}//f", "f"),
        ("/etc/hostname", "/etc/hostname"),
        ("{base}2/f", "{base}2/f"),
        ("{base}", "."),
        ("{base}/../other", "{parent}/other"),
    ],
)
def test_file_below_the_notebook_is_named_relative_to_it(
    paths: Paths, path: str, name: str
) -> None:
    places = {"base": paths.base, "parent": paths.base.parent}
    assert paths.name(path.format(**places)) == name.format(**places)


def test_name_leads_back_to_the_file(paths: Paths) -> None:
    for name in ("f", "sub/g.csv", "/etc/hostname"):
        assert paths.name(str(paths.locate(name))) == name


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["f"], ["f"]),
        (["*"], ["f"]),
        (["**/*.csv"], ["sub/g.csv"]),
        (["sub/*.csv", "f", "f"], ["f", "sub/g.csv"]),
        ([], []),
    ],
)
def test_patterns_mean_files_in_order(
    paths: Paths, patterns: list[str], names: list[str]
) -> None:
    found = paths.expand(patterns)
    assert [name for name in found if name != "sub"] == names


def test_digest_is_of_the_content_alone(paths: Paths) -> None:
    before = paths.digest("f")
    os.utime(paths.base / "f", (1, 1))
    (paths.base / "f").chmod(0o600)
    assert paths.digest("f") == before
    (paths.base / "f").write_text("now")
    assert paths.digest("f") == before
    (paths.base / "f").write_text("noW")
    assert paths.digest("f") != before


def test_copy_has_the_same_digest_and_an_empty_file_one_of_its_own(
    paths: Paths,
) -> None:
    (paths.base / "copy").write_text("now")
    (paths.base / "empty").touch()
    assert paths.digest("copy") == paths.digest("f")
    assert paths.digest("empty") not in {ABSENT, paths.digest("f")}


@pytest.mark.parametrize("name", ["none", "sub", "f/below", "no/such/folder"])
def test_what_is_no_file_is_absent(paths: Paths, name: str) -> None:
    assert paths.digest(name) == ABSENT


def record(
    step: str, files: dict[str, str], reads: dict[str, str] | None = None
) -> StepRecord:
    return StepRecord(
        "r", step, 1, 1, 1, Fingerprint(files=reads or {}), Evidence(files), Contents(),
        1.0, 2.0, 1.0,
    )  # fmt: skip


def lists(step: str, **listed: tuple[str, ...]) -> StepRecord:
    found = record(step, {})
    folders = {name.replace("here", "."): names for name, names in listed.items()}
    read = Fingerprint(folders=folders, globs={"*/*.csv": ("sub/g.csv",)})
    return replace(found, fingerprint=read)


def attempt(step: str, number: int, *writes: str) -> Attempt:
    return Attempt("r", step, number, 1, 9, StepState.RUNNING, 1.0, writes=writes)


def writers(paths: Paths, *found: StepRecord, **more: Any) -> Writers:
    return Writers(
        paths,
        ["a", "b", "c"],
        {r.step: r for r in found},
        {a.step: a for a in more.get("attempts", ())},
        frozenset(more.get("stale", ())),
    )


def test_file_as_it_was_left_is_verified(paths: Paths) -> None:
    one = record("a", {"f": paths.digest("f"), "gone": ABSENT})
    assert writers(paths, one).verify(one) == []


@pytest.mark.parametrize(
    ("name", "recorded", "finding"),
    [
        ("f", "other", "file 'f' was changed"),
        ("none", "other", "file 'none' is missing"),
        ("f", ABSENT, "file 'f' is back"),
    ],
)
def test_file_that_differs_is_a_finding(
    paths: Paths, name: str, recorded: str, finding: str
) -> None:
    one = record("a", {name: recorded})
    assert writers(paths, one).verify(one) == [finding]


def test_findings_are_sorted(paths: Paths) -> None:
    one = record("a", {"z": "1", "m": "1", "f": "1"})
    assert len(writers(paths, one).verify(one)) == 3
    assert writers(paths, one).verify(one)[0].startswith("file 'f'")


def test_step_below_that_overwrote_a_file_unread_explains_it(paths: Paths) -> None:
    one, two = record("a", {"f": "old"}), record("b", {"f": "whatever"})
    assert writers(paths, one, two).verify(one) == []


def test_step_above_explains_nothing(paths: Paths) -> None:
    one, two = record("a", {"f": paths.digest("f")}), record("b", {"f": "old"})
    assert writers(paths, one, two).verify(two) == ["file 'f' was changed"]


def test_step_below_that_changed_what_was_there_explains_it_while_verified(
    paths: Paths,
) -> None:
    one = record("a", {"f": "old"})
    two = record("b", {"f": paths.digest("f")}, reads={"f": "old"})
    assert writers(paths, one, two).verify(one) == []
    assert writers(paths, one, two, stale=["b"]).verify(one)


def test_change_from_outside_is_blamed_on_both_who_need_it(paths: Paths) -> None:
    one = record("a", {"f": "old"})
    two = record("b", {"f": "appended"}, reads={"f": "old"})
    found = writers(paths, one, two)
    assert found.verify(one) == ["file 'f' was changed"]
    assert found.verify(two) == ["file 'f' was changed"]


def test_step_below_with_another_file_damaged_explains_nothing(paths: Paths) -> None:
    one = record("a", {"f": "old"})
    two = record("b", {"f": paths.digest("f"), "none": "1"}, reads={"f": "old"})
    assert writers(paths, one, two).verify(one) == ["file 'f' was changed"]


def test_interrupted_step_below_explains_the_files_it_claimed(paths: Paths) -> None:
    one = record("a", {"f": "old", "sub/g.csv": "old"})
    found = writers(paths, one, attempts=[attempt("b", 1, "f")])
    assert found.verify(one) == ["file 'sub/g.csv' was changed"]


def test_interrupted_step_above_explains_nothing(paths: Paths) -> None:
    two = record("b", {"f": "old"})
    found = writers(paths, two, attempts=[attempt("a", 1, "f")])
    assert found.verify(two) == ["file 'f' was changed"]


def test_completed_attempt_explains_nothing_by_its_claims(paths: Paths) -> None:
    one, two = record("a", {"f": "old"}), record("b", {})
    found = writers(paths, one, two, attempts=[attempt("b", 1, "f")])
    assert found.verify(one) == ["file 'f' was changed"]


def test_attempt_after_the_record_explains_by_its_claims(paths: Paths) -> None:
    one, two = record("a", {"f": "old"}), record("b", {})
    found = writers(paths, one, two, attempts=[attempt("b", 2, "f")])
    assert found.verify(one) == []


def test_step_that_left_the_plan_explains_nothing(paths: Paths) -> None:
    one, two = record("a", {"f": "old"}), record("removed", {"f": "x"})
    assert writers(paths, one, two).verify(one) == ["file 'f' was changed"]


def test_file_belongs_to_the_last_step_of_the_plan_that_wrote_it(
    paths: Paths,
) -> None:
    one, two = record("a", {"f": "1", "g": "1"}), record("b", {"f": "2"})
    found = writers(paths, two, one)
    assert found.others("a") == {"f"}
    assert found.others("b") == {"g"}
    assert found.others("c") == {"f", "g"}


def test_listing_that_nobody_changed_is_as_recorded(paths: Paths) -> None:
    one = lists("a", here=("f", "sub"), sub=("g.csv",))
    found = writers(paths, one).listings(one)
    assert found == {"folders": one.fingerprint.folders, "globs": one.fingerprint.globs}


def test_step_that_listed_nothing_has_no_listings(paths: Paths) -> None:
    one = record("a", {})
    assert writers(paths, one).listings(one) == {"folders": {}, "globs": {}}


@pytest.mark.parametrize("step", ["b", "c"])
def test_names_that_the_step_or_one_below_wrote_are_left_out(
    paths: Paths, step: str
) -> None:
    one = lists("b", sub=("g.csv",))
    (paths.base / "sub" / "new.csv").touch()
    two = record(step, {"sub/new.csv": paths.digest("sub/new.csv")})
    mine = replace(one, evidence=two.evidence) if step == "b" else one
    found = writers(paths, mine, *([two] if step == "c" else [])).listings(mine)
    assert found == {"folders": one.fingerprint.folders, "globs": one.fingerprint.globs}


def test_names_that_a_step_above_wrote_came(paths: Paths) -> None:
    one = lists("b", sub=("g.csv",))
    (paths.base / "sub" / "new.csv").touch()
    two = record("a", {"sub/new.csv": paths.digest("sub/new.csv")})
    found = writers(paths, one, two).listings(one)
    assert found["folders"] == {"sub": ("g.csv", "new.csv")}
    assert found["globs"] == {"*/*.csv": ("sub/g.csv", "sub/new.csv")}


def test_names_that_an_interrupted_step_below_claimed_are_left_out(
    paths: Paths,
) -> None:
    one = lists("a", sub=("g.csv",))
    (paths.base / "sub" / "new.csv").touch()
    for claim in ("sub/new.csv", "sub/n*", "sub/"):
        found = writers(paths, one, attempts=[attempt("b", 1, claim)])
        assert found.listings(one)["folders"] == {"sub": ("g.csv",)}
    found = writers(paths, one, attempts=[attempt("b", 1, "sub/other")])
    assert found.listings(one)["folders"] == {"sub": ("g.csv", "new.csv")}


def test_folder_that_a_step_below_made_is_left_out(paths: Paths) -> None:
    one, two = lists("a", here=("f", "sub")), record("b", {})
    (paths.base / "made").mkdir()
    two = replace(two, evidence=Evidence(made=("made",)))
    assert writers(paths, one, two).listings(one)["folders"] == {".": ("f", "sub")}


def test_file_that_a_step_below_took_away_still_counts(paths: Paths) -> None:
    one = lists("a", sub=("g.csv", "taken.csv"))
    two = record("b", {"sub/taken.csv": ABSENT})
    assert writers(paths, one, two).listings(one)["folders"] == one.fingerprint.folders
    assert writers(paths, one).listings(one)["folders"] == {"sub": ("g.csv",)}


def test_steps_await_what_they_read_and_list_above_one_that_changes_it(
    paths: Paths,
) -> None:
    one = record("a", {}, reads={"in.csv": "1"})
    two = lists("b", here=("f",), sub=("g.csv",))
    found = writers(paths, one, two)
    assert found.awaited("a") == set()
    assert found.awaited("b") == {"in.csv"}
    assert found.awaited("c") == {"in.csv", "./", "sub/"}
    assert found.awaited("not in the plan") == {"in.csv", "./", "sub/"}


def test_database_counts_by_its_rows(paths: Paths) -> None:
    before = paths.digest("x.db")
    assert before == ABSENT
    with contextlib.closing(sqlite3.connect(paths.base / "x.db")) as connection:
        connection.execute("create table t(v)")
        before = paths.digest("x.db")
        connection.execute("vacuum")
        assert paths.digest("x.db") == before
        connection.execute("create table u(v)")
        assert paths.digest("x.db") != before


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        ([], []),
        (["x == 1"], []),
        (["x == 2"], ["check 'x == 2' is not true"]),
        (["[]"], ["check '[]' is not true"]),
        (["x", "y"], ["check 'y' raised NameError: name 'y' is not defined"]),
        (["1 / 0"], ["check '1 / 0' raised ZeroDivisionError: division by zero"]),
        (["all(i < x for i in [0])"], []),
        (["x == 2", "x == 3"], ["check 'x == 2' is not true", "check 'x == 3' is not true"]),
    ],
)  # fmt: skip
def test_checks_that_are_not_true_are_told(checks: list[str], found: list[str]) -> None:
    assert evaluate_checks(checks, {"x": 1}) == found


def test_check_is_evaluated_among_the_notebooks_names() -> None:
    namespace: dict[str, Any] = {"calls": []}
    assert evaluate_checks(["calls.append(1) is None"], namespace) == []
    assert namespace["calls"] == [1]


def test_check_that_fails_names_its_step_and_what_to_do() -> None:
    with pytest.raises(
        CheckFailed, match="step clean: check 'x' is not true"
    ) as caught:
        require_checks("clean", ["x"], {"x": 0})
    assert "is not recorded" in caught.value.remedy
    require_checks("clean", ["x"], {"x": 1})
