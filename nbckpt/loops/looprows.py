"""Rows of a loop over items in the store: which items are done, many in each row."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from nbckpt.credentials import Secrets, masked
from nbckpt.records import NextInput
from nbckpt.runs.history import readable
from nbckpt.store.packs import release_packs, use_packs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nbckpt.current import Place
    from nbckpt.inputs.watch import Touched
    from nbckpt.loops.savepoints import Saved
    from nbckpt.records import LoopRecord
    from nbckpt.store import Transaction

TEXT_LETTERS = 120
ERROR_LETTERS = 500
ROW_ITEMS = 500
ROW_BYTES = 32 << 10
"""A row that holds as much is not written again."""


class Done(NamedTuple):
    """What is known of an item that is done."""

    digest: str
    """Of its value; empty if the key says it all."""
    files: dict[str, int]
    """File that it was the first to write, and left → bytes in it then."""
    result: Any
    """What `nbckpt.map` keeps of it."""

    def is_kept(self, locate: Callable[[str], Path]) -> bool:
        """Tell whether its files are there, and hold something if they did.

        A file that is empty now and was not is what a loss of power leaves of one that
        was not synced.
        """
        now = {name: size_of(locate(name)) for name in self.files}
        return all(now[n] or now[n] == before for n, before in self.files.items())


@dataclass(slots=True)
class Row:
    """Items that are done, as they stand in one row of the store."""

    number: int
    items: list[list[Any]] = field(default_factory=list)
    read: dict[str, str] = field(default_factory=dict)
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the next item begins a new row."""
        return len(self.items) >= ROW_ITEMS or self.size >= ROW_BYTES

    def add(self, key: str, done: Done) -> None:
        """Add an item that is done.

        Parameters
        ----------
        key : str
            Its key.
        done : Done
            What is known of it.
        """
        self.items.append([key, done.digest, done.files, done.result])
        self.size += len(key) + sum(map(len, done.files)) + _size(done.result)

    def to_json(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {"items": self.items, "read": self.read}


def key_of(kind: str, loop: LoopRecord) -> str:
    """Return a loop's key in the store.

    Parameters
    ----------
    kind : str
        ``loop``, ``done`` or ``result``.
    loop : LoopRecord
        The loop.

    Returns
    -------
    str
        What the keys of its rows begin with.
    """
    return f"{kind}/{loop.run_id}/{loop.step}/{loop.loop}"


def row_key(loop: LoopRecord, number: int) -> str:
    """Return the key of one row of a loop."""
    return f"{key_of('done', loop)}/{number:08d}"


@dataclass(frozen=True, slots=True)
class Batch:
    """What is written of a loop in one transaction."""

    rows: dict[int, Row]
    results: dict[str, bytes]
    """Key of an item → its result where JSON can't hold it."""
    inside: tuple[str, ...]
    """Items that are done, as the names of the loops inside them begin."""
    saved: Saved | None
    """What the kept names hold."""

    def write(self, transaction: Transaction, loop: LoopRecord) -> list[str]:
        """Write rows, results, kept contents and the loop's record as one.

        Parameters
        ----------
        transaction : Transaction
            The transaction.
        loop : LoopRecord
            The record that names them.

        Returns
        -------
        list of str
            Packs without users; see `nbckpt.store.packs.release_packs`.
        """
        for number, row in self.rows.items():
            transaction.put(row_key(loop, number), row.to_json())
        for item, data in self.results.items():
            transaction.put_bytes(f"{key_of('result', loop)}/{item}", data)
        key, freed = key_of("loop", loop), []
        if self.saved is not None:
            before = transaction.get(key)
            use_packs(transaction, key, self.saved.contents, self.saved.pack)
            freed = release_packs(
                transaction, key, before, set(self.saved.contents.packs)
            )
        transaction.put(key, loop.to_json())
        for part in self.inside:
            freed += delete_loops(transaction, key, f":{part}:")
        return freed


class Span(NamedTuple):
    """Where files stand that an item wrote, while others worked beside it."""

    thread: int
    """0: any."""
    start: int
    end: int


class Noticed:
    """Files that a step touches, as they are noticed from one item to the next.

    Parameters
    ----------
    touched : Touched
        Grows while the step runs.
    locate : callable
        Takes the name of a file, returns where it lies.

    Attributes
    ----------
    span : Span or None
        Where the files of the item that ends next are, if others work beside it.
    """

    def __init__(self, touched: Touched, locate: Callable[[str], Path]) -> None:
        self._touched, self._locate = touched, locate
        self.span: Span | None = None
        self._files, self._reads = len(touched.order), len(touched.read)

    def begin(self) -> None:
        """Take note that an item begins: what was written before it is not its own."""
        self._files = len(self._touched.order)

    @property
    def count(self) -> int:
        """How many files were written."""
        return len(self._touched.order)

    def files(self) -> dict[str, int]:
        """Return the files that the item was the first to write, and left: their bytes."""
        span = self.span or Span(0, self._files, self.count)
        self._files, self.span = self.count, None
        written = self._touched.order[span.start : span.end]
        own = (name for name, thread in written if span.thread in {0, thread})
        found = {name: size_of(self._locate(name)) for name in own}
        return {name: size for name, size in found.items() if size is not None}

    def reads(self) -> dict[str, str]:
        """Return the files that were read first since the last call."""
        read = self._touched.read
        count, self._reads = len(read) - self._reads, len(read)
        return dict(islice(reversed(read.items()), max(count, 0)))


def size_of(path: Path) -> int | None:
    """Return the bytes in a file; None if there is no such file."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def delete_loops(transaction: Transaction, key: str, inside: str = "") -> list[str]:
    """Delete a loop and those inside it, or only those inside one of its items.

    Parameters
    ----------
    transaction : Transaction
        The transaction.
    key : str
        Key of the loop's record.
    inside : str, optional
        What follows the key in those of the loops inside an item.

    Returns
    -------
    list of str
        Packs without users; see `nbckpt.store.packs.release_packs`.
    """
    loops = transaction.keys(key + (inside or ":"))
    freed: list[str] = []
    for found in loops if inside else [key, *loops]:
        before, _ = readable(transaction, found)
        freed += release_packs(transaction, found, before, set())
        transaction.delete(found)
    ends = [inside] if inside else ["/", ":"]
    for prefix in [
        f"{kind}{key[4:]}{end}" for kind in ("done", "result") for end in ends
    ]:
        for found in transaction.keys(prefix):
            transaction.delete(found)
    return freed


def _size(result: Any) -> int:
    """Return about how much of a row a result takes."""
    return 0 if result is None else len(str(result))


def lineage(place: Place) -> str:
    """Return what attempts that go on with each other have in common.

    It changes when the step is completed, and when a person asks for another run of it.

    Parameters
    ----------
    place : Place
        The body that runs.

    Returns
    -------
    str
        To be compared.
    """
    session, step = place.session, place.attempt.step
    found, damaged = readable(session.store, f"step/{session.run_id}/{step}")
    completed = -1 if damaged else found["attempt"] if found else 0
    rerun = session.journal.mark(session.run_id, step).rerun
    return f"{completed} {rerun}".strip()


def told(error: BaseException) -> str:
    """Return an item's error for its record, without credentials."""
    return f"{type(error).__name__}: {masked(str(error))}"[:ERROR_LETTERS]


class Short(reprlib.Repr):
    """Short forms of values; credentials are masked before anything is cut."""

    def __init__(self) -> None:
        super().__init__()
        self._hidden = Secrets.of_environment()

    def repr_str(self, x: str, level: int) -> str:
        """Return the short form of a text."""
        return super().repr_str(self._hidden.mask(x), level)

    def repr_instance(self, x: Any, level: int) -> str:
        """Return the short form of what has no form of its own."""
        del level
        text = self._hidden.mask(repr(x))
        half = (self.maxother - len(self.fillvalue)) // 2
        if len(text) <= self.maxother:
            return text
        return f"{text[:half]}{self.fillvalue}{text[-half:]}"


def next_input(found: tuple[str, Any] | None) -> NextInput | None:
    """Return the item that comes next in its short form.

    Parameters
    ----------
    found : tuple or None
        Its key and the item.

    Returns
    -------
    NextInput or None
        For the loop's record.
    """
    if found is None:
        return None
    try:
        text = Short().repr(found[1])
    except Exception:
        # Another thread may be changing it, and a repr of the user's own can fail.
        text = f"<{type(found[1]).__name__}>"
    return NextInput(found[0], text[:TEXT_LETTERS])
