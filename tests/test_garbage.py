"""What no record needs goes, whoever else is at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbckpt.state.garbage import Swept, collect
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from pathlib import Path


def test_file_that_is_gone_meanwhile_ends_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / ".nbckpt", load_secret())
    store.transact(lambda _: None)
    for folder, name in (("packs", "gone.pack"), ("spill", "gone")):
        (store.folder / folder / name).symlink_to("nothing")
    (store.folder / "packs" / "stray.pack").write_bytes(b"123")
    assert collect(store) == Swept(2, 3)
    store.close()
