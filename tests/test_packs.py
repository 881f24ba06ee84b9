"""Packs have users; without any they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.errors import SaveFailed
from nbckpt.records import Contents
from nbckpt.store import Store
from nbckpt.store.packs import Pack, packs_of, release_packs, use_packs
from nbckpt.trust import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = Store(tmp_path / ".nbckpt", Secret(b"k" * 32))
    yield found
    found.close()


def use(store: Store, user: str, *packs: str, new: str) -> None:
    contents = Contents(packs=packs)
    store.transact(lambda tx: use_packs(tx, user, contents, Pack(new, b"bytes")))


def release(store: Store, user: str, before: Any, kept: set[str]) -> list[str]:
    return store.transact(lambda tx: release_packs(tx, user, before, kept))


def test_pack_goes_with_its_last_user(store: Store) -> None:
    use(store, "step/r/a", "p", new="p")
    use(store, "loop/r/b/1", "p", "q", new="q")
    before = {"contents": {"packs": ["p"]}}
    assert release(store, "step/r/a", before, set()) == []
    assert release(store, "loop/r/b/1", before, set()) == ["p"]
    assert store.keys("pack/") == ["pack/q"]
    assert store.keys("inline/") == ["inline/q"]


def test_pack_that_goes_on_being_used_stays(store: Store) -> None:
    use(store, "step/r/a", "p", new="p")
    before = {"contents": {"packs": ["p"]}}
    assert release(store, "step/r/a", before, {"p"}) == []
    assert store.keys("pack/") == ["pack/p"]


def test_record_on_a_pack_that_was_dropped_is_refused(store: Store) -> None:
    with pytest.raises(SaveFailed, match="dropped meanwhile"):
        use(store, "step/r/a", "gone", "p", new="p")
    assert store.keys("pack/") == []


def test_record_without_contents_has_no_packs() -> None:
    assert packs_of(None) == packs_of({"contents": None}) == set()
