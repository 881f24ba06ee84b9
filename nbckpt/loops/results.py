"""What a function returned for an item: as JSON where that is exact, else as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt.codecs import Encoder, Target, decode
from nbckpt.errors import ValueRefused
from nbckpt.records import dumps
from nbckpt.state import values, variables
from nbckpt.state.snapshots import Changes

if TYPE_CHECKING:
    from nbckpt.credentials import Secrets

Namespace = dict[str, Any]
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
    if values.is_json(value) and not hidden.are_in(memoryview(dumps(value))):
        return [value], None
    whole = {"result": value}
    changes = Changes({frozenset(whole): Encoder(namespace, whole).encode()}, ())
    changes = variables.hide(changes, whole, namespace, hidden)
    refused = changes.refusals or variables.load_test(changes, namespace, set())
    if refused:
        raise ValueRefused(str(refused[0]))
    return BYTES, values.joined(changes.components[frozenset(whole)])


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
    stream, *buffers = (
        part.toreadonly() if readonly else part
        for part, readonly in values.unjoined(data)
    )
    return decode(stream, buffers, Target(namespace))["result"]
