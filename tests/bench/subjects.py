"""What is kept in the benchmarks, and the plain way of keeping it."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ARRAY_ITEMS = 64 << 20
"""Of 8 bytes each: 512 MiB."""
FRAME_ROWS = 2_000_000
DICTS = 100_000


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of value, as a step and as plain files keep it."""

    build: Callable[[float], Any]
    """Takes the scale; builds an equal value each time."""
    read: str
    """Expression that only reads ``value``."""
    change: str
    """Statement that changes one row of ``value``."""
    save: Callable[[Any, IO[bytes]], None]
    load: Callable[[IO[bytes]], Any]
    equal: Callable[[Any, Any], bool]


def an_array(scale: float) -> Any:
    return np.random.default_rng(7).random(int(ARRAY_ITEMS * scale))


def a_frame(scale: float) -> Any:
    rows = int(FRAME_ROWS * scale)
    number = np.arange(rows)
    return pd.DataFrame(
        {
            "i": number,
            "f": np.random.default_rng(7).random(rows),
            "b": number % 3 == 0,
            "t": pd.Timestamp("2024-01-01") + pd.to_timedelta(number, unit="s"),
            "s": [f"user-{row % 500_003:07d}" for row in range(rows)],
            "c": pd.Categorical.from_codes(number % 5, list("abcde")),
        }
    )


def some_dicts(scale: float) -> Any:
    return [
        {"id": row, "name": f"n{row}", "v": row * 0.5, "tags": ["a", str(row % 7)]}
        for row in range(int(DICTS * scale))
    ]


def _pickle(value: Any, file: IO[bytes]) -> None:
    pickle.dump(value, file, 5)


def _unpickle(file: IO[bytes]) -> Any:
    return pickle.load(file)  # noqa: S301 - written a moment ago by this benchmark


def _save_array(value: Any, file: IO[bytes]) -> None:
    np.save(file, value)


def _load_array(file: IO[bytes]) -> Any:
    return np.load(file)


SUBJECTS = {
    "array": Subject(
        an_array,
        "float(value[0])",
        "value[value.size // 2] = -1.0",
        _save_array,
        _load_array,
        lambda a, b: bool(np.array_equal(a, b)),
    ),
    "frame": Subject(
        a_frame,
        "float(value.iat[0, 1])",
        "value.iloc[len(value) // 2, 1] = -1.0",
        _pickle,
        _unpickle,
        lambda a, b: bool(a.equals(b)),
    ),
    "dicts": Subject(
        some_dicts,
        "value[0]['v']",
        "value[len(value) // 2]['v'] = -1.0",
        _pickle,
        _unpickle,
        lambda a, b: bool(a == b),
    ),
}


def save_plainly(subject: Subject, value: Any, path: Path, *, sync: bool) -> float:
    """Save a value to a new file; return the seconds that it took."""
    # A file of before would have to be emptied first, and its pages still be written.
    path.unlink(missing_ok=True)
    begun = time.perf_counter()
    with path.open("wb") as file:
        subject.save(value, file)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    return time.perf_counter() - begun


def load_plainly(subject: Subject, path: Path) -> float:
    """Load the value in a file; return the seconds that it took."""
    begun = time.perf_counter()
    with path.open("rb") as file:
        subject.load(file)
    return time.perf_counter() - begun
