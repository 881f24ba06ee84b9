"""Which names, files and variables a step's code reads, told from its source.

The analysis is by data flow on straight-line code: a name that the body surely binds
before it reads it is no input. Where the source can't tell (``eval``, ``globals``), every
name of the notebook counts as read.
"""

from __future__ import annotations

import ast
import dis
import inspect
import re
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nbckpt.codecs import global_names

if TYPE_CHECKING:
    from collections.abc import Iterable

DYNAMIC = {"eval", "exec", "globals", "locals", "vars", "dir"}
TEXTS = {"bash", "sh", "script", "writefile", "html", "javascript", "js", "markdown"}
TIMED = {"time", "timeit", "prun", "capture", "memit", "mprun", "lprun"}
ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHELL_NAMES = re.compile(r"\$\{?([A-Za-z_]\w*)|\{([^{}]*)\}")
QUERY_NAMES = re.compile(r"@([A-Za-z_]\w*)")
WORD = re.compile(r"[A-Za-z_]\w*")
SEEDING = re.compile(r"(.*_)?seeds?(_.*)?|set_?state|set_rng_state")
SEEDING_CALL = re.compile(rf"\b({SEEDING.pattern})\s*\(")
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


@dataclass(slots=True)
class Reads:
    """What a body reads."""

    names: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    """Names that it surely binds."""
    assigned: set[str] = field(default_factory=set)
    """Names that it binds somewhere, if only in a branch or a loop."""
    dynamic: bool = False
    """Whether it can read any name."""
    modules: set[str] = field(default_factory=set)
    """Modules that it imports."""
    magics: list[tuple[str, str]] = field(default_factory=list)
    """Line magics that it calls."""
    seeds: bool = False
    """Whether it sets the state of a random stream."""
    constants: set[str] = field(default_factory=set)
    """Its texts."""


def read_body(body: list[ast.stmt]) -> Reads:
    """Return what a step's body reads.

    Parameters
    ----------
    body : list of ast.stmt
        The statements, as IPython's own transformations left them.

    Returns
    -------
    Reads
        Names that are read before the body surely binds them, and more.

    Examples
    --------
    >>> import ast
    >>> sorted(read_body(ast.parse("y = x + 1; z = y").body).names)
    ['x']
    """
    flow = _Flow()
    for statement in body:
        flow.visit(statement)
    flow.found.bound = flow.bound
    return flow.found


def environment_names(code: types.CodeType) -> set[str]:
    """Return the environment variables that code names.

    Parameters
    ----------
    code : types.CodeType
        Compiled code; code inside it counts too.

    Returns
    -------
    set of str
        Texts in code that uses ``environ`` or ``getenv``.
    """
    found: set[str] = set()
    if {"environ", "getenv"} & set(code.co_names):
        texts = [c for c in code.co_consts if isinstance(c, str)]
        found |= {text for text in texts if ENVIRONMENT.fullmatch(text)}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= environment_names(constant)
    return found


def compile_body(body: list[ast.stmt]) -> types.CodeType:
    """Return the compiled form of a body, for analysis only.

    Parameters
    ----------
    body : list of ast.stmt
        The statements.

    Returns
    -------
    types.CodeType
        Never run.
    """
    module = ast.Module(body, [])
    code: types.CodeType = compile(
        module, "<step>", "exec", flags=FLAGS, dont_inherit=True
    )
    return code


class _Flow(ast.NodeVisitor):
    """Walks statements in the order in which they run."""

    def __init__(self) -> None:
        self.found = Reads()
        self.bound: set[str] = set()
        self._later: dict[str, set[str]] = {}

    def _read(self, names: Iterable[str]) -> None:
        """Note names that are read here."""
        for name in names:
            if name not in self.bound:
                self.found.names.add(name)
            if name in self._later:
                # A function's own reads count when it is first used.
                self._read(self._later.pop(name))

    def visit_Name(self, node: ast.Name) -> None:
        """Take a name."""
        if isinstance(node.ctx, ast.Load):
            self.found.dynamic |= node.id in DYNAMIC
            self._read([node.id])
        elif isinstance(node.ctx, ast.Store):
            self.bound.add(node.id)
            self.found.assigned.add(node.id)
        else:
            self.found.assigned.discard(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Take a text; a frame's query names variables by ``@``."""
        if isinstance(node.value, str):
            self.found.constants.add(node.value)
            self._read(QUERY_NAMES.findall(node.value))

    def visit_Call(self, node: ast.Call) -> None:
        """Take a call; IPython's own calls hold code as text."""
        if _is_shell_call(node):
            self._shell_call(node)
        elif _is_plain_eval(node):
            self._read(WORD.findall(str(node.args[0].value)))  # type: ignore[attr-defined]
        else:
            self.found.seeds |= seeds(node)
            self.generic_visit(node)

    def _shell_call(self, node: ast.Call) -> None:
        """Take a magic or a shell command."""
        method = node.func.attr  # type: ignore[attr-defined]
        texts = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        if method == "run_line_magic" and len(texts) > 1:
            self.found.magics.append((texts[0], texts[1]))
        magic = texts[0] if texts and method.endswith("magic") else ""
        if magic in TIMED:
            self._code(texts[-1])
            return
        for text in texts:
            self._read(_names_in(text, magic))

    def _code(self, text: str) -> None:
        """Take code that a magic holds as text."""
        try:
            body = ast.parse(text).body
        except SyntaxError:
            self._read(WORD.findall(text))
            return
        self._visit_all(body)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Take an assignment: value first."""
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign | ast.NamedExpr) -> None:
        """Take an annotated assignment, or one in an expression: value first."""
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    visit_NamedExpr = visit_AnnAssign

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Take ``x += y``, which reads x."""
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            # Not bound for sure: a list stays the same object, under all its names.
            self._read([node.target.id])
            self.found.assigned.add(node.target.id)
        else:
            self.visit(node.target)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """Take a loop, whose body may run not at all."""
        self.visit(node.iter)
        before = set(self.bound)
        self.visit(node.target)
        self._visit_all(node.body)
        self.bound = before
        self._visit_all(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        """Take a loop, whose body may run not at all."""
        self.visit(node.test)
        before = set(self.bound)
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
        self._visit_all(node.body)
        if not forever:
            self.bound = before
        self._visit_all(node.orelse)

    def visit_If(self, node: ast.If) -> None:
        """Take a choice: bound is what both branches bind."""
        self.visit(node.test)
        self._branches([node.body, node.orelse])

    def visit_Match(self, node: ast.Match) -> None:
        """Take a match: none of its cases may apply."""
        self.visit(node.subject)
        before = set(self.bound)
        for case in node.cases:
            self.visit(case)
            self.bound = set(before)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        """Take a try: a handler may run after any part of the body."""
        before = set(self.bound)
        self._visit_all([*node.body, *node.orelse])
        ends = [self.bound]
        for handler in node.handlers:
            self.bound = before | ({handler.name} if handler.name else set())
            if handler.type is not None:
                self.visit(handler.type)
            self._visit_all(handler.body)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)
        self._visit_all(node.finalbody)

    visit_TryStar = visit_Try

    def _branches(self, branches: list[list[ast.stmt]]) -> None:
        """Take alternatives."""
        before, ends = set(self.bound), []
        for branch in branches:
            self.bound = set(before)
            self._visit_all(branch)
            ends.append(self.bound)
        self.bound = set.intersection(*ends)

    def _visit_all(self, statements: list[ast.stmt]) -> None:
        """Take statements one after the other."""
        for statement in statements:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        """Take an import, which binds its first name."""
        for alias in node.names:
            self.found.modules.add(alias.name)
            self.bound.add(alias.asname or alias.name.partition(".")[0])

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Take a from-import."""
        if node.module and not node.level:
            self.found.modules.add(node.module)
        self.bound |= {alias.asname or alias.name for alias in node.names}

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Take a function, whose own reads happen when it is used."""
        self._definition(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Take a class, whose methods' reads happen when it is used."""
        self._definition(node)

    def _definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        """Take a definition: decorators and defaults now, the rest at first use."""
        code = compile_body([node])
        now, later = _names_now(code), _names_inside(code)
        self.found.dynamic |= bool(DYNAMIC & later)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                self.found.constants.add(inner.value)
        self._read(now - {node.name})
        self.bound.add(node.name)
        self._later[node.name] = later

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Take a lambda; its arguments are bound inside it."""
        before = set(self.bound)
        self.visit(node.args)
        self.bound |= {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        self.visit(node.body)
        self.bound = before

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> None:
        """Take a comprehension; its targets are bound inside it, those of ``:=`` here."""
        before, assigned = set(self.bound), set(self.found.assigned)
        for part in node.generators:
            self.visit(part.iter)
            self.visit(part.target)
            for condition in part.ifs:
                self.visit(condition)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for expression in parts:
            self.visit(expression)
        self.bound = before
        here = [n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
        self.found.assigned = assigned.union(here)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = (
        _comprehension
    )


def _names_now(code: types.CodeType) -> set[str]:
    """Return the names that a definition's own statement loads, a class's body included."""
    found: set[str] = set()
    stored: set[str] = set()
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME":
            stored.add(str(step.argval))
        elif step.opname == "LOAD_NAME" and step.argval not in stored:
            found.add(str(step.argval))
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    bodies = [c for c in inner if not c.co_flags & inspect.CO_OPTIMIZED]
    return found.union(*map(_names_now, bodies)) - {"__name__"}


def _names_inside(code: types.CodeType) -> set[str]:
    """Return the global names that the code inside a definition loads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set().union(*map(global_names, inner))


def _called(function: ast.expr) -> str:
    """Return the last name of what is called."""
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _names_in(text: str, magic: str) -> list[str]:
    """Return the names that the text of a magic, or a shell command, may use."""
    if magic and magic not in TEXTS:
        return [] if magic == "nbckpt" else WORD.findall(text)
    pairs = SHELL_NAMES.findall(text)  # ``$name``, ``{expression}``
    return [word for plain, braced in pairs for word in WORD.findall(plain or braced)]


def seeds(call: ast.Call) -> bool:
    """Tell whether a call such as ``np.random.seed(1)`` or ``set_seed(1)`` seeds."""
    return bool(SEEDING.fullmatch(_called(call.func)))


def _is_shell_call(node: ast.Call) -> bool:
    """Tell whether a call is ``get_ipython().something(...)``."""
    match node.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"))):
            return True
        case _:
            return False


def _is_plain_eval(node: ast.Call) -> bool:
    """Tell whether a call evaluates a text that the source holds."""
    return (
        isinstance(node.func, ast.Name)
        and node.func.id in {"eval", "exec"}
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    )
