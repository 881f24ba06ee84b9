"""A cell as the rules see it, and what the names in it stand for."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nbckpt.errors import BadStep
from nbckpt.plan import Step, read_step, step_line
from nbckpt.source.reads import TIMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class CellPage:
    """One code cell, parsed."""

    number: int
    step: Step | None
    body: list[ast.stmt]
    """Line numbers are those of the cell."""
    lines: list[str]
    wrong: BadStep | None = None
    """Why its step line can't be read."""
    is_python: bool = True

    @property
    def name(self) -> str:
        """The step's name; empty in a plain cell."""
        return self.step.name if self.step else ""


def read_cell_page(
    number: int, source: str, parse: Callable[[str], list[ast.stmt]]
) -> CellPage:
    """Return a cell as the rules see it.

    Parameters
    ----------
    number : int
        Its number among the code cells.
    source : str
        Its text.
    parse : callable
        Turns the text of a cell into statements.

    Returns
    -------
    CellPage
        A plain cell without statements if it is no Python.
    """
    line = step_line(source)
    body = source if line is None else source.partition("\n")[2]
    lines = source.split("\n")
    try:
        statements = parse(body)
    except SyntaxError:
        return CellPage(number, None, [], lines, is_python=False)
    # IPython drops the blank lines on top.
    above = 0 if line is None else 1
    above += len(body) - len(body.lstrip("\n")) if statements else 0
    for statement in statements:
        ast.increment_lineno(statement, above)
    found = list(_expanded(statements))
    if line is None:
        return CellPage(number, None, found, lines)
    try:
        return CellPage(number, read_step(line), found, lines)
    except BadStep as error:
        return CellPage(number, None, found, lines, error)


def _expanded(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements; code that a timing magic holds as text in its place."""
    for statement in statements:
        inner = _timed(statement)
        yield from [statement] if inner is None else inner


def _timed(statement: ast.stmt) -> list[ast.stmt] | None:
    """Return the code in a ``%time`` or ``%%time``; None if it is none."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="run_line_magic" | "run_cell_magic"),
                args=[ast.Constant(value=magic), *_, ast.Constant(value=str(text))],
            )
        ) if magic in TIMED:
            pass
        case _:
            return None
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return None
    for inner in body:
        ast.increment_lineno(inner, statement.lineno - (text.count("\n") == 0))
    return body


@dataclass(slots=True)
class Names:
    """What names stand for, as imports and assignments tell.

    A dotted text such as ``requests.Session().post``; what is not known begins with a
    question mark.
    """

    made: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Name → the text that it was given."""

    def take(self, statements: list[ast.stmt]) -> None:
        """Take what statements import and assign."""
        for statement in statements:
            for node in ast.walk(statement):
                self._take(node)

    def _take(self, node: ast.AST) -> None:
        """Take one node."""
        match node:
            case ast.Import(names=found):
                self.made.update(map(_imported, found))
            case ast.ImportFrom(module=str(module), names=found, level=0):
                pairs = ((a.asname or a.name, f"{module}.{a.name}") for a in found)
                self.made.update(pairs)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(name, value)
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
                self._assign(name, value)
            case _:
                pass

    def _assign(self, name: str, value: ast.expr) -> None:
        """Take an assignment."""
        self.texts.pop(name, None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            self.texts[name] = value.value
        dotted = self.dotted(value)
        self.made[name] = UNKNOWN + name if dotted.startswith(UNKNOWN) else dotted
        if dotted.startswith(UNKNOWN) and dotted.endswith("()"):
            self.made[name] = dotted  # an instance of a class of the notebook

    def dotted(self, node: ast.AST) -> str:
        """Return what an expression stands for.

        Parameters
        ----------
        node : ast.AST
            A name, attribute or call; anything else is not known.

        Returns
        -------
        str
            Such as ``requests.post``; ``?df.to_csv`` if the root is not known.
        """
        match node:
            case ast.Name(id=name):
                known = name if hasattr(builtins, name) else UNKNOWN + name
                return self.made.get(name, known)
            case ast.Attribute(value=value, attr=attr):
                return f"{self.dotted(value)}.{attr}"
            case ast.Call(func=func):
                return f"{self.dotted(func)}()"
            case ast.Await(value=value):
                return self.dotted(value)
            case _:
                return UNKNOWN


def _imported(alias: ast.alias) -> tuple[str, str]:
    """Return the name that an import binds, and the module that it stands for."""
    root = alias.name.partition(".")[0]
    return (alias.asname, alias.name) if alias.asname else (root, root)


def text_of(node: ast.AST, names: Names) -> str | None:
    """Return the text that an expression is or begins with; None if it is not known.

    Parameters
    ----------
    node : ast.AST
        An expression.
    names : Names
        What names stand for.

    Returns
    -------
    str or None
        Of an f-string its first written part.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.texts.get(name)
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
        case ast.BinOp(left=left, op=ast.Add()):
            return text_of(left, names)
        case ast.Call(args=[inner, *_]):
            return text_of(inner, names)
        case _:
            return None
