"""The fingerprint of a step: every input by value, and no name that is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nbckpt.inputs.fingerprint import Body, Inputs
from nbckpt.inputs.imported import Imported
from nbckpt.inputs.proofs import Paths
from nbckpt.plan import read_step
from nbckpt.records import Fingerprint
from nbckpt.source.cells import parse_body
from nbckpt.state.modulestate import Names
from nbckpt.trust import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EMPTY = Fingerprint()


class Desk:
    """A namespace in a folder, and fingerprints of bodies over it."""

    def __init__(self, base: Path) -> None:
        self.paths = Paths(base)
        self.namespace: dict[str, Any] = {"__name__": "__main__", "np": np}
        self.inputs = Inputs(
            Names(self.namespace), self.paths, Secret(b"s" * 32), Imported(self.paths)
        )

    def run(self, source: str) -> None:
        exec(source, self.namespace)  # noqa: S102 - a plain cell
        self.inputs.forget()

    def print(
        self, body: str, line: str = "a", recorded: Fingerprint = EMPTY
    ) -> Fingerprint:
        visible = {name for name in self.namespace if not name.startswith("__")}
        found = Body.of(parse_body(body))
        return self.inputs.fingerprint(read_step(line), found, visible, recorded)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "raw.csv").write_text("1")
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("plain", "body", "line", "names"),
    [
        ("x = 1; y = 2", "z = x", "a", "x"),
        ("x = 1", "x = 2", "a", ""),
        ("x = 1", "x += 1", "a", "x"),
        ("x = 1", "print(x)", "a --ignore x", ""),
        ("k = 1\ndef f(): return k", "f()", "a", "f k"),
        ("k = 1\ndef g(): return k\ndef f(): return g()", "f()", "a", "f g k"),
        ("k = 1\nclass C:\n def m(s): return k\nc = C()", "c.m()", "a", "c k"),
        ("k = 1\nfs = [lambda: k]", "fs[0]()", "a", "fs k"),
        ("k = 1\ndef f(): return k", "f()", "a --ignore k", "f"),
        ("x = 1; y = 2", "globals()['x']", "a", "x y np"),
        ("x = 1", "zzz", "a", ""),
        ("", "get_ipython(); display(In, Out)", "a", ""),
        ("k = 1", "class C:\n    v = k", "a", "k"),
    ],
)
def test_inputs_are_the_names_that_the_body_and_its_functions_read(
    desk: Desk, plain: str, body: str, line: str, names: str
) -> None:
    desk.run(plain)
    assert set(desk.print(body, line).inputs) == set(names.split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = [1, {'a': 2}]", "x = [1, {'a': 3}]"),
        ("x = np.zeros(3)", "x = np.ones(3)"),
        ("def x(): return 1", "def x(): return 2"),
        ("k = 1\ndef x(): return k", "k = 2\ndef x(): return k"),
        ("class C: v = 1\nx = C()", "class C: v = 2\nx = C()"),
    ],
)
def test_changed_input_changes_the_fingerprint(
    desk: Desk, one: str, other: str
) -> None:
    desk.run(one)
    before = desk.print("y = x")
    assert desk.print("y = x") == before
    desk.run(one)
    assert desk.print("y = x") == before
    desk.run(other)
    assert desk.print("y = x").inputs != before.inputs


def test_digest_is_kept_until_other_code_has_run(desk: Desk) -> None:
    desk.run("x = [1]")
    before = desk.inputs.value("x")
    desk.namespace["x"].append(2)
    assert desk.inputs.value("x") is before
    desk.inputs.forget_names(["x"])
    assert desk.inputs.value("x") != before


def test_value_that_can_not_be_compared_makes_the_fingerprint_unknown(
    desk: Desk,
) -> None:
    desk.run("x = (i for i in [1])")
    found = desk.print("y = x", "clean")
    assert "'x' holds a builtins.generator" in found.unknown
    assert "%%step clean --ignore x" in found.unknown
    assert desk.print("y = x", "clean --ignore x").unknown == ""


def test_declared_files_count_by_content(desk: Desk) -> None:
    before = desk.print("pass", "a --reads raw.csv").files
    assert set(before) == {"raw.csv"}
    (desk.paths.base / "raw.csv").write_text("2")
    assert desk.print("pass", "a --reads raw.csv").files != before


def test_files_that_were_seen_to_be_read_count_too(desk: Desk) -> None:
    first = desk.print("pass", "a --reads raw.csv")
    again = desk.print("pass", "a", recorded=first)
    assert again.files == first.files


def test_recorded_input_counts_although_the_body_does_not_name_it(desk: Desk) -> None:
    desk.run("x = 1")
    first = desk.print("y = x")
    assert set(desk.print("pass", recorded=first).inputs) == {"x"}
    del desk.namespace["x"]
    assert desk.print("pass", recorded=first).inputs == {}


@pytest.mark.parametrize(
    ("body", "line", "names"),
    [
        ("import os; os.environ['MY_VAR']", "a", {"MY_VAR"}),
        ("pass", "a --env MY_VAR", {"MY_VAR"}),
        ("pass", "a", set()),
        ("read()", "a", {"MY_VAR"}),
        ("import os; os.getenv('NOT_SET')", "a", {"NOT_SET"}),
    ],
)
def test_environment_variables_that_a_step_names_count(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, body: str, line: str, names: set[str]
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.setenv("MY_VAR", "secret-value")
    desk.run("import os\ndef read(): return os.environ['MY_VAR']")
    found = desk.print(body, line).environment
    assert set(found) == names
    assert "secret-value" not in found.values()
    monkeypatch.setenv("MY_VAR", "another")
    changed = desk.print(body, line).environment
    assert (changed != found) is ("MY_VAR" in names)


def test_versions_of_packages_that_a_step_rests_on_count(desk: Desk) -> None:
    desk.run("x = np.zeros(3)")
    assert desk.print("x.sum()").versions["numpy"] == np.__version__
    assert set(desk.print("y = 1").versions) == {"python"}


@pytest.fixture
def local_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "h6_deep.py").write_text("k = 1\n")
    path = tmp_path / "h6_local.py"
    path.write_text("import h6_deep\ndef f(): return h6_deep.k\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    for name in ("h6_local", "h6_deep"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["h6_local", "h6_deep"])
def test_source_of_local_modules_counts_also_through_others(
    desk: Desk, local_module: Path, name: str
) -> None:
    desk.run("import h6_local\nfrom h6_local import f")
    before = desk.print("f()").modules
    assert set(before) == {"h6_local", "h6_deep"}
    path = local_module.with_name(f"{name}.py")
    path.write_text(path.read_text() + "changed = 1\n")
    after = desk.print("f()").modules
    assert {n for n in before if before[n] != after[n]} == {name}


def test_version_option_counts_and_note_does_not(desk: Desk) -> None:
    assert desk.print("x", "a --version 1").options != desk.print("x").options
    assert desk.print("x", "a --note why").options == desk.print("x").options
