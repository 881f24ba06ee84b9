"""The user's variables: which they are, whether they come back, and no secret in them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nbckpt.blobs.chunks import ChunkIndex, Manifest
from nbckpt.blobs.packfile import PackReader, PackWriter
from nbckpt.credentials import Secrets
from nbckpt.state.snapshots import Changes, changes, take
from nbckpt.state.variables import hide, load, load_test, save, user_names

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "s3cr3t-t0ken-of-the-user"  # noqa: S105 - what must not reach the disk


def made(source: str) -> tuple[Changes, dict[str, Any]]:
    namespace: dict[str, Any] = {"__name__": "__main__", "np": np, "SECRET": SECRET}
    known = set(namespace)
    exec(source, namespace)  # noqa: S102 - a step's body
    values = {n: v for n, v in namespace.items() if n not in {*known, "__builtins__"}}
    before = take({}, namespace)
    return changes(before, take(values, namespace, before)), namespace


def through_pack(folder: Path, changed: Changes, namespace: dict[str, Any]) -> Any:
    writer = PackWriter(folder, "p", ChunkIndex())
    stretch, whole = writer.finish({"components": save(changed, writer)})
    reader = PackReader(folder, {"p": whole}.get)
    manifest = reader.manifest(stretch)
    again = Manifest.decode(manifest.encode())
    return load(again, reader, {k: namespace[k] for k in ("__name__", "np", "SECRET")})


@pytest.mark.parametrize(
    "name",
    ["_", "__", "___", "_1", "_23", "_i", "_ii", "_iii", "_i5", "_oh", "_ih", "_dh", "_sh",
     "__name__", "__builtins__", "__nbckpt__", "_exit_code"],
)  # fmt: skip
def test_names_of_the_shell_are_not_the_users(name: str) -> None:
    assert user_names({name: 1}, ()) == {}


@pytest.mark.parametrize(
    "name", ["x", "_x", "_private", "__x", "x_1", "_ix", "i", "In_", "df", "_1a", "ä"]
)
def test_names_of_the_user_are(name: str) -> None:
    assert user_names({name: 1}, ()) == {name: 1}


def test_hidden_names_are_left_out() -> None:
    assert user_names({"x": 1, "In": 2}, ["In"]) == {"x": 1}


@pytest.mark.parametrize(
    "source",
    [
        "x = 1; y = [x]; z = 'ü'",
        "x = np.arange(90000.); y = x[5:10]; z = {'v': y}",
        "class C: k = 1\nclass D(C): pass\nx = D(); y = [x, D]",
        "def g(): return 1\ndef f(): return g()\nx = [f, g]",
        "import enum\nclass E(enum.Enum): A = 1\nx = E.A; y = {E.A: 1}",
        "a = []; a.append(a); b = {'a': a}",
        "z = 1\nclass B: pass\na = B()\nclass A(B): pass\nb = A()",
    ],
)
def test_names_of_a_step_come_back_from_a_pack(tmp_path: Path, source: str) -> None:
    changed, namespace = made(source)
    values = through_pack(tmp_path, changed, namespace)
    assert sorted(values) == changed.names


def test_restored_definitions_are_those_of_the_restored_instances(
    tmp_path: Path,
) -> None:
    changed, namespace = made("class Z: pass\na = Z()\nb = [Z, a]")
    values = through_pack(tmp_path, changed, namespace)
    assert type(values["a"]) is values["Z"] is values["b"][0]


def test_name_that_is_not_defined_any_more_is_an_error(tmp_path: Path) -> None:
    changed, namespace = made("class Z: pass\na = [Z()]")
    only = {names: e for names, e in changed.components.items() if "Z" not in names}
    with pytest.raises(LookupError, match="does not define Z"):
        through_pack(tmp_path, Changes(only, ()), namespace)


def test_restored_arrays_can_be_written_and_the_pack_stays(tmp_path: Path) -> None:
    changed, namespace = made("x = np.ones(90000)")
    values = through_pack(tmp_path, changed, namespace)
    before = (tmp_path / "p.pack").read_bytes()
    values["x"][:] = 5
    assert (tmp_path / "p.pack").read_bytes() == before


def test_type_that_does_not_come_back_is_found_while_its_values_are_there() -> None:
    source = "class R:\n  def __reduce__(self): return int, ('x',)\nx = [R()]"
    changed, namespace = made(source)
    (refusal,) = load_test(changed, namespace, set())
    assert refusal.path == "x"
    assert "does not come back: ValueError" in refusal.reason


def test_type_that_came_back_once_is_proven() -> None:
    changed, namespace = made("class R: pass\nx = R()")
    proven: set[type] = set()
    assert load_test(changed, namespace, proven) == []
    assert namespace["R"] in proven


def test_value_that_is_refused_is_not_decoded() -> None:
    changed, namespace = made("x = (i for i in [1])")
    assert load_test(changed, namespace, set()) == []
    assert changed.refusals


HIDDEN = [
    "x = SECRET",
    "x = [{'k': SECRET}]",
    "x = 'https://user:' + SECRET + '@host/'",
    "class C: pass\nx = C(); x.token = SECRET",
    "def f(a=SECRET): return a\nx = f",
    "x = {SECRET: 1}",
    "def mk(s):\n  return lambda: s\nx = mk(SECRET)",
    "x = (SECRET, SECRET + SECRET)",
]


def on_disk(changed: Changes) -> bytes:
    parts = changed.components.values()
    return b"".join(bytes(p) for e in parts for p in [e.stream, *e.buffers])


@pytest.mark.parametrize("source", HIDDEN)
def test_secret_of_the_environment_never_reaches_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    changed, namespace = made(source)
    hidden = hide(changed, namespace, namespace, Secrets.of_environment())
    assert hidden.refusals == []
    assert SECRET.encode() not in on_disk(hidden)
    values = through_pack(tmp_path, hidden, namespace)
    assert SECRET in repr(vars(values["x"]) if "C()" in source else values["x"]) or (
        callable(values["x"]) and values["x"]() == SECRET
    )


@pytest.mark.parametrize("source", HIDDEN)
def test_negative_control_without_hiding_the_secret_is_there(source: str) -> None:
    changed, _ = made(source)
    assert SECRET.encode() in on_disk(changed)


def test_secret_comes_back_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    changed, namespace = made("x = 'a ' + SECRET + ' b'")
    hidden = hide(changed, namespace, namespace, Secrets.of_environment())
    monkeypatch.setenv("MY_TOKEN", "another-one")
    assert through_pack(tmp_path, hidden, namespace)["x"] == "a another-one b"


def test_secret_whose_variable_is_gone_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    changed, namespace = made("x = [SECRET]")
    hidden = hide(changed, namespace, namespace, Secrets.of_environment())
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(KeyError, match="MY_TOKEN"):
        through_pack(tmp_path, hidden, namespace)


@pytest.mark.parametrize(
    "source",
    [
        "x = SECRET.encode()",
        "x = np.frombuffer(SECRET.encode() * 1000, 'u1').copy()",
        "x = bytearray(SECRET.encode())",
    ],
)
def test_secret_that_can_not_be_taken_out_is_refused(
    monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setenv("MY_TOKEN", SECRET)
    changed, namespace = made(source)
    hidden = hide(changed, namespace, namespace, Secrets.of_environment())
    assert [str(r) for r in hidden.refusals] == [
        "x: secret (it holds a credential of the environment; --drop it)"
    ]


@pytest.mark.parametrize(
    ("variable", "value", "found"),
    [
        ("AWS_SECRET_ACCESS_KEY", SECRET, True),
        ("GITHUB_TOKEN", SECRET, True),
        ("db_password", SECRET, True),
        ("PGPASSWORD", SECRET, True),
        ("MY_CREDENTIALS", SECRET, True),
        ("HOME_FOLDER", SECRET, False),
        ("MY_TOKEN", "short", False),
    ],
)
def test_credentials_are_told_by_the_names_of_variables(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, found: bool
) -> None:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, value)
    assert Secrets.of_environment().are_in(value.encode()) is found


def written(folder: Path, name: str, index: ChunkIndex, changed: Changes) -> int:
    """Return the bytes that a checkpoint adds to a store."""
    writer = PackWriter(folder, name, index)
    _, whole = writer.finish({"components": save(changed, writer)})
    return len(whole) if whole else (folder / f"{name}.pack").stat().st_size


@pytest.mark.parametrize("column", ["a", "e", "j"])
@pytest.mark.parametrize("change", ["df[c] = 0.5", "df[c] = df[c] * 2", "del df[c]"])
def test_changed_column_of_a_frame_is_written_alone(
    tmp_path: Path, column: str, change: str
) -> None:
    rows, index = 150_003, ChunkIndex()
    _, namespace = made(
        "import pandas as pd\nrng = np.random.default_rng(0)\n"
        f"df = pd.DataFrame({{k: rng.random({rows}) for k in 'abcdefghij'}})"
    )
    frame, others = {"df": namespace["df"]}, {**namespace, "c": column}
    nothing = take({}, namespace)
    first = changes(nothing, take(frame, namespace, nothing))
    assert written(tmp_path, "p", index, first) > 10 * rows * 8
    exec(change, others)  # noqa: S102 - the next step's body
    second = changes(nothing, take(frame, namespace, nothing))
    assert written(tmp_path, "q", index, second) < 1.3 * rows * 8


def test_frame_without_one_of_its_columns_comes_back(tmp_path: Path) -> None:
    source = "import pandas as pd\ndf = pd.DataFrame(np.arange(3e6).reshape(10, -1).T)"
    changed, namespace = made(source)
    index = ChunkIndex()
    assert written(tmp_path, "p", index, changed) > 24_000_000
    del namespace["df"][4]
    nothing = take({}, namespace)
    again = changes(nothing, take({"df": namespace["df"]}, namespace, nothing))
    writer = PackWriter(tmp_path, "q", index)
    stretch, whole = writer.finish({"components": save(again, writer)})
    packs = PackReader(tmp_path, {"q": whole}.get)
    for _ in range(2):
        frame = load(packs.manifest(stretch), packs, {})["df"]
        assert frame.equals(namespace["df"])
        frame.iloc[5, 5] = -1.0
