"""An archive that anybody may have made is compared with what a run may hold."""

from __future__ import annotations

import base64
import io
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from nbckpt.errors import StoreRefused
from nbckpt.keys import digest
from nbckpt.records import (
    Contents,
    Evidence,
    Fingerprint,
    RunRecord,
    StepRecord,
    dumps,
)
from nbckpt.runs import parcels
from nbckpt.runs.parcels import HEAD, RECORDS, Parcel, copy_pack, opened
from nbckpt.runs.transfers import import_run
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUN, PACK = "etl-1", "etl-1.1.1.abcd"
BYTES = b"bytes of a pack"


def a_step(*packs: str, run_id: str = RUN) -> bytes:
    contents = Contents(packs=packs)
    record = StepRecord(
        run_id, "a", 1, 1, 1, Fingerprint(), Evidence(), contents, 1.0, 2.0, 1.0
    )
    return dumps(record.to_json())


def some_records() -> dict[str, bytes]:
    return {
        f"run/{RUN}": dumps(RunRecord(RUN, "etl.ipynb").to_json()),
        f"step/{RUN}/a": a_step(PACK),
        f"pack/{PACK}": dumps({"users": [f"step/{RUN}/a"]}),
        f"outcome/{RUN}/a/k": b"\x00\xff",
    }


def archive(
    path: Path,
    records: dict[str, bytes] | None = None,
    *,
    packs: dict[str, bytes] | None = None,
    head: dict[str, Any] | None = None,
) -> Path:
    """Write an archive that can hold anything."""
    rows = some_records() if records is None else records
    packed = {PACK: BYTES} if packs is None else packs
    lines = [dumps([k, base64.b64encode(v).decode()]) + b"\n" for k, v in rows.items()]
    body = b"".join(lines)
    told = {
        "format": 1,
        "schema_version": 1,
        "run_id": RUN,
        "records": digest(body),
        "stems": ["etl"],
        "packs": {name: blake3(data).hexdigest() for name, data in packed.items()},
    }
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(HEAD, dumps(told | (head or {})))
        file.writestr(RECORDS, body)
        for name, data in packed.items():
            file.writestr(f"packs/{name}.pack", data)
    return path


def refused(path: Path, tmp_path: Path) -> str:
    """Try to import an archive with the user's word; return why it was refused."""
    folder = tmp_path / "work" / ".nbckpt"
    folder.parent.mkdir(exist_ok=True)
    with pytest.raises(StoreRefused) as caught:
        import_run(path, folder, load_secret())
    records = folder / "records" / "cache.db"
    assert not records.exists() or RUN.encode() not in records.read_bytes()
    assert not list(tmp_path.rglob("evil*"))
    return str(caught.value)


def test_parcel_comes_back_as_it_was_written(tmp_path: Path) -> None:
    packs = tmp_path / "packs"
    packs.mkdir()
    (packs / f"{PACK}.pack").write_bytes(BYTES)
    parcel = Parcel(RUN, some_records(), {PACK: blake3(BYTES).hexdigest()})
    path = tmp_path / "file"
    with path.open("wb") as file:
        parcels.write(parcel, packs, file)
    with opened(path) as (found, zipped):
        assert found == parcel
        assert found.run.notebook == "etl.ipynb"
        copy = io.BytesIO()
        copy_pack(zipped, found, PACK, copy)
    assert copy.getvalue() == BYTES


def test_archive_as_a_run_has_it_is_taken(tmp_path: Path) -> None:
    path = archive(tmp_path / "file")
    folder = tmp_path / ".nbckpt"
    assert import_run(path, folder, load_secret()) == (RUN, True)
    assert (folder / "packs" / f"{PACK}.pack").read_bytes() == BYTES


@pytest.mark.parametrize(
    "key",
    [
        "store",
        "store/etl-1",
        "current/etl",
        "current/etl-1",
        "run/other-1",
        f"step/{RUN}/../x",
        f"step/{RUN}/./x",
        f"step/{RUN}//x",
        f"/step/{RUN}",
        f"step\x00/{RUN}/a",
        f"step/{RUN}/a\x00",
        f"STEP/{RUN}/b",
        "pack/../../evil",
        "pack/.evil",
        "inline/other-1.1.1.abcd",
        "",
    ],
)
def test_record_that_a_run_can_not_have_is_refused(tmp_path: Path, key: str) -> None:
    rows = {**some_records(), key: dumps({"users": []})}
    assert "refused" in refused(archive(tmp_path / "file", rows), tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        "../evil",
        "/tmp/evil",  # noqa: S108 - a name in an archive
        "packs/../evil.pack",
        "packs/../../evil.pack",
        "packs/.evil.pack",
        "packs/sub/evil.pack",
        "packs\\evil.pack",
        "packs/evil",
        "evil.txt",
        "records/cache.db",
    ],
)
def test_entry_that_leads_elsewhere_is_refused(tmp_path: Path, entry: str) -> None:
    path = archive(tmp_path / "file")
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(entry, b"evil")
    assert "which no run has" in refused(path, tmp_path)


def test_head_deeper_than_any_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(HEAD, b"[" * 99_999)
        file.writestr(RECORDS, b"")
    assert "no archive" in refused(path, tmp_path)


def test_compressed_entry_is_refused_unread(tmp_path: Path) -> None:
    path = archive(tmp_path / "file")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("packs/bomb.pack", bytes(10_000_000))
    assert "compressed" in refused(path, tmp_path)


def test_doubled_entry_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "file")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(RECORDS, b"")
    assert "doubled" in refused(path, tmp_path)


@pytest.mark.parametrize("name", [HEAD, RECORDS])
def test_missing_part_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, b"{}")
    assert "missing" in refused(path, tmp_path)


def change_a_byte(data: bytes) -> bytes:
    at = data.index(BYTES)
    return data[:at] + b"B" + data[at + 1 :]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"PK\x03\x04 and nothing",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-30],
        change_a_byte,
        lambda data: data.replace(b'"format":1', b'"format":}', 1),
        lambda data: data[:29] + b"\xff" + data[30:],
        lambda data: data.replace(b"PK\x01\x02\x14\x03\x14", b"PK\x01\x02\x14\x03\xff"),
        lambda data: data[:-6] + b"\xff" + data[-5:],
    ],
    ids=[
        "empty",
        "only a mark",
        "half",
        "no end",
        "one byte",
        "no json",
        "far name",
        "far version",
        "far directory",
    ],
)
def test_damaged_file_is_refused(
    tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    path = archive(tmp_path / "file")
    path.write_bytes(spoil(path.read_bytes()))
    refused(path, tmp_path)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({"format": 2}, "newer"),
        ({"schema_version": 99}, "newer"),
        ({"format": "x"}, "no archive"),
        ({"run_id": "../evil"}, "no run id"),
        ({"run_id": "other-1"}, "can't have"),
        ({"run_id": None}, "no archive"),
        ({"records": "0" * 32}, "not those that were written"),
        ({"packs": {}}, "packs are missing"),
        ({"packs": [1]}, "no archive"),
        ({"stems": ["../evil"]}, "no archive"),
        ({"stems": [7]}, "no archive"),
        ({"packs": {PACK: "0" * 64}}, "damaged"),
    ],
)
def test_head_that_does_not_fit_is_refused(
    tmp_path: Path, head: dict[str, Any], said: str
) -> None:
    assert said in refused(archive(tmp_path / "file", head=head), tmp_path)


def without(key: str) -> dict[str, bytes]:
    return {k: v for k, v in some_records().items() if k != key}


@pytest.mark.parametrize(
    "rows",
    [
        without(f"run/{RUN}"),
        without(f"pack/{PACK}"),
        {**some_records(), f"run/{RUN}": b"no json"},
        {**some_records(), f"run/{RUN}": dumps({"odd": 1})},
        {**some_records(), f"run/{RUN}": dumps(RunRecord("other").to_json())},
        {**some_records(), f"step/{RUN}/b": b"[]"},
        {**some_records(), f"step/{RUN}/b": a_step(PACK, run_id="other-1")},
        {**some_records(), f"step/{RUN}/b": a_step("other-1.1.1.ffff")},
        {**some_records(), "pack/lost": dumps({"users": []})},
    ],
    ids=[
        "no run",
        "no row of the pack",
        "run that is no json",
        "run that is no record",
        "run of another id",
        "step that is no record",
        "step of another run",
        "step whose pack is missing",
        "row without a pack",
    ],
)
def test_records_that_do_not_fit_together_are_refused(
    tmp_path: Path, rows: dict[str, bytes]
) -> None:
    refused(archive(tmp_path / "file", rows), tmp_path)


def test_pack_without_a_row_is_refused(tmp_path: Path) -> None:
    packs = {PACK: BYTES, "stranger": b"x"}
    path = archive(tmp_path / "file", packs=packs)
    assert "packs are missing" in refused(path, tmp_path)


def test_pack_of_another_run_with_other_bytes_is_not_replaced(tmp_path: Path) -> None:
    path = archive(tmp_path / "file")
    folder = tmp_path / "work" / ".nbckpt"
    (folder / "packs").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    (folder / "packs" / f"{PACK}.pack").write_bytes(b"others")
    assert "another pack" in refused(path, tmp_path)
    assert (folder / "packs" / f"{PACK}.pack").read_bytes() == b"others"
