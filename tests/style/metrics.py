"""Figures of a package's style; ``python -m tests.style.metrics`` prints them."""

from __future__ import annotations

import ast
import dataclasses
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.style.graph import import_cycle, late_imports
from tests.style.source import count_code, read_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.style.source import Source

ROOT = Path(__file__).parents[2]
TESTS = "tests"


@dataclass(frozen=True, slots=True)
class Spread:
    """How some sizes are spread, and what the largest one is."""

    median: float
    p90: int
    maximum: int
    largest: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The style of one package, in figures."""

    modules: int
    code_lines: int
    module_lines: Spread
    function_lines: Spread
    cyclomatic: Spread
    parameters: Spread
    undocumented: tuple[str, ...]
    unannotated: tuple[str, ...]
    exported: tuple[str, ...]
    cycle: tuple[str, ...]
    late_imports: tuple[str, ...]
    tool_comments_per_1000: float
    test_code_per_code: float


def measure(root: Path, package: str) -> Figures:
    """Measure one package of a repository.

    Parameters
    ----------
    root : Path
        The repository; its tests stand in ``tests``.
    package : str
        The name of the package's folder.

    Returns
    -------
    Figures
        The package's figures.

    Raises
    ------
    SyntaxError
        If this Python can't parse a file.
    """
    sources = [read_source(root, one) for one in sorted((root / package).rglob("*.py"))]
    functions = [
        (f"{source.dotted}.{function.name}", function)
        for source in sources
        for function in source.functions
    ]
    code = sum(source.code_lines for source in sources)
    tests = sum(map(count_code, (root / TESTS).rglob("*.py")))
    tool_comments = sum(source.tool_comments for source in sources)
    return Figures(
        modules=len(sources),
        code_lines=code,
        module_lines=_spread([(each.dotted, each.lines) for each in sources]),
        function_lines=_spread([(name, each.lines) for name, each in functions]),
        cyclomatic=_spread([(name, each.cyclomatic) for name, each in functions]),
        parameters=_spread([(name, each.parameters) for name, each in functions]),
        undocumented=_undocumented(sources),
        unannotated=tuple(n for n, each in functions if not each.is_annotated),
        exported=exported_names(root / package / "__init__.py"),
        cycle=tuple(import_cycle(sources)),
        late_imports=tuple(late_imports(sources)),
        tool_comments_per_1000=round(1000 * tool_comments / code, 1),
        test_code_per_code=round(tests / code, 2),
    )


def exported_names(init: Path) -> tuple[str, ...]:
    """Read the names that a package lists in ``__all__``.

    Parameters
    ----------
    init : Path
        The package's ``__init__.py``.

    Returns
    -------
    tuple of str
        The names in order; empty if there is no literal ``__all__``.
    """
    for node in ast.parse(init.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return tuple(ast.literal_eval(value))
            case _:
                continue
    return ()


def _undocumented(sources: Iterable[Source]) -> tuple[str, ...]:
    """Name what has no docstring, with the module in front."""
    return tuple(
        f"{source.dotted}: {name}" for source in sources for name in source.undocumented
    )


def _spread(sizes: Sequence[tuple[str, int]]) -> Spread:
    """Describe how named sizes are spread."""
    ordered = sorted(size for _, size in sizes)
    largest, maximum = max(sizes, key=lambda pair: pair[1])
    return Spread(
        median=statistics.median(ordered),
        p90=ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))],
        maximum=maximum,
        largest=largest,
    )


if __name__ == "__main__":
    json.dump(dataclasses.asdict(measure(ROOT, "nbckpt")), sys.stdout, indent=1)
