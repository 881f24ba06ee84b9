"""Names that a loop over items changes from one item to the next, told from its source."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from nbckpt.source.reads import read_body

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGING = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "partial_fit",
    "pop", "popitem", "push", "put", "remove", "reverse", "setdefault", "sort", "step",
    "update", "backward", "fit",
}  # fmt: skip
"""Methods that change what they are called on, where nothing is done with their result."""


def carried(body: list[ast.stmt]) -> frozenset[str]:
    """Return the names that loops over ``items`` change from one item to the next.

    Parameters
    ----------
    body : list of ast.stmt
        A step's statements.

    Returns
    -------
    frozenset of str
        Without what each item binds before it reads it. What functions change that the
        loop calls can't be seen.

    Examples
    --------
    >>> sorted(carried(ast.parse("for x in items(xs):\\n y = x + 1\\n total += y").body))
    ['total']
    """
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (ast.For, ast.AsyncFor)) and _is_over_items(node.iter):
                found |= changed(node)
    return frozenset(found)


def _is_over_items(iterated: ast.expr) -> bool:
    """Tell whether a loop is over ``items(iterable, …)``; a mapping's takes nothing."""
    if not isinstance(iterated, ast.Call):
        return False
    name = getattr(iterated.func, "attr", getattr(iterated.func, "id", ""))
    return name == "items" and bool(iterated.args)


def changed(loop: ast.For | ast.AsyncFor) -> set[str]:
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
    targets = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
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
