"""Whose records are believed: the user's secret and the seals made with it.

A record is sealed with HMAC-SHA256 over its key and its bytes, so that neither a change
nor a swap of two records passes. The secret lies outside every store, in the user's
Jupyter data folder, readable by the user alone. Who can read it can write records that
are believed; who can only write to a store can't.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from nbckpt.errors import StoreDamaged, StoreRefused

SEAL_BYTES = 32


@dataclass(frozen=True, slots=True)
class Secret:
    """The key that seals the records of one user."""

    data: bytes

    @property
    def identity(self) -> str:
        """Name of the secret that tells nothing about it."""
        return hashlib.sha256(b"nbckpt identity" + self.data).hexdigest()[:32]

    def seal(self, key: str, body: bytes) -> bytes:
        """Return the bytes with their seal in front.

        Parameters
        ----------
        key : str
            The record's key, which the seal binds.
        body : bytes
            The record.

        Returns
        -------
        bytes
            Seal and record.
        """
        return self._mac(key, body) + body

    def unseal(self, key: str, data: bytes) -> bytes:
        """Return the record of sealed bytes.

        Parameters
        ----------
        key : str
            The record's key.
        data : bytes
            What `seal` gave.

        Returns
        -------
        bytes
            The record.

        Raises
        ------
        StoreDamaged
            If the bytes were not sealed with this secret under this key.
        """
        body = data[SEAL_BYTES:]
        if not hmac.compare_digest(self._mac(key, body), data[:SEAL_BYTES]):
            raise StoreDamaged(
                f"the record {key!r} is damaged or not authentic",
                "Nothing of it is used",
            )
        return body

    def keyed_digest(self, text: str) -> str:
        """Return a digest of a value that must not be guessable.

        Parameters
        ----------
        text : str
            For example the value of an environment variable.

        Returns
        -------
        str
            32 hexadecimal digits.
        """
        data = text.encode("utf-8", "surrogatepass")
        return hmac.new(self.data, b"value\0" + data, "sha256").hexdigest()[:32]

    def _mac(self, key: str, body: bytes) -> bytes:
        """Return the seal of a record."""
        return hmac.new(self.data, key.encode() + b"\0" + body, "sha256").digest()


def secret_path() -> Path:
    """Return where the user's secret lies.

    Returns
    -------
    Path
        A file in the user's Jupyter data folder.
    """
    return Path(jupyter_data_dir()) / "nbckpt" / "secret"


def load_secret() -> Secret:
    """Return the user's secret, made on first use.

    Returns
    -------
    Secret
        32 random bytes, the same in every process of the user.

    Raises
    ------
    StoreRefused
        If the file can be read by others or is no secret.
    """
    path = secret_path()
    if not path.exists():
        _create(path)
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077:
        raise StoreRefused(
            f"the secret {path} can be read by others", f"Run: chmod 600 {path}"
        )
    data = path.read_bytes()
    if len(data) != SEAL_BYTES:
        raise StoreRefused(
            f"the secret {path} is damaged",
            "Restore it, or remove it: the stores made with it then open read-only",
        )
    return Secret(data)


def _create(path: Path) -> None:
    """Write a new secret; of two processes at once the first one wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = path.with_name(f"secret.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        os.write(handle, secrets.token_bytes(SEAL_BYTES))
        os.fsync(handle)
        # A hard link fails if the name is taken: nobody ever sees half a secret.
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        scratch.unlink()
