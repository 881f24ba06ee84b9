"""Which attributes of libraries a step's source sets, such as ``pandas.DataFrame.shout``.

An attribute of a library's module or class stands in no variable. The source tells where
one is set; from then on it is kept and compared under its dotted name.
"""

from __future__ import annotations

import ast
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Namespace = dict[str, Any]
SETTERS = {"setattr", "delattr"}
AROUND = {
    "sys.path", "sys.stdout", "sys.stderr", "os.environ", "warnings.filters",
    "sys.modules", "matplotlib.pyplot.rcParams", "matplotlib.rcParams", "pylab.rcParams",
}  # fmt: skip
"""Looked after as ambient state."""


def set_attributes(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return the attributes that a source sets on what it names.

    Parameters
    ----------
    statements : iterable of ast.stmt
        A step's body.

    Returns
    -------
    frozenset of str
        Dotted, as the source names them; functions that it calls are not looked into.

    Examples
    --------
    >>> import ast
    >>> sorted(set_attributes(ast.parse("pd.DataFrame.x = 1; setattr(m, 'y', 2)").body))
    ['m.y', 'pd.DataFrame.x']
    """
    nodes = (node for statement in statements for node in ast.walk(statement))
    return frozenset(filter(None, map(_set_by, nodes)))


def overridden(chains: Iterable[str], namespace: Namespace) -> Iterator[str]:
    """Yield the attributes among some that belong to a library's module or class.

    Parameters
    ----------
    chains : iterable of str
        What `set_attributes` returned.
    namespace : dict
        The notebook's names, after the body.

    Yields
    ------
    str
        Module, class if it is one's, attribute.
    """
    for each in chains:
        path, _, attribute = each.rpartition(".")
        place = _dotted(_follow(path, namespace), namespace)
        if place and f"{place}.{attribute}" not in AROUND:
            yield f"{place}.{attribute}"


def _set_by(node: ast.AST) -> str:
    """Return the dotted attribute that a node sets; empty if none."""
    if isinstance(node, (ast.Attribute, ast.Subscript)) and _is_set(node):
        found = _chain(node if isinstance(node, ast.Attribute) else node.value)
        return found if "." in found else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _set_by_call(node.func.id, node.args)
    return ""


def _is_set(node: ast.Attribute | ast.Subscript) -> bool:
    """Tell whether an attribute, or an item of what may be one, is set or deleted."""
    return isinstance(node.ctx, (ast.Store, ast.Del))


def _set_by_call(function: str, arguments: list[ast.expr]) -> str:
    """Return the dotted attribute that a call such as ``setattr(m, "x", 1)`` sets."""
    given: list[ast.expr | None] = [*arguments, None, None]
    first, name, *_ = given
    holder = _chain(first) if function in SETTERS else ""
    if not holder or not isinstance(name, ast.Constant):
        return ""
    return f"{holder}.{name.value!s}"


def _chain(node: ast.expr | None) -> str:
    """Return names joined by dots; empty if there is anything else between them."""
    found = chain(node)
    return "" if found.startswith(".") else found


def chain(node: ast.expr | None) -> str:
    """Return attributes joined by dots, after the name that they begin with, if any.

    Parameters
    ----------
    node : ast.expr or None
        Such as ``a.b``, or ``f().b``.

    Returns
    -------
    str
        Begins with a dot where anything but a name stands before the attributes.
    """
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    first = node.id if isinstance(node, ast.Name) else ""
    return ".".join([first, *reversed(parts)])


def _follow(path: str, namespace: Namespace) -> Any:
    """Return the module or class that a dotted path leads to, or None."""
    first, *rest = path.split(".")
    found = namespace.get(first)
    for part in rest:
        found = getattr(found, part, None) if _is_holder(found) else None
    return found


def _is_holder(value: object) -> bool:
    """Tell whether a value is a module or a class."""
    return isinstance(value, (types.ModuleType, type))


def _dotted(holder: Any, namespace: Namespace) -> str:
    """Return where a module or class is found again; empty if it is the notebook's."""
    if isinstance(holder, types.ModuleType):
        return holder.__name__
    if not isinstance(holder, type) or holder.__module__ == namespace.get("__name__"):
        return ""
    return f"{holder.__module__}.{holder.__qualname__}"


def accessors(namespace: Namespace) -> Iterator[str]:
    """Yield the accessors that the notebook registered with pandas.

    Parameters
    ----------
    namespace : dict
        The notebook's names.

    Yields
    ------
    str
        Module, class, attribute.
    """
    pandas = sys.modules.get("pandas")
    for kind in (
        () if pandas is None else (pandas.DataFrame, pandas.Series, pandas.Index)
    ):
        for name in sorted(kind._accessors):
            made = getattr(vars(kind).get(name), "_accessor", None)
            if getattr(made, "__module__", None) == namespace.get(
                "__name__", "__main__"
            ):
                yield f"{_dotted(kind, namespace)}.{name}"
