"""Where in code an effect stands that nothing guards, notebook functions included."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from nbckpt.lint.calls import Effect, effect_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.lint.notebook import Names

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
GUARDS = {"nbckpt.effect", "nbckpt.relay"}
LOOKS = {"exists", "is_file", "is_dir", "lexists"}


class Functions:
    """The functions of a notebook, for when they are called.

    Parameters
    ----------
    names : Names
        What names stand for.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[str, Function] = {}
        self._open: set[str] = set()

    def take(self, statements: Iterable[ast.stmt]) -> None:
        """Take the functions and methods that statements define."""
        for statement in statements:
            match statement:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self._known[f"?{name}"] = statement
                case ast.ClassDef(name=name, body=body):
                    for inner in body:
                        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                            self._known[f"?{name}().{inner.name}"] = inner
                case _:
                    pass

    def effects(self, dotted: str) -> list[Effect]:
        """Return the effects inside a function; none if it is not the notebook's.

        Parameters
        ----------
        dotted : str
            What stands where it is used.
        """
        function = self._known.get(dotted)
        if function is None or dotted in self._open:
            return []
        self._open.add(dotted)
        try:
            return unguarded(function.body, self._names, self)
        finally:
            self._open.discard(dotted)


def unguarded(
    statements: Iterable[ast.stmt], names: Names, functions: Functions
) -> list[Effect]:
    """Return the effects in code that no call of nbckpt makes repeatable.

    Parameters
    ----------
    statements : iterable of ast.stmt
        The code.
    names : Names
        What names stand for.
    functions : Functions
        Those of the notebook.

    Returns
    -------
    list of Effect
        One inside a function stands where the function is used.
    """
    finder = _Finder(names, functions)
    for statement in statements:
        finder.visit(statement)
    return finder.found


class _Finder(ast.NodeVisitor):
    """Collects the effects of code, in order."""

    def __init__(self, names: Names, functions: Functions) -> None:
        self.found: list[Effect] = []
        self._names = names
        self._functions = functions
        self._transactions = 0

    def visit_Call(self, node: ast.Call) -> None:
        """Take a call; what nbckpt performs is guarded."""
        if self._names.dotted(node.func) in GUARDS:
            return
        effect = effect_of(node, self._names)
        if effect is not None:
            self._add(effect)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Take a use of a notebook function."""
        if isinstance(node.ctx, ast.Load):
            self._use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Take a use of a method of a notebook class."""
        self._use(node)
        self.generic_visit(node)

    def _use(self, node: ast.Name | ast.Attribute) -> None:
        """Take the effects inside what is used."""
        inside = self._functions.effects(self._names.dotted(node))
        if inside:
            called = ast.unparse(node)
            self._add(Effect(inside[0].kind, node, f"{called}(), by {inside[0].what}"))

    def _add(self, effect: Effect) -> None:
        """Add an effect unless a transaction holds it."""
        if not (self._transactions and effect.kind == "database"):
            self.found.append(effect)

    def visit_If(self, node: ast.If) -> None:
        """Take a choice; one that looks whether it is done guards what it holds."""
        if not any(map(_looks, ast.walk(node.test))):
            self.generic_visit(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        """Take a with; a transaction holds the database writes inside it."""
        held = any(self._is_transaction(item.context_expr) for item in node.items)
        for item in node.items:
            self.visit(item.context_expr)
        self._transactions += held
        for statement in node.body:
            self.visit(statement)
        self._transactions -= held

    visit_AsyncWith = visit_With

    def _is_transaction(self, node: ast.expr) -> bool:
        """Tell whether an expression begins a transaction of ours."""
        return self._names.dotted(node) == "nbckpt.transaction()"

    def visit_FunctionDef(self, node: Function) -> None:
        """Take a definition: its effects happen where it is used."""
        self._functions.take([node])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Take a class: the effects of its methods happen where they are used."""
        self._functions.take([node])


def _looks(node: ast.AST) -> bool:
    """Tell whether a node asks if a file is there."""
    return isinstance(node, ast.Attribute) and node.attr in LOOKS
