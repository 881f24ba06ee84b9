"""What the user's modules read when they were imported: inputs of all that uses them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from nbckpt.inputs.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbckpt.inputs.proofs import Paths

T = TypeVar("T")


class Imported:
    """Files and environment variables that modules read while they were made.

    Parameters
    ----------
    paths : Paths
        Names of files.

    Notes
    -----
    A module that was imported before nbckpt was loaded is not known.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._files: dict[str, dict[str, str]] = {}
        self._environment: dict[str, dict[str, str | None]] = {}

    @contextmanager
    def noticing(self, module: str) -> Iterator[None]:
        """Take note of what a module reads while it is made.

        Parameters
        ----------
        module : str
            Its dotted name.

        Yields
        ------
        None
        """
        watch = Watch(self._paths, self._paths.base / ".nbckpt", lambda _: None)
        with watch.beside():
            yield
        touched = watch.touched
        names = {name for name in touched.read if not name.endswith(".py")}
        names -= touched.written
        self._files[module] = {name: self._paths.digest(name) for name in names}
        self._environment[module] = touched.environment

    def files(self, modules: Iterable[str]) -> dict[str, str]:
        """Return the digests, as they were, of the files that some modules read."""
        return _all(self._files, modules)

    def environment(self, modules: Iterable[str]) -> dict[str, str | None]:
        """Return the values, as they were, of the variables that some modules read."""
        return _all(self._environment, modules)


def _all(parts: dict[str, dict[str, T]], modules: Iterable[str]) -> dict[str, T]:
    """Return the parts of some modules as one."""
    return {k: v for module in modules for k, v in parts.get(module, {}).items()}
