"""A library is upgraded under a store: values are right, and the message says which."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nbckpt.store import Store, Transaction
from nbckpt.trust import load_secret
from tests.scenarios.stage import Stage, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def stamp(store: Path, package: str, version: str) -> None:
    """Let each record say that another version of a package had made it."""
    opened = Store(store, load_secret())

    def change(transaction: Transaction) -> None:
        for key in transaction.keys("step/"):
            record = transaction.get(key)
            assert package in record["fingerprint"]["versions"]
            record["fingerprint"]["versions"][package] = version
            transaction.put(key, record)

    opened.transact(change)
    opened.close()


def test_other_version_of_a_library_is_named_and_values_are_right(
    stage_of: Callable[[str], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = stage_of("65_library_upgraded_under_store")
    assert is_whole(stage.run_fresh())
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(stage.root / "jupyter"))
    assert os.environ["JUPYTER_DATA_DIR"]
    stamp(stage.store, "pandas", "0.0")
    assert "pandas" in stage.cli("explain", "make").stdout
    kernel = stage.kernel()
    assert is_whole(stage.run_all(kernel))
    shown = "(total, str(df.t.dt.tz), list(df.c.cat.categories), list(idx.index.names))"
    assert kernel.value(shown) == "(6, 'UTC', ['u', 'v'], ['s', 't'])"
