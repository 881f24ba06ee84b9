"""Bytes back to values; texts that hold secrets are filled in from the environment."""

from __future__ import annotations

import io
import pickle
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from nbckpt.codecs.definitions import restoring
from nbckpt.codecs.encoder import Encoder, collection_paused
from nbckpt.codecs.figures import none_opened
from nbckpt.credentials import Secrets, join

if TYPE_CHECKING:
    from nbckpt.codecs.definitions import Namespace, Target


class SecretEncoder(Encoder):
    """Encodes texts that hold secrets as references to environment variables.

    Parameters
    ----------
    namespace, values : dict
        As for `Encoder`.
    hidden : Secrets
        What must not be stored.
    """

    def __init__(
        self, namespace: Namespace, values: Namespace, hidden: Secrets
    ) -> None:
        super().__init__(namespace, values)
        self._hidden = hidden

    def _note_objects(self) -> None:
        """Note none: what overlaps was told before."""

    def persistent_id(self, obj: Any) -> Any:
        """Return the parts of a text that holds a secret; None for everything else."""
        return self._hidden.split(obj) if type(obj) is str else None


class _Decoder(pickle.Unpickler):
    """Decodes what was verified, filling in secrets from the environment."""

    def persistent_load(self, pid: Any) -> str:
        """Return a text that holds a secret."""
        return join(pid)


def decode(
    stream: memoryview,
    buffers: list[memoryview],
    target: Target,
) -> Namespace:
    """Return the names in a stream whose authenticity was verified.

    Parameters
    ----------
    stream : memoryview
        The stream.
    buffers : list of memoryview
        Its buffers; arrays use their memory without a copy.
    target : Target
        The notebook's names, which restored definitions live in.

    Returns
    -------
    dict
        Name → value.

    Raises
    ------
    Exception
        Whatever a type raises whose library changed since.
    """
    aside = none_opened() if target.trial else nullcontext()
    with restoring(target), collection_paused(), aside:
        found: Namespace = _Decoder(io.BytesIO(stream), buffers=buffers).load()
    return found
