"""Calls by which a step sets what ends with its kernel, and stands in no variable.

A handler of a signal, a callback at exit, an adapter of a database module: no record
holds them, and a step that was skipped would leave them out without a word.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import attribute_of
from nbckpt.source.overrides import chain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Namespace = dict[str, Any]
FUNCTIONS = {
    "signal.signal", "atexit.register", "copyreg.pickle", "mimetypes.add_type",
    "_codecs.register", "faulthandler.enable", "sys.settrace", "sys.setprofile",
    "_sqlite3.register_adapter", "_sqlite3.register_converter",
    "sqlite3.register_adapter", "sqlite3.register_converter",
    "shutil.register_archive_format", "shutil.register_unpack_format",
    "logging.basicConfig", "logging.config.dictConfig", "logging.config.fileConfig",
    "tqdm.std.tqdm.pandas", "nest_asyncio.apply",
    "IPython.core.magic._function_magic_marker.<locals>.magic_deco",
}  # fmt: skip
"""By the module and name that the function itself gives."""
METHODS = {
    "addHandler", "for_type", "for_type_by_name", "register_magic_function",
    "register_magics", "set_custom_exc", "set_hook", "events.register",
}  # fmt: skip
"""Of loggers and of the shell, whatever the variable is called."""

RESULT = re.compile(r"Out\[(\d+)\]")


def calls(statements: Iterable[ast.stmt]) -> frozenset[str]:
    """Return what a source calls, or decorates with.

    Parameters
    ----------
    statements : iterable of ast.stmt
        A step's body.

    Returns
    -------
    frozenset of str
        Dotted, as the source names it; what comes before the first name is left out.

    Examples
    --------
    >>> sorted(calls(ast.parse("a.b(); get().c.d(1)").body))
    ['.c.d', 'a.b', 'get']
    """
    nodes = (node for statement in statements for node in ast.walk(statement))
    return frozenset(filter(None, (chain(f) for node in nodes for f in _called(node))))


def lasting(chains: Iterable[str], namespace: Namespace) -> str:
    """Return why a step that makes some calls can't be skipped; empty if it can.

    Parameters
    ----------
    chains : iterable of str
        What `calls` returned.
    namespace : dict
        The notebook's names, after the body.

    Returns
    -------
    str
        The call, and the reason.
    """
    for call in sorted(chains):
        one, two = call.rpartition(".")[2], ".".join(call.split(".")[-2:])
        is_method = "." in call and METHODS & {one, two}
        if is_method or _name_of(call, namespace) in FUNCTIONS:
            return f"{call.lstrip('.')}(): what it sets ends with the kernel"
    return ""


def results(statements: Iterable[ast.stmt]) -> set[str]:
    """Return the names under which the shell keeps results that a source takes by number.

    Parameters
    ----------
    statements : iterable of ast.stmt
        A step's body.

    Returns
    -------
    set of str
        ``_2`` for ``Out[2]``.
    """
    nodes = (node for statement in statements for node in ast.walk(statement))
    texts = {ast.unparse(node) for node in nodes if isinstance(node, ast.Subscript)}
    return {f"_{found[1]}" for text in texts if (found := RESULT.fullmatch(text))}


def _called(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a node calls."""
    if isinstance(node, ast.Call):
        yield node.func
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield from node.decorator_list


def _name_of(call: str, namespace: Namespace) -> str:
    """Return the name that a function gives itself."""
    first, *rest = call.split(".")
    found = namespace.get(first)
    for part in rest:
        found = attribute_of(found, part)
    return f"{attribute_of(found, '__module__')}.{attribute_of(found, '__qualname__')}"
