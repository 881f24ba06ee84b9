"""What no record needs goes, whoever else is at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt.state import garbage
from nbckpt.state.garbage import Swept, collect
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.notebook import Notebook


def test_file_that_is_gone_meanwhile_ends_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / ".nbckpt", load_secret())
    store.transact(lambda _: None)
    for folder, name in (("packs", "gone.pack"), ("spill", "gone")):
        (store.folder / folder / name).symlink_to("nothing")
    (store.folder / "packs" / "stray.pack").write_bytes(b"123")
    assert collect(store) == Swept(2, 3)
    store.close()


def test_pack_that_is_recorded_while_the_holder_is_asked_for_stays(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, rows = recorded(notebook)
    store.transact(lambda tx: [tx.delete(key) for key in rows])

    def ends(_: object) -> str:
        """Do what the holder does in this moment: record the pack, and end."""
        store.transact(lambda tx: [tx.put(*row) for row in rows.items()])
        return "dead"

    monkeypatch.setattr(garbage, "standing", ends)
    assert collect(store) == Swept(0, 0)
    store.close()


def test_damaged_record_keeps_no_pack_and_stops_nothing(notebook: Notebook) -> None:
    store, rows = recorded(notebook)
    step = next(key for key in rows if key.startswith("step/"))
    store.transact(lambda tx: tx._cache.set(step, b"no seal"))
    assert collect(store).files == 1
    store.close()


def recorded(notebook: Notebook) -> tuple[Store, dict[str, Any]]:
    """Return a store with a step that rests on a pack, and the rows that say so."""
    notebook.run("%%step big\nbig = bytes(range(256)) * 1000")
    folder = notebook.session.store.folder
    notebook.close()
    store = Store(folder, load_secret())
    assert len(list((folder / "packs").iterdir())) == 1
    keys = [*store.keys("pack/"), *store.keys("step/")]
    return store, {key: store.get(key) for key in keys}
