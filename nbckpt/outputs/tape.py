"""Where recorded messages lie: in memory while few, in an unnamed file when many.

A tape holds lines of JSON in the order in which they show. A line can be replaced, and
all but a few can be wiped; bytes that no line needs are dropped from time to time, so
that a display updated for hours takes no more room than its last picture.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import mmap
import numbers
import os
import tempfile
from array import array
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

SPILL_LIMIT = 1 << 20
"""Bytes that are held in memory; more go to a file."""


def encode(kind: str, content: Mapping[str, Any]) -> bytes:
    r"""Return a message as one line of JSON.

    Parameters
    ----------
    kind : str
        The message type, such as ``stream``.
    content : mapping
        The message content. Bytes become base64, what JSON doesn't know its ``repr``.

    Returns
    -------
    bytes
        UTF-8 text that ends in a newline.

    Examples
    --------
    >>> encode("stream", {"name": "stdout", "text": "a"})
    b'{"msg_type": "stream", "content": {"name": "stdout", "text": "a"}}\n'
    """
    message = {"msg_type": kind, "content": content}
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(_plain(message), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can hold
        return json.dumps(json.loads(text)).encode() + b"\n"


def _plain(value: Any) -> Any:
    """Return a value as what JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return _plain_leaf(value)


def _plain_leaf(value: Any) -> str | int | float | None:
    """Return a value that holds no others as what JSON knows."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b64encode(value).decode()
    return repr(value)


class Recording:
    """What one cell sent to the front end, folded.

    Parameters
    ----------
    file : BinaryIO, optional
        The lines of JSON; closed by `close`.
    has_result : bool
        Whether an ``execute_result`` was among the messages, so that ``_`` and ``Out``
        must be kept as well.

    Notes
    -----
    The spill file has no name (it is unlinked before anything is written, where the
    system can do so), so a killed process leaves none behind.
    """

    def __init__(
        self, file: BinaryIO | None = None, *, has_result: bool = False
    ) -> None:
        self.has_result = has_result
        self._file = io.BytesIO() if file is None else file
        self._map: mmap.mmap | None = None

    def data(self) -> bytes | memoryview:
        """Return the folded messages.

        Returns
        -------
        bytes or memoryview
            Lines of JSON in UTF-8, empty if there was no message. A view of a mapped
            file if they are many; release it before `close`.

        Raises
        ------
        ValueError
            If the recording is closed.
        """
        if isinstance(self._file, io.BytesIO):
            return self._file.getvalue()
        if self._map is None:
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return memoryview(self._map)

    def close(self) -> None:
        """Give memory and disk space back; more than once is allowed."""
        self._file.close()
        if self._map is not None:
            # A view that is still held keeps the map until it goes away itself.
            with contextlib.suppress(BufferError):
                self._map.close()


class Tape:
    """Lines in order, each of which can be replaced.

    Parameters
    ----------
    folder : Path
        Where the unnamed file is made if the lines get many; made if missing.

    Notes
    -----
    Holds `SPILL_LIMIT` bytes and 16 bytes a line in memory. Takes at most twice the
    room of its lines, and `SPILL_LIMIT`, in the folder; for a moment three times.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO = io.BytesIO()
        self._end = 0
        self._live = 0
        self._ordered = True
        self._starts = array("Q")
        self._sizes = array("Q")

    def append(self, line: bytes) -> int:
        """Put a line at the end.

        Parameters
        ----------
        line : bytes
            One line, newline included.

        Returns
        -------
        int
            Its slot, for `replace` and `wipe`.
        """
        start = self._write(line)
        self._starts.append(start)
        self._sizes.append(len(line))
        return len(self._starts) - 1

    def replace(self, slot: int, line: bytes) -> None:
        """Put another line in the place of one.

        Parameters
        ----------
        slot : int
            What `append` gave.
        line : bytes
            One line, newline included.
        """
        start = self._write(line)
        self._live -= self._sizes[slot]
        self._starts[slot] = start
        self._sizes[slot] = len(line)
        self._ordered = False
        self._tidy()

    def wipe(self, keep: Iterable[int] = ()) -> None:
        """Drop all lines but a few.

        Parameters
        ----------
        keep : iterable of int
            Slots that stay, ascending; they become 0, 1, 2 and so on.
        """
        slots = list(keep)
        self._starts = array("Q", (self._starts[slot] for slot in slots))
        self._sizes = array("Q", (self._sizes[slot] for slot in slots))
        self._live = sum(self._sizes)
        self._ordered = False
        self._tidy()

    def finish(self) -> BinaryIO:
        """Return the file with the lines in order; the tape must not be used again.

        Returns
        -------
        BinaryIO
            In memory or unnamed on disk. Closing it removes it.
        """
        if not self._ordered:
            self._copy()
        return self._file

    def close(self) -> None:
        """Forget everything."""
        self._file.close()

    def _write(self, line: bytes) -> int:
        """Put bytes at the end of the file and return where."""
        full = self._end + len(line) > SPILL_LIMIT
        if full and isinstance(self._file, io.BytesIO):
            self._spill()
        start = self._end
        self._put(line)
        self._end += len(line)
        self._live += len(line)
        return start

    def _put(self, data: bytes) -> None:
        """Write all of some bytes at the end; a raw file may take a part at a time."""
        self._file.seek(self._end)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _spill(self) -> None:
        """Go on in a file.

        Unbuffered, as a forked child that exits would write its copy of a buffer.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._file as old:
            self._file = tempfile.TemporaryFile(  # noqa: SIM115 - closed with the tape
                buffering=0, prefix=f"{os.getpid()}-", dir=self._folder
            )
            end, self._end = self._end, 0
            old.seek(0)
            self._put(old.read())
            self._end = end

    def _tidy(self) -> None:
        """Drop bytes that no line needs, if they are most."""
        allowed = max(self._live, SPILL_LIMIT // 2)
        if self._end - self._live > allowed or not self._live:
            self._copy()

    def _copy(self) -> None:
        """Write the lines again, in order and nothing else."""
        new = Tape(self._folder)
        with self._file as old:
            for start, size in zip(self._starts, self._sizes, strict=True):
                old.seek(start)
                new.append(old.read(size))
        vars(self).update(vars(new))
