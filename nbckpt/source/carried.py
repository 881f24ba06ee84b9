"""Names that a loop over items changes from one item to the next, told from its source."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from nbckpt.source.reads import read_body

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGING = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "partial_fit",
    "pop", "popitem", "push", "put", "remove", "reverse", "setdefault", "sort", "step",
    "update", "backward", "fit",
}  # fmt: skip
"""Methods that change what they are called on, where nothing is done with their result."""
Loop: TypeAlias = ast.For | ast.AsyncFor
LOOPS = (ast.For, ast.AsyncFor)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
GATHERING = (ast.ListComp, ast.SetComp, ast.DictComp)
Position = tuple[int, int, int, int]
"""First line, last line, first column, last column, as code objects have it."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What goes from one item of a loop to the next."""

    names: frozenset[str] = frozenset()
    is_local: bool = False
    """The names are those of a function."""
    is_gathered: bool = False
    """An expression, such as ``[f(x) for x in …]``, gathers what comes of the items."""


def carried_at(tree: ast.AST, position: Position) -> Carried:
    """Return what the loop over a call's result carries from one item to the next.

    Parameters
    ----------
    tree : ast.AST
        The source that the call stands in.
    position : tuple of int
        The call, such as ``items(…)``.

    Returns
    -------
    Carried
        Without what each item binds before it reads it. What functions change that the
        loop calls can't be seen, nor a loop in another function than the call.

    Examples
    --------
    >>> tree = ast.parse("for x in items(xs):\\n y = x + 1\\n total += y")
    >>> sorted(carried_at(tree, (1, 1, 9, 18)).names)
    ['total']
    """
    path = _path(tree, position)
    scope = next((n for n in reversed(path) if isinstance(n, FUNCTIONS)), tree)
    loops, is_gathered = _loops(path, scope)
    names = frozenset(name for loop in loops for name in changed(loop))
    is_gathered |= any(_yields(loop) for loop in loops)
    return Carried(names, scope is not tree, is_gathered)


def _path(node: ast.AST, position: Position) -> list[ast.AST]:
    """Return the nodes around a position, from the outermost to the one that fits it."""
    for child in ast.iter_child_nodes(node):
        place = _position(child)
        if place == position and isinstance(child, ast.Call):
            return [child]
        if place is None or _holds(place, position):
            found = _path(child, position)
            if found:
                return [child, *found]
    return []


def _position(node: ast.AST) -> Position | None:
    """Return where a node stands; None if it has no place of its own."""
    if not isinstance(node, ast.expr | ast.stmt):
        return None
    last, end = node.end_lineno, node.end_col_offset
    return node.lineno, last or node.lineno, node.col_offset, end or node.col_offset


def _holds(outer: Position, inner: Position) -> bool:
    """Tell whether one stretch of source holds another."""
    begins = (outer[0], outer[2]) <= (inner[0], inner[2])
    return begins and (inner[1], inner[3]) <= (outer[1], outer[3])


def _loops(path: list[ast.AST], scope: ast.AST) -> tuple[list[Loop], bool]:
    """Return the loops over the call at the end of a path; whether it is gathered."""
    for node in reversed(path[:-1]):
        if isinstance(node, LOOPS):
            return [node], False
        if isinstance(node, GATHERING):
            return [], True
        if isinstance(node, ast.stmt):
            named = _loops_over(node, scope)
            return named, not named and path[-2] is not node
    return [], False


def _loops_over(statement: ast.stmt, scope: ast.AST) -> list[Loop]:
    """Return the loops of a scope over a name that a statement gives to a result."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    loops = [node for node in ast.walk(scope) if isinstance(node, LOOPS)]
    return [loop for loop in loops if names & _names(loop.iter)]


def _names(node: ast.AST) -> set[str]:
    """Return the names in an expression."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _yields(loop: Loop) -> bool:
    """Tell whether a loop hands on what comes of its items."""
    return any(isinstance(n, ast.Yield | ast.YieldFrom) for n in ast.walk(loop))


def changed(loop: Loop) -> set[str]:
    """Return the names that one loop changes from one item to the next.

    Parameters
    ----------
    loop : ast.For or ast.AsyncFor
        Over whatever it is.

    Returns
    -------
    set of str
        Without what each item binds before it reads it.
    """
    targets = _names(loop.target)
    flow = read_body(loop.body)
    # What an item reads before it binds it comes from the item before.
    bound = flow.assigned & flow.names
    mutated = {name for node in loop.body for name in _mutated(node)}
    own = flow.bound - flow.names
    return (bound | mutated) - own - targets


def _mutated(statement: ast.stmt) -> Iterator[str]:
    """Yield the names whose objects a statement changes in place."""
    for node in ast.walk(statement):
        match node:
            case ast.Expr(ast.Call(ast.Attribute(value, attr=name))) if (
                name in CHANGING
            ):
                yield from _root(value)
            case (
                ast.Subscript(ctx=ast.Store() | ast.Del())
                | ast.Attribute(ctx=ast.Store() | ast.Del())
            ):
                yield from _root(node.value)
            case _:
                pass


def _root(node: ast.expr) -> Iterator[str]:
    """Yield the name that an expression such as ``a.b[0]`` begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
