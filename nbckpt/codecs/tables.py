"""Writers and readers of tables: what they are depends on the file below them."""

from __future__ import annotations

import csv
import gc
from typing import Any

OPTIONS = (
    "delimiter",
    "doublequote",
    "escapechar",
    "lineterminator",
    "quotechar",
    "quoting",
    "skipinitialspace",
    "strict",
)


def csv_writer(writer: Any) -> tuple[Any, ...] | str:
    """Keep a writer of lines with what it writes to, which is refused if it is open."""
    for part in gc.get_referents(writer):
        if getattr(part, "__name__", "") == "write":
            target = getattr(part, "__self__", None)
            return revive_csv_writer, (target, _options(writer))
    return "a writer of lines"


def revive_csv_writer(target: Any, options: dict[str, Any]) -> Any:
    """Return a writer of lines; called while decoding."""
    return csv.writer(target, **options)


def csv_reader(reader: Any) -> tuple[Any, ...] | str:
    """Keep a reader of lines whose file is closed; another is somewhere within it."""
    for part in gc.get_referents(reader):
        if getattr(part, "closed", False):
            return revive_csv_reader, (_options(reader),)
    return "a reader of lines; make it a list"


def revive_csv_reader(options: dict[str, Any]) -> Any:
    """Return a reader of lines whose file is closed; called while decoding."""
    return csv.reader(Closed(), **options)


class Closed:
    """What a reader of lines reads from, once it is closed."""

    closed = True

    def __iter__(self) -> Closed:
        """Return itself; a closed file itself is taken by no reader."""
        return self

    def __next__(self) -> str:
        """Refuse, as a closed file does."""
        raise ValueError("I/O operation on closed file.")


def _options(lines: Any) -> dict[str, Any]:
    """Return how a writer or a reader separates and quotes."""
    return {name: getattr(lines.dialect, name) for name in OPTIONS}


def excel_writer(writer: Any) -> tuple[Any, ...] | str:
    """Keep a writer of workbooks that was closed, with its workbook."""
    if not writer._handles.handle.closed:
        return "an open writer of a workbook; make it with `with`, or --drop it"
    return revive_excel_writer, (type(writer),), vars(writer)


def revive_excel_writer(kind: type) -> Any:
    """Return a writer of workbooks without opening a file; called while decoding."""
    return object.__new__(kind)
