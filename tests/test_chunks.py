"""The table of chunks, and what a process knows of them."""

from __future__ import annotations

import pytest

from nbckpt.blobs.chunks import Chunk, ChunkIndex, Manifest, cuts


def test_manifest_comes_back_equal() -> None:
    chunks = [Chunk("p", 0, 5, bytes(32)), Chunk("q", 1 << 40, 7, b"\1" * 32)]
    manifest = Manifest({"a": [1, {"b": None}]}, chunks)
    assert Manifest.decode(manifest.encode()) == manifest


def test_chunks_of_dropped_packs_are_forgotten_and_others_are_not() -> None:
    index = ChunkIndex()
    gone, kept = Chunk("a", 0, 3, b"1" * 32), Chunk("b", 0, 3, b"2" * 32)
    index.learn([gone, kept])
    index.by_glance[b"x"] = gone
    index.drop(["a"])
    assert index.by_digest == {kept.digest: kept}
    assert index.by_glance == {}


K, M = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    ("size", "row", "lengths"),
    [
        (0, 0, []),
        (0, 2 * M, []),
        (5, 0, [5]),
        (256 * K + 1, 0, [256 * K, 1]),
        (512 * K, 128 * K, [256 * K] * 2),
        (2 * M + 20, M + 10, [*[256 * K] * 4, 10] * 2),
        (2 * M, 2 * M, [256 * K] * 8),
        (M + 30, M + 20, [*[256 * K] * 4, 20, 10]),
    ],
)
def test_large_rows_begin_a_chunk(size: int, row: int, lengths: list[int]) -> None:
    found = list(cuts(size, row))
    assert [piece.stop - piece.start for piece in found] == lengths
    assert b"".join(bytes(size)[piece] for piece in found) == bytes(size)
