"""What a function returned for an item: as JSON where that is exact, else as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt import variables
from nbckpt.codecs import Encoder, decode
from nbckpt.errors import ValueRefused
from nbckpt.records import dumps, loads
from nbckpt.snapshots import Changes

if TYPE_CHECKING:
    from nbckpt.codecs import Secrets

Namespace = dict[str, Any]
PLAIN = (str, int, float, bool, type(None))
BYTES = "bytes"
"""Stands in a row for a result that lies beside it."""


def encode(
    value: Any, namespace: Namespace, hidden: Secrets
) -> tuple[Any, bytes | None]:
    """Return a result for a row, and the bytes that lie beside the row, if any.

    Parameters
    ----------
    value : object
        The result.
    namespace : dict
        The notebook's names.
    hidden : Secrets
        What must not reach the disk.

    Returns
    -------
    tuple of object and bytes or None
        JSON values, and bytes where JSON can't hold the result exactly.

    Raises
    ------
    ValueRefused
        If it can't be kept.
    """
    if _is_plain(value) and not hidden.are_in(memoryview(dumps(value))):
        return [value], None
    whole = {"result": value}
    changes = Changes({frozenset(whole): Encoder(namespace, whole).encode()}, ())
    changes = variables.hide(changes, whole, namespace, hidden)
    refused = changes.refusals or variables.load_test(changes, namespace, set())
    if refused:
        raise ValueRefused(str(refused[0]))
    encoded = changes.components[frozenset(whole)]
    parts = [encoded.stream, *encoded.buffers]
    head = dumps([[part.nbytes, part.readonly] for part in parts])
    return BYTES, b"".join([len(head).to_bytes(4, "little"), head, *parts])


def restore(data: bytes, namespace: Namespace) -> Any:
    """Return the result in bytes that `encode` made and the store has verified.

    Parameters
    ----------
    data : bytes
        From the user's own store.
    namespace : dict
        The notebook's names.

    Returns
    -------
    object
        An equal result.

    Raises
    ------
    Exception
        Whatever a type raises whose library changed since.
    """
    size = int.from_bytes(data[:4], "little")
    at, parts = 4 + size, []
    for length, readonly in loads(data[4:at]):
        part = memoryview(bytearray(data[at : at + length]))
        parts.append(part.toreadonly() if readonly else part)
        at += length
    return decode(parts[0], parts[1:], namespace)["result"]


def _is_plain(value: Any) -> bool:
    """Tell whether JSON gives back an equal value of the same types."""
    kind = type(value)
    if kind is list:
        return all(_is_plain(part) for part in value)
    if kind is dict:
        return all(type(k) is str and _is_plain(v) for k, v in value.items())
    return kind in PLAIN
