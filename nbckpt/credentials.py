"""Secrets in values: credentials from the environment never reach the disk.

A text that holds the value of a credential variable is stored as a reference to the
variable, and filled in again from the environment of the kernel that restores it. In what
only people read, and in keys, the name of the variable stands instead.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = re.compile(r"(?i)(key|token|secret|passw|credential|auth|pwd|private)")
SHORTEST = 6
"""Shorter values stand in too many texts by chance."""
PIECE_BYTES = 1 << 20
OPEN, CLOSE = b"\x1fenv:", b"\x1f"


class Secrets:
    """Values that must not be stored.

    Parameters
    ----------
    values : mapping
        Variable → value.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = {v: n for n, v in values.items() if len(v) >= SHORTEST}

    @classmethod
    def of_environment(cls) -> Secrets:
        """Return the environment's credentials, told by the names of the variables."""
        return cls(
            {name: text for name, text in os.environ.items() if NAME.search(name)}
        )

    def are_in(self, data: memoryview | bytes) -> bool:
        """Tell whether bytes hold a secret."""
        if not self.values:
            return False
        forms = {form for v in self.values for form in (_escaped(v), v.encode())}
        overlap = max(map(len, forms)) - 1
        view = memoryview(data)
        # In pieces, since only bytes have a fast search and a copy of all is too much.
        return any(
            form in piece
            for start in range(0, view.nbytes, PIECE_BYTES)
            for piece in (bytes(view[start : start + PIECE_BYTES + overlap]),)
            for form in forms
        )

    def hide_bytes(self, data: bytes | memoryview) -> bytes | memoryview:
        """Return JSON text with references in place of secrets."""
        if not self.are_in(data):
            return data
        hidden = bytes(data)
        for value, name in self.values.items():
            hidden = hidden.replace(_escaped(value), OPEN + name.encode() + CLOSE)
        return hidden

    def reveal_bytes(self, data: bytes) -> bytes:
        """Return JSON text with the environment's values in place of references."""

        def fill(found: re.Match[bytes]) -> bytes:
            return _escaped(os.environ[found[1].decode()])

        return re.sub(OPEN + b"([^\x1f]*)" + CLOSE, fill, data)

    def mask(self, text: str) -> str:
        """Return a text with the names of variables in place of their values."""
        forms = {form: name for v, name in self.values.items() for form in _forms(v)}
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, f"${forms[form]}")
        return text

    def mask_all(self, value: Any) -> Any:
        """Return JSON values in which each text is masked; keys of dicts stay."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self.mask_all(part) for part in value]
        if isinstance(value, dict):
            return {key: self.mask_all(part) for key, part in value.items()}
        return value

    def split(self, text: str) -> tuple[str | tuple[str], ...] | None:
        """Return a text's parts, variables in tuples; None if it holds no secret."""
        present = [value for value in self.values if value in text]
        if not present:
            return None
        pattern = "|".join(re.escape(v) for v in sorted(present, key=len, reverse=True))
        pieces = re.split(f"({pattern})", text)
        return tuple((self.values[p],) if p in self.values else p for p in pieces)


def join(parts: Any) -> str:
    """Return the text of parts, filled in from the environment.

    Parameters
    ----------
    parts : sequence
        What `Secrets.split` returned.

    Returns
    -------
    str
        The text.

    Raises
    ------
    KeyError
        If a variable is not set any more.
    """
    return "".join(
        part if isinstance(part, str) else os.environ[part[0]] for part in parts
    )


def masked(text: str) -> str:
    """Return a text with the names of variables in place of credentials.

    Parameters
    ----------
    text : str
        What a person or a program wrote; whole, since a part of a credential is not
        found.

    Returns
    -------
    str
        Safe to store.

    Examples
    --------
    ``masked("GET /orders?token=tok-4711")`` is ``"GET /orders?token=$SHOP_TOKEN"``.
    """
    return Secrets.of_environment().mask(text)


def _forms(value: str) -> set[str]:
    """Return a value as it stands in texts, in reprs, in JSON and in addresses."""
    written = {repr(value)[1:-1], _escaped(value).decode("utf-8", "surrogatepass")}
    return {value, *written, _quoted(value, quote), _quoted(value, quote_plus)}


def _quoted(value: str, way: Callable[..., str]) -> str:
    """Return a value as it stands in an address."""
    return way(value, safe="", errors="surrogateescape")


def _escaped(text: str) -> bytes:
    """Return a text as it stands inside JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
