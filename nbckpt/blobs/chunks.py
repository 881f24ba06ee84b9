"""The chunks that checkpoints are made of: where each lies, and the table of them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nbckpt.records import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK_BYTES = 256 << 10
ROW_BYTES = 1 << 20
"""Rows of an array from this size on are cut each for itself."""
ENTRY = struct.Struct("<IQI32s")


def cuts(size: int, row: int = 0) -> Iterator[slice]:
    """Yield where bytes are cut into chunks.

    Parameters
    ----------
    size : int
        Number of bytes.
    row : int, optional
        Bytes of one row, such as a column of a frame. Large rows begin a chunk, so that
        they are found again where another row was changed or taken out.

    Yields
    ------
    slice
        Of 256 KiB, less at the end and at the end of a large row.
    """
    stretch = row if row >= ROW_BYTES else max(size, 1)
    for begin in range(0, size, stretch):
        end = min(begin + stretch, size)
        for start in range(begin, end, CHUNK_BYTES):
            yield slice(start, min(start + CHUNK_BYTES, end))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some bytes in a pack."""

    pack: str
    offset: int
    length: int
    digest: bytes


@dataclass(slots=True)
class Manifest:
    """Table of all chunks of a checkpoint, and what they make up."""

    layout: dict[str, object]
    """JSON values; a blob stands as ``[first chunk, chunks, bytes, is read-only]``."""
    chunks: list[Chunk]

    def encode(self) -> bytes:
        """Return the table as bytes."""
        packs = sorted({chunk.pack for chunk in self.chunks})
        number = {pack: index for index, pack in enumerate(packs)}
        head = dumps({"layout": self.layout, "packs": packs})
        rows = [
            ENTRY.pack(number[c.pack], c.offset, c.length, c.digest)
            for c in self.chunks
        ]
        return len(head).to_bytes(4, "little") + head + b"".join(rows)

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """Return the table in bytes that `encode` made."""
        size = int.from_bytes(data[:4], "little")
        head = loads(data[4 : 4 + size])
        packs = head["packs"]
        rows = ENTRY.iter_unpack(data[4 + size :])
        return cls(head["layout"], [Chunk(packs[p], o, n, d) for p, o, n, d in rows])


@dataclass(slots=True)
class ChunkIndex:
    """Where the chunks of a store lie, as this process knows them."""

    by_digest: dict[bytes, Chunk] = field(default_factory=dict)
    by_glance: dict[bytes, Chunk] = field(default_factory=dict)
    """XXH3 → chunk; only of bytes that this process hashed itself."""

    def learn(self, chunks: Iterable[Chunk]) -> None:
        """Remember chunks that a record of the store names."""
        for chunk in chunks:
            self.by_digest.setdefault(chunk.digest, chunk)

    def drop(self, packs: Iterable[str]) -> None:
        """Forget the chunks of packs that are gone."""
        gone = set(packs)
        for known in (self.by_digest, self.by_glance):
            for mark in [m for m, chunk in known.items() if chunk.pack in gone]:
                del known[mark]

    def forget(self) -> None:
        """Forget all, because packs may have been dropped by another process."""
        self.by_digest.clear()
        self.by_glance.clear()
