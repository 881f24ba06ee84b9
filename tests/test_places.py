"""Where a store may lie: unsafe places are refused before anything is read there."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections import namedtuple
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from nbckpt import places
from nbckpt.errors import StoreRefused

if TYPE_CHECKING:
    from pathlib import Path

Mount = namedtuple("Mount", "mountpoint fstype")  # noqa: PYI024 - as psutil's own


def mounted(monkeypatch: pytest.MonkeyPatch, *mounts: tuple[str, str]) -> None:
    table: Any = [Mount(*mount) for mount in mounts]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: table)


def test_folder_that_does_not_exist_yet_is_fine(tmp_path: Path) -> None:
    places.inspect(tmp_path / "store")
    assert not (tmp_path / "store").exists()


def test_own_closed_folder_is_fine(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o700)
    places.inspect(tmp_path / "store")


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o720, 0o777, 0o770])
def test_folder_open_to_others_is_refused_with_what_to_do(
    tmp_path: Path, mode: int
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(mode)
    with pytest.raises(StoreRefused, match=f"{mode:04o}") as caught:
        places.inspect(store)
    assert f"chmod -R go= {store}" in caught.value.remedy


def test_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "store").symlink_to(tmp_path / "real")
    with pytest.raises(StoreRefused, match="symbolic link"):
        places.inspect(tmp_path / "store")


def test_symbolic_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreRefused, match="symbolic link"):
        places.inspect(tmp_path / "store")


def test_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("x")
    with pytest.raises(StoreRefused, match="no folder"):
        places.inspect(tmp_path / "store")


def test_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StoreRefused, match="another user") as caught:
        places.inspect(tmp_path / "store")
    assert "nbckpt trust" in caught.value.remedy


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "9p", "ceph", "lustre", "fuse.sshfs", "drvfs"]
)
def test_network_file_system_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounted(monkeypatch, ("/", "ext4"), (str(tmp_path), kind))
    with pytest.raises(StoreRefused, match=kind) as caught:
        places.inspect(tmp_path / "store")
    assert "NBCKPT_STORE" in caught.value.remedy


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", ""]
)
def test_local_file_system_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounted(monkeypatch, ("/", kind))
    places.refuse_network(tmp_path)


def test_deepest_mount_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted(
        monkeypatch,
        (str(tmp_path), "ext4"),
        ("/", "nfs"),
        (str(tmp_path / "other"), "cifs"),
    )
    assert places.file_system(tmp_path / "store") == "ext4"


def test_link_to_a_mount_counts_as_where_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (tmp_path / "near").symlink_to(far)
    mounted(monkeypatch, ("/", "ext4"), (str(far), "nfs"))
    assert places.file_system(tmp_path / "near" / "store") == "nfs"


def test_unknown_mount_table_refuses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted(monkeypatch)
    assert places.file_system(tmp_path) == ""
    places.refuse_network(tmp_path)


def test_store_is_made_for_the_user_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        places.create(tmp_path / "store")
    finally:
        os.umask(before)
    for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_store_keeps_itself_out_of_git_and_backups(tmp_path: Path) -> None:
    store = tmp_path / "store"
    places.create(store)
    assert (store / ".gitignore").read_text() == "*\n"
    tag = (store / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_making_a_store_twice_changes_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    places.create(store)
    (store / ".gitignore").write_text("mine\n")
    places.create(store)
    assert (store / ".gitignore").read_text() == "mine\n"


def test_store_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="no/such to make a store in"):
        places.create(tmp_path / "no" / "such" / "folder")
    (tmp_path / "file").touch()
    with pytest.raises(StoreRefused, match="can't be made"):
        places.create(tmp_path / "file")


def test_lock_lets_one_in_after_the_other(tmp_path: Path) -> None:
    with places.locked(tmp_path):
        pass
    with places.locked(tmp_path):
        assert (tmp_path / "lock").exists()


def test_lock_is_given_back_when_its_body_fails(tmp_path: Path) -> None:
    full = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space") as raised, places.locked(tmp_path):
        raise full
    assert raised.value is full
    taken = threading.Event()

    def take() -> None:
        with places.locked(tmp_path):
            taken.set()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    assert taken.is_set()


def test_file_system_without_locks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", fail)
    with pytest.raises(StoreRefused, match="locks don't work"), places.locked(tmp_path):
        raise AssertionError


def test_names_in_a_folder_can_be_made_durable(tmp_path: Path) -> None:
    places.sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        places.sync_folder(tmp_path / "none")


def test_store_is_named_only_where_a_command_would_not_find_it(tmp_path: Path) -> None:
    assert places.named(tmp_path / ".nbckpt", tmp_path) == ""
    assert places.named(tmp_path / "other", tmp_path) == str(tmp_path / "other")
