"""Bulk bytes: content-addressed chunks in pack files, mapped back copy-on-write.

A pack is written once, synced before any record names it, and never changed: it goes by
unlink only, so that what a kernel has mapped stays valid. A chunk that some pack of the
store already holds is never written again.

Sources: content-defined stores such as git's packs for the layout; BLAKE3 (2020) for
the digests that records rest on; XXH3 only to find equal chunks fast within one process.
"""

from __future__ import annotations

import itertools
import mmap
import os
from typing import TYPE_CHECKING

import xxhash
from blake3 import blake3

from nbckpt.blobs.chunks import Chunk, ChunkIndex, Manifest, cuts
from nbckpt.errors import StoreDamaged
from nbckpt.places import sync_folder
from nbckpt.records import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGE_BYTES = 4096
MAPPED_BYTES = 64 << 10
"""Buffers from this size on begin on a page, so that they can be mapped."""
SHARED_BYTES = 64 << 10
"""A chunk below this size is written again: shared, it would keep a whole pack."""
INLINE_BYTES = 64 << 10
"""A pack up to this size travels in its record's transaction: one sync, not three."""
STAGE_BYTES = 4 << 20


class PackWriter:
    """Collects the chunks of one checkpoint that the store does not hold yet.

    Parameters
    ----------
    folder : Path
        The store's folder of packs.
    name : str
        Name of the new pack.
    index : ChunkIndex
        What the store holds already.
    """

    def __init__(self, folder: Path, name: str, index: ChunkIndex) -> None:
        self.name = name
        self.path = folder / f"{name}.pack"
        self.chunks: list[Chunk] = []
        self._index = index
        self._before: list[Chunk] = []
        self._new: list[tuple[bytes | None, Chunk]] = []
        self._stage = bytearray()
        self._written = 0
        self._handle: int | None = None

    def add(
        self, data: memoryview, glances: list[bytes] | None = None, row: int = 0
    ) -> list[object]:
        """Add bytes and return their place in the manifest.

        Parameters
        ----------
        data : memoryview
            One-dimensional, of bytes.
        glances : list of bytes, optional
            XXH3 of each chunk, if the caller has them.
        row : int, optional
            Bytes of one row, if the bytes are an array's; see `nbckpt.blobs.chunks.cuts`.

        Returns
        -------
        list
            First chunk, number of chunks, number of bytes, is read-only.
        """
        first = len(self.chunks)
        if data.nbytes >= MAPPED_BYTES:
            self._pad()
        for number, piece in enumerate(cuts(data.nbytes, row)):
            glance = glances[number] if glances else None
            self._before = self.chunks[-1:] if number else []
            self.chunks.append(self._chunk(data[piece], glance))
        return [first, len(self.chunks) - first, data.nbytes, data.readonly]

    def _chunk(self, data: memoryview, glance: bytes | None) -> Chunk:
        """Return where a chunk lies, staging it if it is new."""
        known = self._index.by_glance.get(glance or b"")
        if known is not None and self._is_shared(known):
            return known
        # A private copy: a thread that still writes to the array can't make the bytes
        # on disk differ from their digest.
        copy = bytes(data)
        digest = blake3(copy).digest()
        chunk = self._index.by_digest.get(digest)
        if chunk is None or not self._is_shared(chunk):
            chunk = Chunk(
                self.name, self._written + len(self._stage), len(copy), digest
            )
            self._append(copy)
            self._index.by_digest[digest] = chunk
            self._new.append((glance, chunk))
        if glance is not None:
            self._index.by_glance[glance] = chunk
        return chunk

    def _is_shared(self, chunk: Chunk) -> bool:
        """Tell whether a known chunk is used rather than written again.

        The end of an array stays with the chunks before it, so that it can be mapped.
        """
        packs = {self.name, *(before.pack for before in self._before)}
        return chunk.length >= SHARED_BYTES or chunk.pack in packs

    def _pad(self) -> None:
        """Continue on the next page."""
        self._append(bytes(-(self._written + len(self._stage)) % PAGE_BYTES))

    def _append(self, data: bytes) -> None:
        """Stage bytes, and write them when enough have come together."""
        self._stage += data
        if len(self._stage) >= STAGE_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write what is staged."""
        if self._handle is None:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
            self._handle = os.open(self.path, flags, 0o600)
        view = memoryview(self._stage)
        done = 0
        while done < len(view):
            done += os.write(self._handle, view[done:])
        self._written += len(view)
        view.release()
        self._stage = bytearray()

    def finish(self, layout: dict[str, object]) -> tuple[Stretch, bytes | None]:
        """Write the manifest and make the pack durable.

        Parameters
        ----------
        layout : dict
            What the chunks make up.

        Returns
        -------
        tuple of Stretch and bytes or None
            Where the manifest lies; the whole pack if it is small enough to travel in
            its record's transaction, else None.
        """
        data = Manifest(layout, self.chunks).encode()
        stretch = Stretch(
            self.name,
            self._written + len(self._stage),
            len(data),
            blake3(data).hexdigest(),
        )
        self._append(data)
        if self._handle is None and len(self._stage) <= INLINE_BYTES:
            return stretch, bytes(self._stage)
        self._flush()
        self._sync()
        return stretch, None

    def _sync(self) -> None:
        """Make the bytes and then the pack's name durable."""
        if self._handle is not None:
            os.fdatasync(self._handle)
            os.close(self._handle)
            self._handle = None
        sync_folder(self.path.parent)

    def abandon(self) -> None:
        """Remove what was written and forget its chunks; the save failed."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        self.path.unlink(missing_ok=True)
        for glance, chunk in self._new:
            self._index.by_digest.pop(chunk.digest, None)
            if glance is not None:
                self._index.by_glance.pop(glance, None)


class PackReader:
    """Reads chunks back; each is verified against its digest first.

    Parameters
    ----------
    folder : Path
        The store's folder of packs.
    inline : callable
        Returns the bytes of a pack that lies in the records, or None.
    """

    def __init__(self, folder: Path, inline: Callable[[str], bytes | None]) -> None:
        self._folder = folder
        self._inline = inline

    def manifest(self, stretch: Stretch) -> Manifest:
        """Return the manifest at a place.

        Parameters
        ----------
        stretch : Stretch
            As its record names it.

        Returns
        -------
        Manifest
            The table.

        Raises
        ------
        StoreDamaged
            If the pack is missing or its bytes are not those that were written.
        """
        digest = bytes.fromhex(stretch.digest)
        place = Chunk(stretch.pack, stretch.offset, stretch.length, digest)
        return Manifest.decode(bytes(self._copy([place], stretch.length)))

    def blob(self, manifest: Manifest, place: list[int]) -> memoryview:
        """Return the bytes of a blob, mapped copy-on-write where they lie in one piece.

        Parameters
        ----------
        manifest : Manifest
            The table that names it.
        place : list
            What `PackWriter.add` returned.

        Returns
        -------
        memoryview
            Writable unless the blob was read-only; a change never reaches the pack.

        Raises
        ------
        StoreDamaged
            If the pack is missing or its bytes are not those that were written.
        """
        first, count, size, readonly = place
        chunks = manifest.chunks[first : first + count]
        mapped = size >= MAPPED_BYTES and _is_one_piece(chunks)
        view = (self._map(chunks, size) if mapped else None) or self._copy(chunks, size)
        return view.toreadonly() if readonly else view

    def _map(self, chunks: list[Chunk], size: int) -> memoryview | None:
        """Map chunks that lie in one piece; None if their pack is in the records."""
        path = self._folder / f"{chunks[0].pack}.pack"
        if not path.exists():
            return None
        with path.open("rb") as file:
            try:
                area = mmap.mmap(
                    file.fileno(),
                    size,
                    access=mmap.ACCESS_COPY,
                    offset=chunks[0].offset,
                )
            except (ValueError, OSError):
                raise _damaged(chunks[0].pack) from None
        view = memoryview(area)
        _verify(view, chunks)
        return view

    def _copy(self, chunks: list[Chunk], size: int) -> memoryview:
        """Read chunks into memory of their own."""
        # An anonymous map costs no pass of zeros, unlike a bytearray.
        view = memoryview(
            mmap.mmap(-1, size) if size >= MAPPED_BYTES else bytearray(size)
        )
        at = 0
        for chunk in chunks:
            self._fill(chunk, view[at : at + chunk.length])
            at += chunk.length
        _verify(view, chunks)
        return view

    def _fill(self, chunk: Chunk, target: memoryview) -> None:
        """Read one chunk."""
        path = self._folder / f"{chunk.pack}.pack"
        if path.exists():
            with path.open("rb", buffering=0) as file:
                got = os.preadv(file.fileno(), [target], chunk.offset)
        else:
            data = self._inline(chunk.pack) or b""
            part = data[chunk.offset : chunk.offset + chunk.length]
            got = len(part)
            target[:got] = part
        if got != chunk.length:
            raise _damaged(chunk.pack)


def glances(data: memoryview, row: int = 0) -> list[bytes]:
    """Return the XXH3 digest of each chunk.

    Parameters
    ----------
    data : memoryview
        One-dimensional, of bytes.
    row : int, optional
        As for `PackWriter.add`.

    Returns
    -------
    list of bytes
        One for each piece of `nbckpt.blobs.chunks.cuts`.
    """
    return [xxhash.xxh3_128_digest(data[piece]) for piece in cuts(data.nbytes, row)]


def _is_one_piece(chunks: list[Chunk]) -> bool:
    """Tell whether chunks follow each other in one pack, from a page's start."""
    return chunks[0].offset % mmap.ALLOCATIONGRANULARITY == 0 and all(
        b.pack == a.pack and b.offset == a.offset + a.length
        for a, b in itertools.pairwise(chunks)
    )


def _verify(view: memoryview, chunks: list[Chunk]) -> None:
    """Compare bytes with their digests."""
    at = 0
    for chunk in chunks:
        if blake3(view[at : at + chunk.length]).digest() != chunk.digest:
            raise _damaged(chunk.pack)
        at += chunk.length


def _damaged(pack: str) -> StoreDamaged:
    """Return the error for bytes that are not those written."""
    return StoreDamaged(
        f"the pack {pack} is missing or damaged", "The step that made it runs again"
    )
