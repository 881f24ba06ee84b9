"""One Python source file, measured: lines, functions, documented names, imports.

Only `ast` and `tokenize` are used; nothing that is measured is imported or run.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOOL_COMMENT = re.compile(
    r"#\s*(noqa|type:|pragma|pylint|fmt:|pyright|mypy|ruff|nosec|!)"
)
BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.match_case,
)
NO_CODE = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Definition: TypeAlias = FunctionNode | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Function:
    """One function or method; its length includes decorators and docstring."""

    name: str
    lines: int
    cyclomatic: int
    parameters: int
    """How many, without the `self` or `cls` of a method."""
    is_annotated: bool
    """Each parameter and the result has a type."""


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: ``from ..module import name`` has level 2."""

    level: int
    module: str
    name: str
    is_late: bool
    """Inside a function; what stands under ``TYPE_CHECKING`` is left out."""


@dataclass(frozen=True, slots=True)
class Source:
    """One source file, as measured."""

    dotted: str
    """The name that it is imported by."""
    lines: int
    code_lines: int
    """Lines with a token that is neither a comment nor part of a docstring."""
    tool_comments: int
    """Comments that speak to a tool, such as ``noqa``."""
    functions: tuple[Function, ...]
    undocumented: tuple[str, ...]
    """The public names without a docstring."""
    imports: tuple[Import, ...]


def read_source(root: Path, path: Path) -> Source:
    """Measure one file.

    Parameters
    ----------
    root : Path
        The folder that imports start from.
    path : Path
        The file, below `root`.

    Returns
    -------
    Source
        The file's figures.

    Raises
    ------
    SyntaxError
        If this Python can't parse the file.
    """
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, filename=str(path))
    code_lines, tool_comments = _count_lines(text, _docstring_lines(tree))
    return Source(
        dotted=_dotted(path.relative_to(root)),
        lines=len(text.splitlines()),
        code_lines=code_lines,
        tool_comments=tool_comments,
        functions=tuple(_functions(tree, in_class=False)),
        undocumented=tuple(_undocumented(tree, prefix="")),
        imports=tuple(_imports(tree, is_late=False)),
    )


def count_code(path: Path) -> int:
    """Count the lines of code of a file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    int
        As `Source` has them, at a fraction of the cost.

    Raises
    ------
    SyntaxError
        If this Python can't parse the file.
    """
    text = path.read_text(encoding="utf-8")
    return _count_lines(text, _docstring_lines(ast.parse(text, str(path))))[0]


def _dotted(relative: Path) -> str:
    """Return the dotted name of a file; a package stands for its `__init__`."""
    parts = relative.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _docstring(node: ast.AST) -> ast.Expr | None:
    """Return the statement that is the node's docstring, if it has one."""
    if isinstance(node, ast.Module | Definition):
        match node.body:
            case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
                return first
            case _:
                pass
    return None


def _docstring_lines(node: ast.AST) -> set[int]:
    """Return the numbers of the lines that docstrings take."""
    found = _docstring(node)
    own = range(found.lineno, _last_line(found) + 1) if found else ()
    return set(own).union(*map(_docstring_lines, _statements(node)))


def _last_line(node: ast.stmt) -> int:
    """Return the number of the last line of a statement."""
    return node.end_lineno or node.lineno


def _count_lines(text: str, docstrings: set[int]) -> tuple[int, int]:
    """Count the lines of code and the comments for tools."""
    code: set[int] = set()
    tool_comments = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            tool_comments += TOOL_COMMENT.match(token.string) is not None
        elif token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings), tool_comments


def _functions(node: ast.AST, *, in_class: bool) -> Iterator[Function]:
    """Yield every function under a node, nested ones too."""
    for child in _statements(node):
        if isinstance(child, FunctionNode):
            yield _measure(child, in_class=in_class)
            yield from _functions(child, in_class=False)
        else:
            is_class = isinstance(child, ast.ClassDef)
            yield from _functions(child, in_class=is_class or in_class)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that can hold a definition or an import."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child


def _measure(node: FunctionNode, *, in_class: bool) -> Function:
    """Measure one function."""
    is_static = any(
        isinstance(mark, ast.Name) and mark.id == "staticmethod"
        for mark in node.decorator_list
    )
    every = node.args
    named = [*every.posonlyargs, *every.args, *every.kwonlyargs]
    own = named[1:] if in_class and not is_static else named
    rest = [argument for argument in (every.vararg, every.kwarg) if argument]
    start = min([mark.lineno for mark in node.decorator_list], default=node.lineno)
    return Function(
        name=node.name,
        lines=_last_line(node) - start + 1,
        cyclomatic=1 + sum(_paths(inner) for inner in _own_nodes(node)),
        parameters=len(own),
        is_annotated=node.returns is not None
        and all(argument.annotation for argument in [*own, *rest]),
    )


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a function without entering the functions inside it."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, FunctionNode):
            yield from _own_nodes(child)


def _paths(node: ast.AST) -> int:
    """Count the paths that a node adds to its function."""
    match node:
        case ast.BoolOp(values=values):
            return len(values) - 1
        case ast.comprehension(ifs=conditions):
            return len(conditions)
        case _:
            return int(isinstance(node, BRANCHES))


def _undocumented(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
    """Yield the public names of a module or class that have no docstring."""
    if _docstring(node) is None:
        yield prefix.rstrip(".") or "the module"
    for child in _definitions(node):
        name = f"{prefix}{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _undocumented(child, f"{name}.")
        elif _docstring(child) is None:
            yield name


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """Yield the public definitions of a body, those under an `if` or `try` too."""
    for child in _statements(node):
        if isinstance(child, Definition):
            if not child.name.startswith("_"):
                yield child
        else:
            yield from _definitions(child)


def _imports(node: ast.AST, *, is_late: bool) -> Iterator[Import]:
    """Yield what a node imports, but for types that only a checker reads."""
    for child in _statements(node):
        match child:
            case ast.Import(names=names):
                yield from (Import(0, each.name, "", is_late) for each in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                for each in names:
                    yield Import(level, module or "", each.name, is_late)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case _:
                inside = is_late or isinstance(child, FunctionNode)
                yield from _imports(child, is_late=inside)
