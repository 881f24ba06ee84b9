"""Files that a step touches: noticed by what Python does, not by what the step says."""

from __future__ import annotations

import contextlib
import glob
import importlib.metadata
import importlib.util
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

import nbckpt
from nbckpt.inputs import watch
from nbckpt.inputs.proofs import Paths
from nbckpt.inputs.watch import Touched, Watch

if TYPE_CHECKING:
    from collections.abc import Callable


class Scene:
    """A notebook's folder with a few files, and a watch on it."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.claims: list[str] = []
        for name in ("a.csv", "b.csv"):
            (base / name).write_text("n\n1\n")
        (base / "sub").mkdir()
        (base / "sub" / "c.csv").write_text("c")
        (base / ".nbckpt").mkdir()
        self.paths = Paths(base)
        self.before = {name: self.paths.digest(name) for name in ("a.csv", "b.csv")}
        self.watch = Watch(self.paths, base / ".nbckpt", self.claims.append)

    def see(self, action: Callable[[Path], object]) -> Touched:
        self.watch.start()
        try:
            action(self.base)
        finally:
            touched = self.watch.stop()
        return touched


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.chdir(tmp_path)
    # Without it Python traces no audit hook, and coverage sees nothing of ours.
    monkeypatch.setattr(watch._audit, "__cantrace__", True, raising=False)
    return Scene(tmp_path)


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("x")


def update(path: Path) -> None:
    with path.open("r+") as file:
        file.write("x")


def low_level(path: Path, flags: int) -> None:
    os.close(os.open(path, flags, 0o600))


READS: dict[str, Callable[[Path], object]] = {
    "read_text": lambda b: (b / "a.csv").read_text(),
    "read_bytes": lambda b: (b / "a.csv").read_bytes(),
    "pandas": lambda b: pd.read_csv(b / "a.csv"),
    "numpy": lambda b: np.loadtxt(b / "a.csv", skiprows=1),
    "relative": lambda _: Path("a.csv").read_text(),
    "as bytes": lambda b: os.close(os.open(os.fsencode(b / "a.csv"), os.O_RDONLY)),
    "low level": lambda b: low_level(b / "a.csv", os.O_RDONLY),
    "through dots": lambda b: (b / "sub" / ".." / "a.csv").read_text(),
}


@pytest.mark.parametrize("how", READS)
def test_file_that_is_read_is_noticed(scene: Scene, how: str) -> None:
    touched = scene.see(READS[how])
    assert touched.read == {"a.csv": ""}
    assert touched.written == set()
    assert scene.claims == []


WRITES: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "new file": (lambda b: (b / "new").write_text("x"), {"new"}),
    "overwritten": (lambda b: (b / "a.csv").write_text("x"), {"a.csv"}),
    "appended": (lambda b: append(b / "a.csv"), {"a.csv"}),
    "updated": (lambda b: update(b / "a.csv"), {"a.csv"}),
    "in a folder": (lambda b: (b / "sub" / "new").write_text("x"), {"sub/new"}),
    "touched": (lambda b: (b / "new").touch(), {"new"}),
    "pandas": (lambda b: pd.DataFrame({"a": [1]}).to_csv(b / "new"), {"new"}),
    "numpy": (lambda b: np.save(b / "new.npy", np.ones(3)), {"new.npy"}),
    "removed": (lambda b: (b / "a.csv").unlink(), {"a.csv"}),
    "renamed": (lambda b: (b / "a.csv").rename(b / "new"), {"a.csv", "new"}),
    "replaced": (lambda b: (b / "a.csv").replace(b / "b.csv"), {"a.csv", "b.csv"}),
    "truncated": (lambda b: os.truncate(b / "a.csv", 0), {"a.csv"}),
    "hard link": (lambda b: (b / "new").hardlink_to(b / "a.csv"), {"new"}),
    "soft link": (lambda b: (b / "new").symlink_to(b / "a.csv"), {"new"}),
    "copied": (lambda b: shutil.copy(b / "a.csv", b / "new"), {"new"}),
    "moved": (lambda b: shutil.move(b / "a.csv", b / "sub"), {"a.csv", "sub/a.csv"}),
    "tree removed": (lambda b: shutil.rmtree(b / "sub"), {"sub/c.csv"}),
    "low level": (
        lambda b: low_level(b / "new", os.O_WRONLY | os.O_CREAT),
        {"new"},
    ),
}


@pytest.mark.parametrize("how", WRITES)
def test_file_that_is_changed_is_noticed(scene: Scene, how: str) -> None:
    action, expected = WRITES[how]
    touched = scene.see(action)
    assert touched.written == expected
    assert set(scene.claims) - {"sub"} == expected


def test_files_of_a_folder_that_is_renamed_are_moved(scene: Scene) -> None:
    touched = scene.see(lambda b: (b / "sub").rename(b / "other"))
    assert touched.written == {"sub/c.csv", "other/c.csv"}
    assert touched.removed == {"sub/c.csv"}
    assert touched.moved == {"sub": True, "other": False}
    assert touched.lasting_folders(scene.paths) == ("other", "sub")


@pytest.mark.parametrize("how", ["appended", "updated", "truncated"])
def test_file_that_is_read_and_changed_counts_as_it_was_before(
    scene: Scene, how: str
) -> None:
    touched = scene.see(WRITES[how][0])
    assert touched.read == {"a.csv": scene.before["a.csv"]}


def test_file_that_is_read_first_and_overwritten_later_counts_as_before(
    scene: Scene,
) -> None:
    def action(base: Path) -> None:
        text = (base / "a.csv").read_text()
        (base / "a.csv").write_text(text * 2)

    assert scene.see(action).read == {"a.csv": scene.before["a.csv"]}


def test_own_output_that_is_read_back_is_no_input(scene: Scene) -> None:
    def action(base: Path) -> None:
        (base / "new").write_text("x")
        (base / "new").read_text()

    assert scene.see(action).read == {}


def test_overwritten_file_is_no_input(scene: Scene) -> None:
    assert scene.see(lambda b: (b / "a.csv").write_text("x")).read == {}


def test_file_that_stood_before_is_told_from_a_new_one(scene: Scene) -> None:
    def action(base: Path) -> None:
        (base / "a.csv").unlink()
        (base / "scratch").write_text("x")
        (base / "scratch").unlink()

    touched = scene.see(action)
    assert touched.removed == {"a.csv"}
    assert touched.written == {"a.csv", "scratch"}


def test_file_is_claimed_before_it_is_changed_and_once(scene: Scene) -> None:
    seen: list[str] = []
    path = scene.base / "a.csv"

    def claim(name: str) -> None:
        seen.append(f"{name} {path.read_text()!r}")

    scene.watch._claim = claim

    def action(_: Path) -> None:
        path.write_text("1")
        append(path)
        path.unlink()

    scene.see(action)
    assert seen == ["a.csv 'n\\n1\\n'"]


def test_missing_file_that_is_looked_for_is_an_input(scene: Scene) -> None:
    def action(base: Path) -> None:
        with pytest.raises(FileNotFoundError):
            (base / "nowhere").read_text()

    assert scene.see(action).read == {"nowhere": ""}


def make(path: Path) -> Path:
    subprocess.run(["mkdir", "-p", str(path)], check=True)
    return path


UNNOTICED: dict[str, Callable[[Path], object]] = {
    "the store": lambda b: (b / ".nbckpt" / "x").write_text(""),
    "the standard library": lambda _: Path(os.__file__).read_text(),
    "installed packages": lambda _: Path(np.__file__).read_text(),
    "the system's files": lambda _: Path("/proc/self/status").read_text(),
    "devices": lambda _: Path("/dev/null").write_text("x"),
    "an open file's number": lambda _: os.fdopen(os.dup(0), "rb").close(),
    "a look at a file": lambda b: (b / "a.csv").stat(),
    "the store's list": lambda b: os.listdir(b / ".nbckpt"),
    "nbckpt, wherever it lies": lambda _: Path(nbckpt.__file__).read_text(),
    "a list of installed packages": lambda _: os.listdir(np.__path__[0]),
    "what an import looks for": lambda _: importlib.util.find_spec("no_such_module"),
    "installed distributions": lambda _: list(importlib.metadata.distributions()),
    "a tool's folder": lambda b: os.listdir(make(b / ".ipynb_checkpoints")),
    "a database in memory": lambda _: sqlite3.connect(":memory:").close(),
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("what", UNNOTICED)
def test_what_is_no_evidence_is_not_noticed(scene: Scene, what: str) -> None:
    assert scene.see(UNNOTICED[what]) == Touched()


def test_compiled_modules_are_not_noticed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scene.base / "local_module_1.py").write_text("x = 1")
    monkeypatch.syspath_prepend(scene.base)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    touched = scene.see(lambda _: __import__("local_module_1"))
    assert touched.written == set()
    assert touched.read == {"local_module_1.py": ""}


def test_file_outside_the_notebooks_folder_has_its_whole_name(scene: Scene) -> None:
    with tempfile.TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / "x"
        touched = scene.see(lambda _: path.write_text("x"))
        assert touched.written == {str(path)}


def test_nothing_is_noticed_before_and_after(scene: Scene) -> None:
    scene.see(lambda _: None)
    (scene.base / "later").write_text("x")
    assert scene.watch.touched == Touched()


def test_child_process_is_not_seen(scene: Scene) -> None:
    touched = scene.see(
        lambda b: subprocess.run(["touch", str(b / "new")], check=True, cwd=b)
    )
    assert (scene.base / "new").exists()
    assert "new" not in touched.written


LISTINGS: dict[str, Callable[[Path], object]] = {
    "os.listdir": lambda b: os.listdir(b / "sub"),
    "relative": lambda _: os.listdir("sub"),
    "as bytes": lambda _: os.listdir(b"sub"),
    "through dots": lambda _: os.listdir("sub/../sub/"),
    "os.scandir": lambda b: list(os.scandir(b / "sub")),
    "iterdir": lambda b: list((b / "sub").iterdir()),
    "os.walk": lambda b: list(os.walk(b / "sub")),
    "os.fwalk": lambda b: list(os.fwalk(b / "sub")),
    "bottom up": lambda b: list(os.walk(b / "sub", topdown=False)),
    "copied": lambda b: shutil.copytree(b / "sub", b / "new"),
    "an open folder": lambda b: list_open(b / "sub"),
}


def list_open(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    os.listdir(number)
    os.close(number)


@pytest.mark.parametrize("how", LISTINGS)
def test_folder_that_is_listed_is_noticed(scene: Scene, how: str) -> None:
    assert scene.see(LISTINGS[how]).folders == {"sub": ("c.csv",)}


def test_notebooks_own_folder_is_listed_without_the_store(scene: Scene) -> None:
    touched = scene.see(lambda _: os.listdir())
    assert touched.folders == {".": ("a.csv", "b.csv", "sub")}


def test_walk_lists_the_folders_that_it_enters(scene: Scene) -> None:
    def action(base: Path) -> None:
        (base / "sub" / "deep").mkdir()
        for _, folders, _ in os.walk(base / "sub"):
            folders.clear()

    assert scene.see(action).folders == {"sub": ("c.csv", "deep")}


PATTERNS: dict[str, tuple[Callable[[Path], object], str, tuple[str, ...]]] = {
    "glob": (lambda _: glob.glob("*.csv"), "*.csv", ("a.csv", "b.csv")),
    "iglob": (lambda _: list(glob.iglob("sub/*")), "sub/*", ("sub/c.csv",)),
    "whole": (lambda b: glob.glob(f"{b}/sub/*"), "sub/*", ("sub/c.csv",)),
    "a name": (lambda _: glob.glob("a.csv"), "a.csv", ("a.csv",)),
    "nothing": (lambda _: glob.glob("*.txt"), "*.txt", ()),
    "root": (lambda _: glob.glob("*", root_dir="sub"), "sub/*", ("sub/c.csv",)),
    "deep": (
        lambda _: glob.glob("**/*.csv", recursive=True),
        "**/*.csv",
        ("a.csv", "b.csv", "sub/c.csv"),
    ),
    "not deep": (lambda _: glob.glob("**/*.csv"), "*/*.csv", ("sub/c.csv",)),
    "Path.glob": (lambda b: list((b / "sub").glob("*")), "sub/*", ("sub/c.csv",)),
    "Path.rglob": (
        lambda b: list(b.rglob("c*")),
        "**/c*",
        ("sub/c.csv",),
    ),
}


@pytest.mark.parametrize("how", PATTERNS)
def test_pattern_that_is_looked_for_is_noticed(scene: Scene, how: str) -> None:
    action, pattern, found = PATTERNS[how]
    touched = scene.see(action)
    assert touched.globs == {pattern: found}
    assert touched.folders == {}


def test_folder_outside_counts_if_the_user_lists_it(scene: Scene) -> None:
    with tempfile.TemporaryDirectory() as elsewhere:
        Path(elsewhere, "x").touch()
        touched = scene.see(lambda _: os.listdir(elsewhere))
        assert touched.folders == {elsewhere: ("x",)}


def test_scratch_of_the_step_is_no_input(scene: Scene) -> None:
    def action(base: Path) -> None:
        with tempfile.TemporaryDirectory(dir=base) as scratch:
            Path(scratch, "x").touch()
            os.listdir(scratch)
            os.listdir(base)
            glob.glob("*/x")

    found = scene.see(action)
    assert found.listings(scene.paths) == {
        "folders": {".": ("a.csv", "b.csv", "sub")},
        "globs": {"*/x": ()},
    }
    assert found.lasting_folders(scene.paths) == ()


def test_made_and_removed_folders_are_the_steps_doing(scene: Scene) -> None:
    def action(base: Path) -> None:
        (base / "new").mkdir()
        (base / "sub").mkdir(exist_ok=True)
        (base / "new" / "empty").mkdir()
        (base / "new" / "empty").rmdir()

    touched = scene.see(action)
    assert touched.lasting_folders(scene.paths) == ("new", "sub")
    assert scene.claims[:2] == ["new", "sub"]


def a_database(path: Path, *values: int) -> Path:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table if not exists t(v)")
        connection.executemany("insert into t values (?)", [(v,) for v in values])
    return path


def count(target: str) -> None:
    with contextlib.closing(sqlite3.connect(target, uri=True)) as connection:
        connection.execute("select count(*) from t").fetchall()


def settled(scene: Scene, action: Callable[[Path], object]) -> Touched:
    touched = scene.see(action)
    touched.settle(scene.paths)
    return touched


def test_database_whose_rows_stay_is_read(scene: Scene) -> None:
    a_database(scene.base / "x.db", 1)
    touched = settled(scene, lambda _: count("x.db"))
    assert (touched.read, touched.written) == ({"x.db": ""}, set())
    assert scene.claims == ["x.db"]


def test_database_that_is_opened_to_be_read_is_not_claimed(scene: Scene) -> None:
    a_database(scene.base / "x.db", 1)
    touched = settled(scene, lambda _: count("file:x.db?mode=ro"))
    assert touched.read == {"x.db": ""}
    assert scene.claims == []


def test_database_whose_rows_change_is_read_and_written(scene: Scene) -> None:
    a_database(scene.base / "x.db", 1)
    before = scene.paths.digest("x.db")
    touched = settled(scene, lambda b: a_database(b / "x.db", 2))
    assert touched.read == {"x.db": before}
    assert touched.written == touched.removed == {"x.db"}


def test_new_database_is_only_written(scene: Scene) -> None:
    touched = settled(scene, lambda b: a_database(b / "x.db", 2))
    assert (touched.read, touched.written) == ({}, {"x.db"})
    assert touched.removed == set()


def test_database_that_is_read_and_then_replaced_counts_as_before(
    scene: Scene,
) -> None:
    a_database(scene.base / "x.db", 1)
    before = scene.paths.digest("x.db")

    def action(base: Path) -> None:
        count("x.db")
        a_database(base / "y.db", 2).replace(base / "x.db")

    touched = settled(scene, action)
    assert touched.read == {"x.db": before}
    assert touched.written == {"x.db", "y.db"}


def test_connection_that_is_open_already_is_noticed(scene: Scene) -> None:
    a_database(scene.base / "x.db", 1)
    a_database(scene.base / "y.db", 1)
    with contextlib.closing(sqlite3.connect("x.db")) as connection:
        connection.execute("attach 'y.db' as y")
        scene.watch.consider([connection, 1, "x"])
        with connection:
            connection.execute("insert into y.t values (5)")
        scene.watch.touched.settle(scene.paths)
    assert scene.watch.touched.written == {"y.db"}
    assert set(scene.watch.touched.read) == {"x.db", "y.db"}


MEMORY = Path("/dev", "shm")


@pytest.mark.skipif(not MEMORY.is_dir(), reason="no memory folder")
def test_notebook_in_a_folder_of_the_system_has_files_of_its_own() -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        scene = Scene(Path(folder))

        def action(base: Path) -> None:
            (base / "a.csv").read_text()
            (base / "new").write_text("x")
            os.listdir(base / "sub")
            glob.glob(f"{base}/*.csv")

        touched = scene.see(action)
    assert (touched.read, touched.written) == ({"a.csv": ""}, {"new"})
    assert touched.folders == {"sub": ("c.csv",)}
    assert touched.globs == {"*.csv": ("a.csv", "b.csv")}
