"""The archive file of a run: its records and packs, for another machine.

A plain ZIP without compression, so that what it claims to hold is never more than its own
size. Everything in it is compared with digests, and with what a run may hold, before any
of it is used; nothing is ever unpacked under a name that the file chose.
"""

from __future__ import annotations

import base64
import binascii
import errno
import re
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NoReturn

from blake3 import blake3

from nbckpt.errors import StoreRefused
from nbckpt.keys import RUN_ID, digest
from nbckpt.records import SCHEMA_VERSION, RunRecord, StepRecord, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FORMAT = 1
HEAD, RECORDS = "run.json", "records.jsonl"
PACK = re.compile(r"packs/([A-Za-z0-9_][A-Za-z0-9_.@+-]*)\.pack")
KEY = re.compile(r"([a-z]+)/([^/\x00]+)(?:/[^/\x00]+)*")
OF_STORE = {"store", "current"}
"""Records of a store as a whole."""
PIECE = 1 << 20
DOTS = {"", ".", ".."}
UNREADABLE = (zipfile.BadZipFile, EOFError, NotImplementedError, RecursionError)
"""What is raised at a file that somebody damaged, or made up."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run as it travels."""

    run_id: str
    records: dict[str, bytes]
    """Key → bytes, without seals; packs that travel in records among them."""
    packs: dict[str, str]
    """Name of a pack that is a file → BLAKE3 of its bytes."""
    stems: tuple[str, ...] = ()
    """Names of the notebooks whose current run it is."""

    @property
    def run(self) -> RunRecord:
        """The run's record."""
        return RunRecord.from_json(loads(self.records[f"run/{self.run_id}"]))


def write(parcel: Parcel, packs: Path, target: IO[bytes]) -> None:
    """Write a parcel.

    Parameters
    ----------
    parcel : Parcel
        The run.
    packs : Path
        The store's folder of packs.
    target : file
        Open for writing bytes.

    Raises
    ------
    OSError
        If a pack can't be read, or the file not written.
    """
    rows = [
        dumps([key, base64.b64encode(body).decode("ascii")])
        for key, body in sorted(parcel.records.items())
    ]
    body = b"".join(row + b"\n" for row in rows)
    head = {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "run_id": parcel.run_id,
        "records": digest(body),
        "packs": parcel.packs,
        "stems": parcel.stems,
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as file:
        file.writestr(HEAD, dumps(head))
        file.writestr(RECORDS, body)
        for name in sorted(parcel.packs):
            file.write(packs / f"{name}.pack", f"packs/{name}.pack")


@contextmanager
def opened(path: Path) -> Iterator[tuple[Parcel, zipfile.ZipFile]]:
    """Open the archive of a run and look at all of it but the bytes of its packs.

    Parameters
    ----------
    path : Path
        The file; anybody may have made it.

    Yields
    ------
    tuple of Parcel and ZipFile
        The run, and where `copy_pack` reads its packs.

    Raises
    ------
    StoreRefused
        If it is no archive of a run, of a newer nbckpt, or holds what no run has.
    """
    try:
        with zipfile.ZipFile(path) as file:
            yield _read(file, path), file
    except UNREADABLE:
        _refuse(path, "it is no archive of a run, or damaged")
    except OSError as error:
        if error.errno != errno.EINVAL:  # it names a place before its own beginning
            raise
        _refuse(path, "it is no archive of a run, or damaged")


def _read(file: zipfile.ZipFile, path: Path) -> Parcel:
    """Return the run in an archive."""
    _check_entries(file.infolist(), path)
    try:
        head = loads(file.read(HEAD))
        _check_head(head, path)
        body = file.read(RECORDS)
        if digest(body) != head["records"]:
            _refuse(path, "its records are not those that were written")
        stems = tuple(map(_stem, head["stems"]))
        parcel = Parcel(head["run_id"], _rows(body), dict(head["packs"]), stems)
        _check(parcel, {entry.filename for entry in file.infolist()}, path)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error):
        _refuse(path, "it is no archive of a run, or damaged")
    return parcel


def _check_entries(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse entries of other names, doubled, compressed or encrypted."""
    names = [entry.filename for entry in entries]
    if len(names) != len(set(names)) or not {HEAD, RECORDS} <= set(names):
        _refuse(path, "entries are missing or doubled")
    for entry in entries:
        name = entry.filename
        if name not in {HEAD, RECORDS} and not PACK.fullmatch(name):
            _refuse(path, f"it holds {name!r}, which no run has")
        if not _is_plain(entry):
            _refuse(path, f"{name} is compressed or encrypted")


def _is_plain(entry: zipfile.ZipInfo) -> bool:
    """Tell whether an entry is neither compressed nor encrypted."""
    stored = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
    return stored and entry.file_size == entry.compress_size


def _check_head(head: dict[str, Any], path: Path) -> None:
    """Refuse the archive of a newer nbckpt, or of no proper run."""
    if head["format"] > FORMAT or head["schema_version"] > SCHEMA_VERSION:
        _refuse(
            path, "it was made by a newer nbckpt", "Update nbckpt. Nothing was changed"
        )
    if not RUN_ID.fullmatch(head["run_id"]):
        _refuse(path, f"{head['run_id']!r} is no run id")


def _stem(name: str) -> str:
    """Return a notebook's name, or raise if it is none."""
    if name in DOTS or not {"/", "\x00"}.isdisjoint(name):
        raise ValueError(name)
    return name


def _rows(body: bytes) -> dict[str, bytes]:
    """Return the records by key."""
    pairs = (loads(line) for line in body.splitlines())
    return {key: base64.b64decode(text, validate=True) for key, text in pairs}


def _check(parcel: Parcel, entries: set[str], path: Path) -> None:
    """Refuse records that no run has, and packs that nothing names."""
    rows = {k.removeprefix("pack/") for k in parcel.records if k.startswith("pack/")}
    for key in parcel.records:
        if not _is_of_run(key, parcel.run_id, rows):
            _refuse(path, f"it holds a record {key!r}, which its run can't have")
    files = {found[1] for name in entries if (found := PACK.fullmatch(name))}
    if not _is_whole(parcel, rows, files):
        _refuse(path, "packs are missing, or belong to no record of the run")


def _is_whole(parcel: Parcel, rows: set[str], files: set[str]) -> bool:
    """Tell whether all packs are there that the records need, and no others."""
    steps = list(_steps(parcel))
    mine = {parcel.run.run_id, *(step.run_id for step in steps)} == {parcel.run_id}
    needed = {name for step in steps for name in step.contents.packs}
    inline = {key.removeprefix("inline/") for key in parcel.records}
    there = needed <= rows <= inline | files
    return mine and there and files <= rows and files == parcel.packs.keys()


def _is_of_run(key: str, run_id: str, packs: set[str]) -> bool:
    """Tell whether a key is one that a run may have."""
    found = KEY.fullmatch(key)
    if found is None or found[1] in OF_STORE or not DOTS.isdisjoint(key.split("/")):
        return False
    if found[1] in {"pack", "inline"}:
        name = key.split("/", 1)[1]
        return name in packs and PACK.fullmatch(f"packs/{name}.pack") is not None
    return found[2] == run_id


def _steps(parcel: Parcel) -> Iterable[StepRecord]:
    """Yield the records of completed steps."""
    for key, body in parcel.records.items():
        if key.startswith("step/"):
            yield StepRecord.from_json(loads(body))


def copy_pack(
    file: zipfile.ZipFile, parcel: Parcel, name: str, target: IO[bytes]
) -> None:
    """Copy a pack out of an archive.

    Parameters
    ----------
    file : ZipFile
        From `opened`.
    parcel : Parcel
        The run.
    name : str
        The pack.
    target : file
        Open for writing bytes.

    Raises
    ------
    StoreRefused
        If the bytes are not those that the archive names.
    """
    total = blake3()
    with file.open(f"packs/{name}.pack") as source:
        while piece := source.read(PIECE):
            total.update(piece)
            target.write(piece)
    if total.hexdigest() != parcel.packs[name]:
        raise StoreRefused(
            f"the pack {name} in the archive is damaged", "Nothing of it is used"
        )


def _refuse(path: Path, why: str, remedy: str = "Nothing of it was used") -> NoReturn:
    """Raise the refusal of an archive."""
    raise StoreRefused(f"the file {path} is refused: {why}", remedy)
