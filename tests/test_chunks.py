"""The table of chunks, and what a process knows of them."""

from __future__ import annotations

from nbckpt.chunks import Chunk, ChunkIndex, Manifest


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
