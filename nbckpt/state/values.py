"""A single value as a row of the store: exact JSON if it is such, else its bytes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import SecretEncoder, Target, decode
from nbckpt.credentials import Secrets
from nbckpt.errors import ValueRefused
from nbckpt.keys import is_huge
from nbckpt.records import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.codecs import Encoded

Namespace = dict[str, Any]
ALIGNED = 64
NAME = "value"


def is_json(value: object) -> bool:
    """Tell whether a value comes back from JSON text as it was.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    bool
        Tuples, subclasses of the plain types, not-a-number, huge integers and keys other
        than text do not.
    """
    if value is None or type(value) in {str, int, bool}:
        return not is_huge(value)
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is list:
        return all(map(is_json, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(
            map(is_json, value.values())
        )
    return False


def keep(what: str, value: Any, namespace: Namespace) -> tuple[Any, bytes | None]:
    """Return a value in the form in which it is stored.

    Parameters
    ----------
    what : str
        What the value is, for the message.
    value : object
        Any value.
    namespace : dict
        The notebook's names, which definitions are looked up in.

    Returns
    -------
    tuple of object and bytes
        JSON values and None, or None and bytes. Credentials of the environment are in
        neither.

    Raises
    ------
    ValueRefused
        If a part of it can't be kept; names its path.
    """
    hidden = Secrets.of_environment()
    if is_json(value) and not hidden.are_in(dumps(value)):
        return value, None
    encoded = SecretEncoder(namespace, {NAME: value}, hidden).encode()
    if encoded.refusals:
        raise ValueRefused(
            f"{what} can't be kept: {encoded.refusals[0]}",
            "Give a value that can be stored, such as its name or number",
        )
    body = joined(encoded)
    if hidden.are_in(body):
        raise ValueRefused(
            f"{what} can't be kept: it holds a credential of the environment",
            "Give the name of the variable instead",
        )
    return None, body


def revive(data: Any, body: bytes | None, namespace: Namespace) -> Any:
    """Return the value that `keep` gave the form of.

    Parameters
    ----------
    data : object
        JSON values.
    body : bytes or None
        Authentic bytes of the user's own store; None if the JSON values are all.
    namespace : dict
        The notebook's names, which restored definitions live in.

    Returns
    -------
    object
        An equal value that shares nothing with others.
    """
    if body is None:
        return loads(dumps(data))
    # Writable, as the arrays were.
    stream, *buffers = (part for part, _ in unjoined(body))
    return decode(stream, buffers, Target(namespace))[NAME]


def joined(encoded: Encoded) -> bytes:
    """Return a stream and its buffers as one, each at an even place.

    Parameters
    ----------
    encoded : Encoded
        Without refusals.

    Returns
    -------
    bytes
        `unjoined` takes them apart.
    """
    parts = [encoded.stream, *encoded.buffers]
    head = dumps([[part.nbytes, part.readonly] for part in parts])
    padded = (bytes(part).ljust(_rounded(part.nbytes), b"\0") for part in parts)
    return head + b"\n" + b"".join(padded)


def unjoined(body: bytes) -> Iterator[tuple[memoryview, bool]]:
    """Yield a stream and its buffers, and whether each was read-only.

    Parameters
    ----------
    body : bytes
        What `joined` gave.

    Yields
    ------
    tuple of memoryview and bool
        Memory that can be written to and shares nothing with others.
    """
    head, _, rest = body.partition(b"\n")
    memory, start = memoryview(bytearray(rest)), 0
    for length, readonly in loads(head):
        yield memory[start : start + length], readonly
        start += _rounded(length)


def _rounded(length: int) -> int:
    """Return the next length at which an array may begin."""
    return -(-length // ALIGNED) * ALIGNED
