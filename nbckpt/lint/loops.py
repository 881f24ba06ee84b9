"""Loops: names carried from item to item, retries by hand, errors that vanish."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.lint.notebook import Names


def items_call(loop: ast.For | ast.AsyncFor, names: Names) -> ast.Call | None:
    """Return the ``nbckpt.items`` call that a loop goes over, if it does.

    Parameters
    ----------
    loop : ast.For or ast.AsyncFor
        The loop; the call may be wrapped, as in ``enumerate(nbckpt.items(…))``.
    names : Names
        What names stand for.
    """
    for node in ast.walk(loop.iter):
        if isinstance(node, ast.Call) and names.dotted(node.func) == "nbckpt.items":
            return node
    return None


def is_shown(name: str, names: Names) -> bool:
    """Tell whether a name is a progress bar, which needs no keeping.

    Parameters
    ----------
    name : str
        The name.
    names : Names
        What names stand for.
    """
    return "tqdm" in names.made.get(name, "") or "progress" in name.lower()


def kept(call: ast.Call) -> set[str] | None:
    """Return the names that an ``items`` call keeps; None if they are not written out."""
    found = [k.value for k in call.keywords if k.arg == "keep"]
    if any(k.arg is None for k in call.keywords):
        return None
    try:
        value = ast.literal_eval(found[0]) if found else ()
    except ValueError:
        return None
    return {value} if isinstance(value, str) else set(value)


def retries(
    statements: list[ast.stmt],
) -> Iterator[tuple[ast.For | ast.While, ast.Try]]:
    """Yield the loops that try something until it works.

    Parameters
    ----------
    statements : list of ast.stmt
        The code.

    Yields
    ------
    tuple of loop and ast.Try
        The way out stands after or in the ``try``; the handler goes round again.
    """
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.While) or _counts(node):
                for inner in node.body:  # type: ignore[attr-defined]
                    if isinstance(inner, ast.Try) and _leaves(inner):
                        yield node, inner  # type: ignore[misc]


def _counts(node: ast.AST) -> bool:
    """Tell whether a loop counts attempts: ``for … in range(…)``."""
    match node:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))):
            return True
        case _:
            return False


def _leaves(tried: ast.Try) -> bool:
    """Tell whether success leaves the loop and some error does not."""
    out = [*tried.body, *tried.orelse]
    leaves = any(
        isinstance(n, ast.Break | ast.Return) for s in out for n in ast.walk(s)
    )
    stays = any(not _ends(handler) for handler in tried.handlers)
    return leaves and stays


def _ends(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler surely ends the loop at its own level."""
    return any(isinstance(s, ast.Raise | ast.Break | ast.Return) for s in handler.body)


def swallowing(
    statements: list[ast.stmt],
) -> Iterator[tuple[ast.Try, ast.ExceptHandler]]:
    """Yield the handlers that take any error and tell nobody.

    Parameters
    ----------
    statements : list of ast.stmt
        The code.

    Yields
    ------
    tuple of ast.Try and ast.ExceptHandler
        A bare one that does not raise, or ``except Exception`` that does nothing.
    """
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Try):
                yield from ((node, h) for h in node.handlers if _swallows(h))


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler hides any error."""
    raises = any(isinstance(n, ast.Raise) for s in handler.body for n in ast.walk(s))
    match handler.type:
        case None | ast.Name(id="BaseException"):
            return not raises
        case ast.Name(id="Exception"):
            return all(_does_nothing(statement) for statement in handler.body)
        case _:
            return False


def _does_nothing(statement: ast.stmt) -> bool:
    """Tell whether a statement is ``pass``, ``continue`` or ``...``."""
    is_text = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    )
    return is_text or isinstance(statement, ast.Pass | ast.Continue)
