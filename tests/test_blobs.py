"""Packs: bytes come back as they were, once on disk however often, and never damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from nbckpt.blobs.chunks import CHUNK_BYTES, ChunkIndex
from nbckpt.blobs.packfile import (
    INLINE_BYTES,
    MAPPED_BYTES,
    PAGE_BYTES,
    PackReader,
    PackWriter,
    glances,
)
from nbckpt.errors import StoreDamaged

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.records import Stretch


class Shelf:
    """A folder of packs, and those that travel in records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = ChunkIndex()
        self.inline: dict[str, bytes] = {}
        self.reader = PackReader(folder, self.inline.get)

    def write(self, name: str, *blobs: bytes) -> Stretch:
        writer = PackWriter(self.folder, name, self.index)
        places = [writer.add(memoryview(bytearray(blob))) for blob in blobs]
        stretch, whole = writer.finish({"blobs": places})
        if whole is not None:
            self.inline[name] = whole
        return stretch

    def read(self, stretch: Stretch) -> list[memoryview]:
        manifest = self.reader.manifest(stretch)
        places: list[list[int]] = manifest.layout["blobs"]  # type: ignore[assignment]
        return [self.reader.blob(manifest, place) for place in places]

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


SIZES = [
    0,
    1,
    PAGE_BYTES,
    MAPPED_BYTES - 1,
    MAPPED_BYTES,
    MAPPED_BYTES + 1,
    CHUNK_BYTES - 1,
    CHUNK_BYTES + 1,
    3 * CHUNK_BYTES + 77,
]


@pytest.mark.parametrize("size", SIZES)
def test_bytes_of_any_size_come_back(shelf: Shelf, size: int) -> None:
    data = os.urandom(size)
    assert shelf.read(shelf.write("p", data))[0] == data


def test_many_blobs_of_one_pack_come_back(shelf: Shelf) -> None:
    blobs = [os.urandom(size) for size in SIZES]
    assert [bytes(b) for b in shelf.read(shelf.write("p", *blobs))] == blobs


def test_small_pack_makes_no_file(shelf: Shelf) -> None:
    shelf.write("p", b"x" * 1000)
    assert list(shelf.folder.iterdir()) == []
    assert "p" in shelf.inline


def test_large_pack_is_a_file_that_the_user_alone_can_read(shelf: Shelf) -> None:
    shelf.write("p", os.urandom(INLINE_BYTES + 1))
    assert shelf.inline == {}
    (path,) = shelf.folder.iterdir()
    assert path.name == "p.pack"
    assert path.stat().st_mode & 0o777 == 0o600


def test_pack_is_never_overwritten(shelf: Shelf) -> None:
    shelf.write("p", os.urandom(INLINE_BYTES + 1))
    with pytest.raises(FileExistsError):
        shelf.write("p", os.urandom(INLINE_BYTES + 1))


def test_equal_bytes_are_written_once(shelf: Shelf) -> None:
    data = os.urandom(4 * CHUNK_BYTES)
    shelf.write("p", data)
    before = shelf.size()
    again = shelf.write("q", data)
    assert shelf.size() == before
    assert shelf.read(again)[0] == data


def test_only_the_changed_chunk_is_written_again(shelf: Shelf) -> None:
    data = bytearray(os.urandom(8 * CHUNK_BYTES))
    shelf.write("p", bytes(data))
    before = shelf.size()
    data[5 * CHUNK_BYTES + 3] ^= 1
    again = shelf.write("q", bytes(data))
    assert CHUNK_BYTES <= shelf.size() - before < CHUNK_BYTES + 8192
    assert shelf.read(again)[0] == data


def packs_of(shelf: Shelf, stretch: Stretch) -> set[str]:
    return {chunk.pack for chunk in shelf.reader.manifest(stretch).chunks}


def test_small_blob_ties_no_pack_to_an_older_one(shelf: Shelf) -> None:
    shelf.write("one", b"small", os.urandom(CHUNK_BYTES))
    second = shelf.write("two", b"small", os.urandom(CHUNK_BYTES))
    assert packs_of(shelf, second) == {"two"}


def test_short_end_stays_with_the_chunks_before_it(shelf: Shelf) -> None:
    blob = os.urandom(CHUNK_BYTES + 5)
    shelf.write("one", blob)
    second = shelf.write("two", blob)
    changed = shelf.write("three", os.urandom(CHUNK_BYTES) + blob[-5:])
    assert packs_of(shelf, second) == {"one"}
    assert packs_of(shelf, changed) == {"three"}


def test_one_blob_twice_in_a_pack_is_written_once(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    one, two = shelf.read(shelf.write("p", data, data))
    assert one == two == data
    assert shelf.size() < 2 * CHUNK_BYTES + 8192


def test_repeated_chunks_inside_one_blob_come_back(shelf: Shelf) -> None:
    data = bytes(4 * CHUNK_BYTES)
    assert shelf.read(shelf.write("p", data))[0] == data
    assert shelf.size() < 2 * CHUNK_BYTES


def test_what_another_process_wrote_is_found_by_its_manifest(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    stretch = shelf.write("p", data)
    other = Shelf(shelf.folder)
    other.index.learn(other.reader.manifest(stretch).chunks)
    other.write("q", data)
    assert not (shelf.folder / "q.pack").exists()


def test_forgotten_chunks_are_written_again(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    shelf.write("p", data)
    shelf.index.forget()
    again = shelf.write("q", data)
    (shelf.folder / "p.pack").unlink()
    assert shelf.read(again)[0] == data


@pytest.mark.parametrize("size", [100, MAPPED_BYTES, 2 * CHUNK_BYTES])
def test_restored_bytes_can_be_changed_and_the_pack_stays(
    shelf: Shelf, size: int
) -> None:
    data = os.urandom(size)
    stretch = shelf.write("p", data)
    view = shelf.read(stretch)[0]
    view[0] ^= 255
    assert view != data
    assert shelf.read(stretch)[0] == data


def test_mapped_bytes_stay_valid_when_their_pack_goes(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    view = shelf.read(shelf.write("p", data))[0]
    (shelf.folder / "p.pack").unlink()
    assert view == data


@pytest.mark.parametrize("size", [10, MAPPED_BYTES])
def test_read_only_bytes_come_back_read_only(shelf: Shelf, size: int) -> None:
    writer = PackWriter(shelf.folder, "p", shelf.index)
    place = writer.add(memoryview(os.urandom(size)))
    stretch, whole = writer.finish({"blobs": [place]})
    shelf.inline |= {"p": whole} if whole else {}
    assert shelf.read(stretch)[0].readonly
    other = shelf.write("q", os.urandom(size))
    assert not shelf.read(other)[0].readonly


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("place", [0, 1000, CHUNK_BYTES, CHUNK_BYTES + 1, -1])
def test_one_changed_bit_in_a_pack_is_noticed(shelf: Shelf, place: int) -> None:
    stretch = shelf.write("p", os.urandom(2 * CHUNK_BYTES))
    flip(shelf.folder / "p.pack", place)
    with pytest.raises(StoreDamaged, match="missing or damaged"):
        shelf.read(stretch)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES - 1])
def test_shortened_pack_is_noticed(shelf: Shelf, size: int) -> None:
    stretch = shelf.write("p", os.urandom(2 * CHUNK_BYTES))
    os.truncate(shelf.folder / "p.pack", size)
    with pytest.raises(StoreDamaged):
        shelf.read(stretch)


@pytest.mark.parametrize("size", [100, 2 * CHUNK_BYTES])
def test_missing_pack_is_noticed(shelf: Shelf, size: int) -> None:
    stretch = shelf.write("p", os.urandom(size))
    shelf.inline.clear()
    for path in shelf.folder.iterdir():
        path.unlink()
    with pytest.raises(StoreDamaged, match="pack p is missing") as caught:
        shelf.read(stretch)
    assert "runs again" in caught.value.remedy


def test_damage_of_a_pack_in_the_records_is_noticed(shelf: Shelf) -> None:
    stretch = shelf.write("p", b"x" * 500)
    shelf.inline["p"] = b"y" + shelf.inline["p"][1:]
    with pytest.raises(StoreDamaged):
        shelf.read(stretch)


def test_damage_of_one_pack_leaves_the_others_readable(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    shelf.write("p", os.urandom(2 * CHUNK_BYTES))
    whole = shelf.write("q", data)
    flip(shelf.folder / "p.pack", 7)
    assert shelf.read(whole)[0] == data


def test_abandoned_pack_leaves_nothing_behind(shelf: Shelf) -> None:
    data = os.urandom(20 * CHUNK_BYTES)
    writer = PackWriter(shelf.folder, "p", shelf.index)
    writer.add(memoryview(data), glances(memoryview(data)))
    assert (shelf.folder / "p.pack").exists()
    writer.abandon()
    assert list(shelf.folder.iterdir()) == []
    assert shelf.index == ChunkIndex()


def test_bytes_of_an_abandoned_pack_are_written_by_the_next(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    writer = PackWriter(shelf.folder, "p", shelf.index)
    writer.add(memoryview(data))
    writer.abandon()
    assert shelf.read(shelf.write("q", data))[0] == data


def test_abandoning_keeps_what_other_packs_hold(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    shelf.write("p", data)
    writer = PackWriter(shelf.folder, "q", shelf.index)
    writer.add(memoryview(data))
    writer.abandon()
    known = len(shelf.index.by_digest)
    shelf.write("r", data)
    assert len(shelf.index.by_digest) == known == 2


def test_glance_of_bytes_hashed_here_saves_the_second_hash(shelf: Shelf) -> None:
    data = os.urandom(2 * CHUNK_BYTES)
    marks = glances(memoryview(data))
    assert len(marks) == 2
    for name in ("p", "q"):
        writer = PackWriter(shelf.folder, name, shelf.index)
        writer.add(memoryview(data), marks)
        writer.finish({"blobs": []})
    assert set(shelf.index.by_glance) == set(marks)


@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 1), (CHUNK_BYTES + 1, 2)])
def test_there_is_one_glance_for_each_chunk(size: int, count: int) -> None:
    assert len(glances(memoryview(bytes(size)))) == count


def test_large_blob_begins_on_a_page(shelf: Shelf) -> None:
    blobs = [os.urandom(3), os.urandom(MAPPED_BYTES), os.urandom(5)]
    manifest = shelf.reader.manifest(shelf.write("p", *blobs))
    large = next(c for c in manifest.chunks if c.length == MAPPED_BYTES)
    assert large.offset % PAGE_BYTES == 0


def test_array_that_a_thread_changes_while_it_is_saved_is_no_damage(
    shelf: Shelf,
) -> None:
    live = bytearray(os.urandom(2 * CHUNK_BYTES))
    writer = PackWriter(shelf.folder, "p", shelf.index)
    place = writer.add(memoryview(live))
    live[:] = bytes(len(live))
    stretch, _ = writer.finish({"blobs": [place]})
    assert shelf.read(stretch)[0] != live


def test_full_disk_is_an_error_of_the_system(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        shelf.write("p", os.urandom(INLINE_BYTES + 1))
