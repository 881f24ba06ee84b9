"""Records and their text form."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from dataclasses import dataclass
from typing import Any, Self

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """Base of all records: to and from JSON text."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain JSON values.

        Returns
        -------
        dict
            Keys are the field names.
        """
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Build the record from what `to_json` gave.

        Parameters
        ----------
        data : dict
            Keys are the field names; unknown ones are an error.

        Returns
        -------
        Record
            An equal record.

        Raises
        ------
        TypeError
            If a key is unknown or a needed one is missing.
        """
        kind: Any = cls
        hints = _hints(kind)
        return cls(
            **{key: _revive(hints.get(key), value) for key, value in data.items()}
        )


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    """Return the types of a record's fields, found out once."""
    return typing.get_type_hints(cls)


def _revive(hint: Any, value: Any) -> Any:
    """Turn JSON lists and dicts into the tuples, enums and records of a field."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _revive(args[0], value)
    if origin is tuple:
        return tuple(_revive(args[0], item) for item in value)
    if origin is dict:
        return {key: _revive(args[1], item) for key, item in value.items()}
    return _revive_one(hint, value) if isinstance(hint, type) else value


def _revive_one(kind: type, value: Any) -> Any:
    """Turn one JSON value into a record or an enum; leave another as it is."""
    if issubclass(kind, Record):
        return kind.from_json(value)
    return kind(value) if issubclass(kind, enum.Enum) else value


def dumps(data: Any) -> bytes:
    """Return JSON values as bytes that are equal for equal values.

    Parameters
    ----------
    data : object
        JSON values.

    Returns
    -------
    bytes
        UTF-8, keys sorted.
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def loads(data: bytes) -> Any:
    """Return the JSON values in bytes.

    Parameters
    ----------
    data : bytes
        What `dumps` gave.

    Returns
    -------
    object
        JSON values.
    """
    return json.loads(data.decode("utf-8", "surrogatepass"))
