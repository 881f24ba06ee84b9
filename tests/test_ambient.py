"""State around the variables: what a step changed comes back, and nothing else is set."""

from __future__ import annotations

import decimal
import importlib
import locale
import logging
import os
import random
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch

from nbckpt.state import ambient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


OTHER_LOCALE = "C" if locale.setlocale(locale.LC_ALL) != "C" else "C.UTF-8"


@pytest.fixture(autouse=True)
def _as_before(tmp_path: Path) -> Iterator[None]:
    before, filters = ambient.capture(), list(warnings.filters)
    path, environment = list(sys.path), dict(os.environ)
    (tmp_path / "sub").mkdir()
    os.chdir(tmp_path)
    yield
    for name in ambient.SECTIONS:
        if before[name] is not None and name != "filters":
            ambient.SECTIONS[name][1](before[name])
    warnings.filters[:] = filters  # type: ignore[index]
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(environment)
    logging.getLogger("a.test").setLevel(0)


def numpy_random() -> Any:
    return np.random.random()  # noqa: NPY002 - the global stream is meant


# Label → section, action, what tells whether it is as after the action.
ACTIONS: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
    "python's random": ("random", lambda: random.gauss(0, 1), random.getstate),
    "numpy's random": ("numpy", numpy_random, lambda: str(np.random.get_state())),  # noqa: NPY002
    "folder": ("folder", lambda: os.chdir("sub"), os.getcwd),
    "recursion limit": (
        "recursion",
        lambda: sys.setrecursionlimit(4321),
        sys.getrecursionlimit,
    ),
    "warning filters": (
        "filters",
        lambda: warnings.filterwarnings("ignore", "some text"),
        lambda: warnings.filters[0],
    ),
    "log level": (
        "logging",
        lambda: logging.getLogger("a.test").setLevel(7),
        lambda: logging.getLogger("a.test").level,
    ),
    "root log level": ("logging", lambda: logging.root.setLevel(7), lambda: logging.root.level),
    "numpy's printing": (
        "printing",
        lambda: np.set_printoptions(precision=2),
        lambda: np.get_printoptions()["precision"],
    ),
    "numpy's errors": ("printing", lambda: np.seterr(all="raise"), np.geterr),
    "matplotlib's settings": (
        "matplotlib",
        lambda: mpl.rcParams.update({"lines.linewidth": 7}),
        lambda: mpl.rcParams["lines.linewidth"],
    ),
    "pandas' options": (
        "pandas",
        lambda: pd.set_option("display.max_rows", 7),
        lambda: pd.get_option("display.max_rows"),
    ),
    "search path": (
        "path",
        lambda: sys.path.insert(0, "/some/where"),
        lambda: sys.path.index("/some/where") if "/some/where" in sys.path else -1,
    ),
    "new variable": (
        "environment",
        lambda: os.environ.update(A_NEW_ONE="1"),
        lambda: os.environ.get("A_NEW_ONE"),
    ),
    "decimal precision": (
        "decimal",
        lambda: setattr(decimal.getcontext(), "prec", 5),
        lambda: str(decimal.Decimal(1) / 3),
    ),
    "decimal trap": (
        "decimal",
        lambda: decimal.getcontext().traps.update({decimal.Inexact: True}),
        lambda: decimal.getcontext().traps[decimal.Inexact],
    ),
    "locale": (
        "locale",
        lambda: locale.setlocale(locale.LC_ALL, OTHER_LOCALE),
        lambda: locale.setlocale(locale.LC_ALL),
    ),
    "torch dtype": (
        "dtype",
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.ones(1).dtype,
    ),
    "removed variable": (
        "environment",
        lambda: os.environ.pop("PATH"),
        lambda: os.environ.get("PATH"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("label", ACTIONS)
def test_what_a_step_changed_is_found_alone_and_comes_back(label: str) -> None:
    section, action, tell = ACTIONS[label]
    before, was = ambient.capture(), tell()
    action()
    change, told = ambient.changed(before, ambient.capture()), tell()
    assert set(change) == {section}
    assert told != was
    back = ambient.changed(ambient.capture(), before)
    if section == "path":
        sys.path.remove("/some/where")
    else:
        ambient.restore(back)
    assert tell() == was
    ambient.restore(change)
    assert tell() == told


def test_nothing_changed_is_nothing_to_restore() -> None:
    before = ambient.capture()
    assert ambient.changed(before, ambient.capture()) == {}
    ambient.restore({})
    assert ambient.changed(before, ambient.capture()) == {}


def test_stream_goes_on_where_the_step_left_it() -> None:
    random.seed(1)
    before = ambient.capture()
    random.gauss(0, 1)
    change = ambient.changed(before, ambient.capture())
    following = random.gauss(0, 1)
    random.seed(99)
    ambient.restore(change)
    assert random.gauss(0, 1) == following


def test_library_that_was_imported_in_between_is_kept_as_it_stands() -> None:
    after = ambient.capture()
    change = ambient.changed({**after, "numpy": None, "pandas": None}, after)
    assert change == {"numpy": after["numpy"], "pandas": after["pandas"]}


def seed_random() -> None:
    random.seed("a text")


def seed_numpy() -> None:
    np.random.seed([1, 2])  # noqa: NPY002


def seed_torch() -> None:
    pytest.importorskip("torch").manual_seed(5)


@pytest.mark.parametrize(
    ("stream", "seed", "action"),
    [
        ("random", "a text", seed_random),
        ("numpy", [1, 2], seed_numpy),
        ("torch", 5, seed_torch),
    ],
)
def test_stream_is_known_to_stand_where_a_seed_puts_it(
    stream: str, seed: object, action: Callable[[], None]
) -> None:
    action()
    assert ambient.is_seeded(stream, ambient.capture()[stream], seed)
    assert not ambient.is_seeded(stream, ambient.capture()[stream], 77)
    assert not ambient.is_seeded(stream, ambient.capture()[stream], {"no": "seed"})


def test_digests_of_streams_move_with_the_streams() -> None:
    before = ambient.stream_digests(ambient.capture())
    random.gauss(0, 1)
    after = ambient.stream_digests(ambient.capture())
    assert before["random"] != after["random"]
    assert before["numpy"] == after["numpy"]


def test_stream_of_a_library_that_is_not_imported_is_left_out() -> None:
    state = {**ambient.capture(), "torch": None}
    assert "torch" not in ambient.stream_digests(state)


@pytest.mark.parametrize(
    ("environment", "constants", "unspelled"),
    [
        ({"A": "1"}, ["1"], []),
        ({"A": "1"}, [], ["A"]),
        ({"A": None}, [], []),
        ({"B": "x", "A": "y"}, ["z"], ["A", "B"]),
        ({}, [], []),
    ],
)
def test_value_of_a_variable_is_kept_only_where_the_source_spells_it_out(
    environment: dict[str, str | None], constants: list[str], unspelled: list[str]
) -> None:
    assert ambient.unspelled({"environment": environment}, constants) == unspelled


def test_entry_of_the_search_path_is_added_once() -> None:
    change = {"path": [(0, "/a/b"), (1, "/c")]}
    ambient.restore(change)
    ambient.restore(change)
    assert sys.path[:2] == ["/a/b", "/c"]
    assert sys.path.count("/a/b") == 1


def test_modules_that_a_step_imported_are_imported_again() -> None:
    sys.modules.pop("xml.dom.minidom", None)
    ambient.import_all(["xml.dom.minidom", "os"])
    assert "xml.dom.minidom" in sys.modules


def test_module_that_is_missing_now_is_an_error() -> None:
    with pytest.raises(ImportError):
        ambient.import_all(["no_such_module_at_all"])
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("magic", "line", "value"),
    [
        ("env", "PLACE=here", "here"),
        ("set_env", "PLACE = over there", "over there"),
        ("env", "PLACE here", "here"),
        ("set_env", "PLACE=a=b", "a=b"),
    ],
)
def test_value_in_a_magic_is_spelled_out(magic: str, line: str, value: str) -> None:
    assert ambient.values_in_magics([(magic, line), ("time", "x=1")]) == {value}


def test_time_zone_comes_back_with_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    ambient.restore({"environment": {"TZ": "Asia/Tokyo"}})
    assert time.tzname[0] == "JST"
    ambient.restore({"environment": {"TZ": "UTC"}})
    assert time.tzname[0] == "UTC"
