"""Where a store may lie: owner, permissions, file system, and its folder's files."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from nbckpt.errors import BadStep, StoreRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre",
    "beegfs", "gpfs", "ncpfs", "davfs", "vboxsf", "drvfs",
}  # fmt: skip
DEFAULT = ".nbckpt"
"""The folder beside a notebook where its store lies unless another one is named."""
ELSEWHERE = "Put it on a local disk: nbckpt run --store DIR, or NBCKPT_STORE=DIR"


STORE_OF, STORE = "NBCKPT_STORE_OF", "NBCKPT_RUN_STORE"
"""The notebook of which ``nbckpt run`` told its kernel the store, and that store."""


def wanted(base: Path, notebook: str) -> Path:
    """Return the folder of a notebook's store, as the environment names it.

    Parameters
    ----------
    base : Path
        The notebook's folder.
    notebook : str
        Its absolute path; empty if it is not known.

    Returns
    -------
    Path
        What ``nbckpt run`` told a kernel counts for that kernel's notebook alone, not
        for others that are run from within it.
    """
    is_meant = bool(notebook) and os.environ.get(STORE_OF) == notebook
    told = os.environ.get(STORE) if is_meant else ""
    return base / (told or os.environ.get("NBCKPT_STORE") or DEFAULT)


def named(folder: Path, base: Path) -> str:
    """Return the folder of a store that a command would not find without its name.

    Parameters
    ----------
    folder : Path
        The store's folder.
    base : Path
        The notebook's folder, where a command would look.

    Returns
    -------
    str
        Empty if the store lies where it is looked for.
    """
    return "" if folder == base / DEFAULT else str(folder)


def inspect(folder: Path) -> None:
    """Refuse a folder that others could have prepared or could change.

    Parameters
    ----------
    folder : Path
        The store's folder; it may not exist yet.

    Raises
    ------
    StoreRefused
        If it is a symbolic link, no folder, another user's, open to group or others,
        or on a network file system.
    """
    if os.path.lexists(folder):
        _inspect_entry(folder)
    refuse_network(folder)


def _inspect_entry(folder: Path) -> None:
    """Refuse what stands at the store's path if it is unsafe."""
    found = folder.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise StoreRefused(f"the store {folder} is a symbolic link", ELSEWHERE)
    if not stat.S_ISDIR(found.st_mode):
        raise StoreRefused(f"the store {folder} is no folder", ELSEWHERE)
    if found.st_uid != os.geteuid():
        raise StoreRefused(
            f"the store {folder} belongs to another user (uid {found.st_uid})",
            "Copy it to a folder of your own, then: nbckpt trust COPY",
        )
    if found.st_mode & 0o077:
        raise StoreRefused(
            f"the store {folder} is open to group or others "
            f"(mode {stat.S_IMODE(found.st_mode):04o})",
            f"Check who wrote to it, then: chmod -R go= {folder}",
        )


def refuse_network(folder: Path) -> None:
    """Refuse a network file system, whose locks and caches can lose records.

    Parameters
    ----------
    folder : Path
        The store's folder; it may not exist yet.

    Raises
    ------
    StoreRefused
        If the folder lies on one.
    """
    kind = file_system(folder)
    if kind in NETWORK or kind.startswith("fuse."):
        raise StoreRefused(
            f"the store {folder} is on a network file system ({kind}), where SQLite "
            "can lose records",
            ELSEWHERE,
        )


def folder_bytes(folder: Path) -> int:
    """Return the bytes of all files in a folder.

    Parameters
    ----------
    folder : Path
        A folder in which others may be writing.

    Returns
    -------
    int
        Files that go away meanwhile count as nothing.
    """
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total


def file_system(folder: Path) -> str:
    """Return the type of the file system that a path lies on.

    Parameters
    ----------
    folder : Path
        Any path.

    Returns
    -------
    str
        As the system's mount table names it; empty if unknown.
    """
    path = folder.absolute()
    real = Path(os.path.realpath(path))
    mounts = [
        p for p in psutil.disk_partitions(all=True) if real.is_relative_to(p.mountpoint)
    ]
    deepest = max(mounts, key=lambda p: len(p.mountpoint), default=None)
    return deepest.fstype if deepest else ""


def create(folder: Path) -> None:
    """Make the store's folder and its standing files.

    Parameters
    ----------
    folder : Path
        The store's folder; the one above it must exist.

    Raises
    ------
    StoreRefused
        If it can't be made, or locks don't work there.
    """
    try:
        for part in (folder, folder / "records", folder / "packs", folder / "spill"):
            part.mkdir(mode=0o700, exist_ok=True)
        _write(folder / ".gitignore", "*\n")
        _write(folder / "CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n")
        sync_folder(folder)
    except FileNotFoundError:
        raise StoreRefused(
            f"there is no folder {folder.parent} to make a store in", "Make it first"
        ) from None
    except OSError as error:
        raise StoreRefused(
            f"the store {folder} can't be made ({error})", ELSEWHERE
        ) from None


def _write(path: Path, text: str) -> None:
    """Write a small file of mode 0600 unless it is there."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return
    os.write(handle, text.encode())
    os.close(handle)


def require_target(path: Path) -> None:
    """Refuse a path at which no file can be written.

    Parameters
    ----------
    path : Path
        Where a file is to be; it may be there already.

    Raises
    ------
    BadStep
        If its folder is not there, or it is a folder itself.
    """
    if path.is_dir():
        raise BadStep(f"{path} is a folder", "Name a file")
    if not path.parent.is_dir():
        raise BadStep(
            f"there is no folder {path.parent} to write {path.name} to", "Make it first"
        )


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it.

    Parameters
    ----------
    path : Path
        The file; replaced if it is there.
    content : bytes
        All of it.

    Raises
    ------
    BadStep
        If there is no folder to write it to.
    """
    require_target(path)
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Parameters
    ----------
    folder : Path
        An existing folder.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(folder: Path, name: str = "lock") -> Iterator[None]:
    """Hold a lock of a store against other processes.

    The first is held while it is opened, so that many may create it at once; that of its
    packs while such as no record names are brought in or removed.

    Parameters
    ----------
    folder : Path
        The store's folder.
    name : str, optional
        The file in it; made if need be.

    Yields
    ------
    None

    Raises
    ------
    StoreRefused
        If the file system has no working locks.
    """
    handle = os.open(folder / name, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    """Wait for a lock on an open file; closing the file gives it back."""
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX)
    except OSError as error:
        raise StoreRefused(
            f"file locks don't work at {folder} ({error})", ELSEWHERE
        ) from None
