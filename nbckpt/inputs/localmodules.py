"""The user's own modules: what each imports, told from its source, and its digest.

What a module imports inside a function, or takes over as a constant, shows in no value:
the source tells it, also of a module that is not imported yet.
"""

from __future__ import annotations

import ast
import functools
import importlib.machinery
import importlib.util
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt import keys
from nbckpt.state.modulestate import is_own, is_own_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def sources(names: Iterable[str]) -> dict[str, str]:
    """Return the digests of the user's own modules among some, and of all they import.

    Parameters
    ----------
    names : iterable of str
        Modules, whoever made them.

    Returns
    -------
    dict
        Module → digest of its source; comments and layout are no part of it.
    """
    found: dict[str, str] = {}
    queue, seen = set(names), set()
    while queue:
        name = queue.pop()
        seen.add(name)
        path = _file(name)
        if path is not None:
            source = _look(path)
            found[name] = source.digest
            queue |= {*_uses(name), *source.imported(name, path)} - seen
    return found


def source_digest(path: Path) -> str:
    """Return the digest of a module's source.

    Parameters
    ----------
    path : Path
        Its file.

    Returns
    -------
    str
        Equal for equal code.
    """
    return _look(path).digest


@dataclass(frozen=True, slots=True)
class _Source:
    """What is told from a module's source."""

    digest: str
    imports: frozenset[tuple[str, str]] = frozenset()
    """Modules as they stand there, with leading dots, each with a name taken from it."""

    def imported(self, name: str, path: Path) -> Iterator[str]:
        """Yield the modules that it may import, those above it among them."""
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        if package:
            yield package
        for module, part in self.imports:
            try:
                whole = importlib.util.resolve_name(module, package)
            except ImportError:
                continue
            yield whole
            if part:
                yield f"{whole}.{part}"


def _look(path: Path) -> _Source:
    """Return what a file's source tells."""
    try:
        return _read(path.read_bytes())
    except OSError as error:
        return _Source(f"unreadable: {error}")


@functools.lru_cache(maxsize=512)
def _read(source: bytes) -> _Source:
    """Return what a source tells, found out once."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return _Source(keys.digest(source))
    nodes = ast.walk(tree)
    found = frozenset(pair for node in nodes for pair in _imports(node))
    return _Source(keys.code_fingerprint(tree.body), found)


def _imports(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what a statement imports."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        yield from ((module, alias.name) for alias in node.names)


def _file(name: str) -> Path | None:
    """Return the source file of a module of the user's own; None of any other."""
    if name in sys.modules:
        return Path(str(sys.modules[name].__file__)) if is_own_module(name) else None
    above, _, _ = name.rpartition(".")
    if not above:
        return _found(name, None)
    holder = _file(above)
    return _found(name, [str(holder.parent)]) if holder is not None else None


def _found(name: str, where: list[str] | None) -> Path | None:
    """Return where a module would be imported from, if it is the user's own."""
    spec = importlib.machinery.PathFinder.find_spec(name, where)
    origin = spec.origin if spec is not None else None
    return Path(str(origin)) if is_own(name, origin) else None


def _uses(name: str) -> set[str]:
    """Return the modules that what stands in a module comes from."""
    found = set()
    for value in list(vars(sys.modules.get(name, types)).values()):
        if isinstance(value, types.ModuleType):
            found.add(value.__name__)
        elif isinstance(value, (type, types.FunctionType)):
            found.add(str(value.__module__))
    return found
