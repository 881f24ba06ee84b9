"""Records and their text form."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

SCHEMA_VERSION = 1

Revive = Callable[[Any], Any]


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
        kind: Any = type(self)
        return {name: _plain(getattr(self, name)) for name in _converters(kind)}

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
        converters = _converters(kind)
        return cls(
            **{
                key: value if (revive := converters.get(key)) is None else revive(value)
                for key, value in data.items()
            }
        )


@functools.cache
def _converters(cls: Any) -> dict[str, Revive | None]:
    """Return what revives each field of a record, found out once; None: it is as it is."""
    hints = typing.get_type_hints(cls)
    return {one.name: _converter(hints[one.name]) for one in dataclasses.fields(cls)}


@functools.cache
def _converter(hint: Any) -> Revive | None:
    """Return what turns JSON lists and dicts into tuples, enums and records."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional(_converter(args[0]))
    if origin is tuple:
        return _each(_converter(args[0]))
    if origin is dict:
        return _each_value(_converter(args[1]))
    return _converter_of_one(hint) if isinstance(hint, type) else None


def _converter_of_one(kind: type) -> Revive | None:
    """Return what turns one JSON value into a record or an enum; None for others."""
    if issubclass(kind, Record):
        return kind.from_json
    return kind if issubclass(kind, enum.Enum) else None


def _optional(inner: Revive | None) -> Revive | None:
    """Return what revives a value that may be None."""
    if inner is None:
        return None
    return lambda value: None if value is None else inner(value)


def _each(inner: Revive | None) -> Revive:
    """Return what revives a list's items."""
    if inner is None:
        return tuple
    return lambda value: tuple(map(inner, value))


def _each_value(inner: Revive | None) -> Revive:
    """Return what revives a dict's values."""
    if inner is None:
        return lambda value: dict(value.items())
    return lambda value: {key: inner(item) for key, item in value.items()}


def _plain(value: Any) -> Any:
    """Return a field as JSON values; containers are copies."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def dumps(data: Any) -> bytes:
    """Return JSON values as bytes.

    Parameters
    ----------
    data : object
        JSON values.

    Returns
    -------
    bytes
        UTF-8; keys stand in the order in which they were, since users' dicts have one.
    """
    return _encoded(data, sort_keys=False)


def canonical(data: Any) -> bytes:
    """Return JSON values as bytes that are equal for equal values.

    Parameters
    ----------
    data : object
        JSON values.

    Returns
    -------
    bytes
        UTF-8, keys sorted; for digests.
    """
    return _encoded(data, sort_keys=True)


def _encoded(data: Any, *, sort_keys: bool) -> bytes:
    """Return JSON values as bytes, without a space."""
    text = json.dumps(
        data, sort_keys=sort_keys, separators=(",", ":"), ensure_ascii=False
    )
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
