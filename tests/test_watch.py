"""Files that a step touches: noticed by what Python does, not by what the step says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from nbckpt.evidence import Paths
from nbckpt.watch import Touched, Watch

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
    assert set(scene.claims) == expected


def test_whole_folder_that_is_renamed_is_no_file(scene: Scene) -> None:
    touched = scene.see(lambda b: (b / "sub").rename(b / "other"))
    assert touched.written == set()


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


def test_missing_file_that_is_looked_for_is_no_input(scene: Scene) -> None:
    def action(base: Path) -> None:
        with pytest.raises(FileNotFoundError):
            (base / "nowhere").read_text()

    assert scene.see(action).read == {}


UNNOTICED: dict[str, Callable[[Path], object]] = {
    "the store": lambda b: (b / ".nbckpt" / "x").write_text(""),
    "the standard library": lambda _: Path(os.__file__).read_text(),
    "installed packages": lambda _: Path(np.__file__).read_text(),
    "the system's files": lambda _: Path("/proc/self/status").read_text(),
    "devices": lambda _: Path("/dev/null").write_text("x"),
    "an open file's number": lambda _: os.fdopen(os.dup(0), "rb").close(),
    "a folder's list": lambda b: list(b.iterdir()),
    "a look at a file": lambda b: (b / "a.csv").stat(),
    "a new folder": lambda b: (b / "deep").mkdir(),
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
