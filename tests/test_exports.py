"""What ``import nbckpt`` shows is what we say it shows."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from pathlib import Path

import pytest

import nbckpt

PUBLIC = [
    "NbckptError",
    "WaitingForAnswer",
    "ask",
    "check",
    "current_run",
    "decide",
    "effect",
    "evidence",
    "idempotency_key",
    "items",
    "load_ipython_extension",
    "map",
    "note",
    "progress",
    "receive",
    "relay",
    "transaction",
    "unknown",
    "unload_ipython_extension",
]


def test_exported_names_are_what_we_say() -> None:
    assert sorted(nbckpt.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_exported_name_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(nbckpt, name))


def test_version_is_said_once() -> None:
    """The package and its metadata can't tell two versions."""
    assert nbckpt.__version__ == version("nbckpt")


def test_types_are_marked_as_part_of_the_package() -> None:
    assert (Path(nbckpt.__file__).parent / "py.typed").is_file()
