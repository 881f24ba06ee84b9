"""Names that are read above the cell that makes them; steps that do nothing."""

from __future__ import annotations

import ast
import builtins
import dis
import types
from typing import TYPE_CHECKING

from nbckpt.source.reads import compile_body, read_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.lint.notebook import CellPage
    from nbckpt.plan import Step

OPENING = {"run", "pylab", "store", "load_ext", "loadpy", "load", "sql", "autocall"}
"""Magics that may make names."""
HARMLESS = {"print", "display", "len", "range", "repr", "str", "format"}


def made(body: list[ast.stmt]) -> set[str]:
    """Return the names that code may make in the notebook.

    Parameters
    ----------
    body : list of ast.stmt
        The code.
    """
    try:
        return _stored(compile_body(body))
    except (SyntaxError, ValueError):
        return set()


def _stored(code: types.CodeType) -> set[str]:
    """Return the global names that code stores, functions inside it included."""
    found = {
        str(step.argval)
        for step in dis.get_instructions(code)
        if step.opname == "STORE_GLOBAL"
        or (step.opname == "STORE_NAME" and code.co_name == "<module>")
    }
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found.union(*map(_stored, inner))


def is_open(body: list[ast.stmt]) -> bool:
    """Tell whether code may make names that its source does not show.

    Parameters
    ----------
    body : list of ast.stmt
        The code.
    """
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                return True
    reads = read_body(body)
    return bool({"exec", "globals"} & reads.names) or any(
        name in OPENING - {"load_ext"} for name, _ in reads.magics
    )


def early(pages: list[CellPage]) -> Iterator[tuple[CellPage, str, int, CellPage]]:
    """Yield the names that are read before any cell makes them.

    Parameters
    ----------
    pages : list of CellPage
        The notebook.

    Yields
    ------
    tuple
        Cell, name, line of the read, and the cell further down that makes the name.
    """
    known: set[str] = set(dir(builtins))
    makes = [made(page.body) for page in pages]
    for place, page in enumerate(pages):
        if is_open(page.body):
            return
        for name in sorted(read_body(page.body).names - known):
            later = _maker(name, pages, makes, place)
            if later is not None and not name.startswith("_"):
                yield page, name, _line(page, name), later
        known |= makes[place]


def _maker(
    name: str, pages: list[CellPage], makes: list[set[str]], place: int
) -> CellPage | None:
    """Return the first cell below that makes a name."""
    below = zip(pages[place + 1 :], makes[place + 1 :], strict=True)
    return next((page for page, names in below if name in names), None)


def _line(page: CellPage, name: str) -> int:
    """Return where a cell reads a name."""
    lines = [
        node.lineno
        for statement in page.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id == name
    ]
    return min(lines, default=1)


def is_decoration(page: CellPage) -> bool:
    """Tell whether a step reads nothing and changes nothing.

    Parameters
    ----------
    page : CellPage
        A step.

    Notes
    -----
    Only texts and a few harmless builtins: any name, import or magic may matter.
    """
    if not page.is_python or page.step is None or _means_something(page.step):
        return False
    reads = read_body(page.body)
    makes = reads.assigned | reads.bound | reads.modules
    return not makes and _is_harmless(page.body, reads.names)


def _is_harmless(body: list[ast.stmt], names: set[str]) -> bool:
    """Tell whether code only says something."""
    return names <= HARMLESS and not any(map(_calls, body))


def _means_something(step: Step) -> bool:
    """Tell whether the options of a step say that it does something."""
    said = (step.checks, step.reads, step.writes, step.env, step.note, step.effects)
    return step.always or any(said)


def _calls(statement: ast.stmt) -> bool:
    """Tell whether a statement calls more than harmless builtins; magics are calls."""
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return not all(isinstance(f, ast.Name) and f.id in HARMLESS for f in calls)
