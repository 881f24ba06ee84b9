"""How the modules of a package import each other as they load."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.style.source import Import, Source


def import_cycle(sources: Iterable[Source]) -> list[str]:
    """Name the modules of one import cycle, in order.

    Parameters
    ----------
    sources : Iterable[Source]
        The modules of one package.

    Returns
    -------
    list of str
        The cycle, its first module again at the end; empty if there is none.
    """
    known = {source.dotted: source for source in sources}
    graph = {
        name: {target for each in source.imports for target in _load(each, name, known)}
        for name, source in known.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle
    return []


def late_imports(sources: Iterable[Source]) -> list[str]:
    """Name the imports of the package's own modules that stand inside functions.

    Parameters
    ----------
    sources : Iterable[Source]
        The modules of one package.

    Returns
    -------
    list of str
        One ``importer -> imported`` each.
    """
    known = {source.dotted: source for source in sources}
    return [
        f"{name} -> {target}"
        for name, source in known.items()
        for each in source.imports
        if each.is_late
        for target in _targets(each, name, known)
    ]


def _load(each: Import, importer: str, known: Mapping[str, Source]) -> set[str]:
    """Return the modules that an import needs while its module loads."""
    return set() if each.is_late else _targets(each, importer, known)


def _targets(each: Import, importer: str, known: Mapping[str, Source]) -> set[str]:
    """Return the module of the same package that an import names, if any."""
    base = _package(importer, each.level, known)
    dotted = ".".join(part for part in (base, each.module) if part)
    for candidate in (f"{dotted}.{each.name}", dotted):
        if candidate in known:
            return {candidate} - {importer}
    return set()


def _package(importer: str, level: int, known: Mapping[str, Source]) -> str:
    """Return the package that `level` leading dots mean in a module."""
    if level == 0:
        return ""
    is_package = any(name.startswith(f"{importer}.") for name in known)
    up = level - 1 if is_package else level
    parts = importer.split(".")
    return ".".join(parts[: len(parts) - up])
