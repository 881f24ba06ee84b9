"""``%load_ext nbckpt``: the magics, and how a step's body is wrapped.

Only public extension points of IPython are used: a pure transformer of a cell's first
line, a transformer of its syntax tree, and events. The body is wrapped as
``if begin(...): body; commit()``, which keeps tracebacks, line numbers, top-level await,
``Out``, ``;`` and every other magic.
"""

from __future__ import annotations

import ast
import copy
import sys
from typing import TYPE_CHECKING, Any

from IPython.core.display_functions import display
from IPython.core.inputtransformer2 import cell_magic
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
)

from nbckpt import current, verbs
from nbckpt.errors import BadStep
from nbckpt.lint import unseen
from nbckpt.panel import buttons
from nbckpt.panel.live import Panel, panels
from nbckpt.panel.preference import NbCkpt
from nbckpt.plan import EXAMPLE, step_line, step_parser
from nbckpt.runner import Runner
from nbckpt.session import Session
from nbckpt.source.cells import with_questions
from nbckpt.source.overrides import set_attributes
from nbckpt.source.reads import seeds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HOOKS = "__nbckpt__"


def transform_line(lines: list[str]) -> list[str]:
    """Rewrite the first line of a step cell; IPython calls this several times a cell.

    Parameters
    ----------
    lines : list of str
        The cell.

    Returns
    -------
    list of str
        As many lines, so that all line numbers hold.
    """
    first = lines[0] if lines else ""
    if not first.startswith("%%step") or first.rstrip().endswith("?"):
        return lines
    line = step_line(first.rstrip("\n"))
    if line is None:
        return lines
    rest = lines[1:]
    if rest and rest[0].startswith("%%"):
        rest = cell_magic(rest)
    return [f"get_ipython().run_line_magic('step', {line!r})\n", *rest]


transform_line.has_side_effects = False  # type: ignore[attr-defined]


class WrapBody(ast.NodeTransformer):
    """Wraps the body of a step cell; does nothing else, as IPython demands.

    Parameters
    ----------
    keep : callable
        Takes the body as the user wrote it; returns the number under which `Hooks.begin`
        finds it.
    plain : callable
        Takes what a plain cell sets on what it names.
    """

    def __init__(
        self,
        keep: Callable[[list[ast.stmt]], int],
        plain: Callable[[Iterable[str]], None],
    ) -> None:
        self._keep = keep
        self._plain = plain

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the module, wrapped if it is a step."""
        if not isinstance(node, ast.Module) or not node.body:
            return node
        line = _marker(node.body[0])
        if line is None:
            self._plain(set_attributes(node.body))
            return node
        first, body = node.body[0], node.body[1:]
        number = self._keep(copy.deepcopy(body))
        future = [
            n
            for n in body
            if isinstance(n, ast.ImportFrom) and n.module == "__future__"
        ]
        body = [statement for statement in body if statement not in future]
        node.body = [*future, self._wrapped(first, line, number, body)]
        return ast.fix_missing_locations(node)

    def _wrapped(
        self, first: ast.stmt, line: str, number: int, body: list[ast.stmt]
    ) -> ast.stmt:
        """Return ``if begin(...): body; commit()`` on the body's own lines."""
        end = body[-1] if body else first
        if body and isinstance(body[-1], ast.Expr):
            body[-1] = _displayed(body[-1])
        body = [part for node in body for part in _noted(node)]
        if "--retries" in line:
            body = [_retrying(body, first)]
        whole = ast.parse(
            f"if {HOOKS}.begin({line!r}, {number}): {HOOKS}.commit()"
        ).body[0]
        assert isinstance(whole, ast.If)
        commit = whole.body
        for statement in commit:
            _on_line(statement, end)
        _on_line(whole.test, first)
        whole.body = [*body, *commit]
        return ast.copy_location(whole, first)


class _Seeding(ast.NodeTransformer):
    """Puts a look at the random streams before and after each call that seeds them."""

    def visit(self, node: ast.AST) -> Any:
        """Return a statement as it is, or with the looks around it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return node
        call = _seeding_call(node) if isinstance(node, (ast.Expr, ast.Assign)) else None
        if call is None:
            return self.generic_visit(node)
        before, after = ast.parse(f"{HOOKS}.about_to_seed()\n{HOOKS}.has_seeded()").body
        seeds = [*call.args, *(keyword.value for keyword in call.keywords)]
        after.value.args = copy.deepcopy(seeds)  # type: ignore[attr-defined]
        return [_on_line(before, node), node, _on_line(after, node)]  # type: ignore[arg-type]


def _noted(statement: ast.stmt) -> list[ast.stmt]:
    """Return a statement of a body with looks around the calls in it that seed."""
    found = _Seeding().visit(statement)
    return found if isinstance(found, list) else [found]


def _seeding_call(statement: ast.Expr | ast.Assign) -> ast.Call | None:
    """Return the call of a statement if it seeds, by constants and names alone."""
    call: Any = statement.value
    if isinstance(call, ast.Call) and ast.unparse(call.func) == f"{HOOKS}.display":
        call = call.args[0]
    if not isinstance(call, ast.Call) or not seeds(call):
        return None
    # The looks evaluate the arguments once more: they must neither draw nor change.
    plain = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Starred)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    inner = [node for argument in given for node in ast.walk(argument)]
    return None if any(isinstance(node, plain) for node in inner) else call


def _on_line(tree: Any, where: ast.stmt) -> Any:
    """Put a made statement on the user's line, for tracebacks."""
    line = where.end_lineno or where.lineno
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = line
            node.col_offset, node.end_col_offset = 0, 0
    return tree


def _retrying(body: list[ast.stmt], where: ast.stmt) -> ast.stmt:
    """Return the body, on its own lines, inside a loop of trials."""
    source = f"for {HOOKS}.trial in {HOOKS}.trials():\n with {HOOKS}.trial: pass"
    loop = _on_line(ast.parse(source).body[0], where)
    inner = loop.body[0]
    inner.body = body or inner.body
    found: ast.stmt = loop
    return found


def _displayed(statement: ast.Expr) -> ast.stmt:
    """Return a last expression that shows its value, as IPython's last one does."""
    function = ast.parse(f"{HOOKS}.display").body[0].value  # type: ignore[attr-defined]
    for node in ast.walk(function):
        ast.copy_location(node, statement)
    call = ast.copy_location(ast.Call(function, [statement.value], []), statement)
    return ast.copy_location(ast.Expr(call), statement)


def _marker(statement: ast.stmt) -> str | None:
    """Return the line of a step cell's first statement, or None."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr != "run_line_magic" or len(call.args) != 2:  # noqa: PLR2004
        return None
    name, line = (getattr(argument, "value", None) for argument in call.args)
    return str(line) if name == "step" else None


class Hooks:
    """What the wrapped body calls, and what listens to the shell's events.

    Parameters
    ----------
    shell : InteractiveShell
        The kernel's shell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.session = Session(shell)
        current.enter(self.session)
        self.runner = Runner(self.session)
        self.preference = NbCkpt(parent=shell)
        self.panel = Panel(self.session, self.preference)
        self.trial: Any = None
        self._bodies: dict[int, list[ast.stmt]] = {}
        self._count = 0
        self._depth = 0
        self.wrap = WrapBody(self.keep, self.session.names.expect)

    def keep(self, body: list[ast.stmt]) -> int:
        """Keep a body until it begins."""
        self._count += 1
        self._bodies = {self._count: body}
        return self._count

    def begin(self, line: str, number: int) -> bool:
        """Begin a step; return whether its body must run."""
        must_run = self.runner.begin(line, self._bodies.get(number, []))
        self.panel.begun(self.runner)
        return must_run

    def commit(self) -> None:
        """End a step whose body returned."""
        self.panel.count()
        running = self.runner.running
        self.runner.commit()
        self.panel.committed(self.runner)
        if running is not None:
            (body,) = self._bodies.values()
            sys.stderr.write(unseen.told(body, self.shell.user_ns, running.step))

    def trials(self) -> Any:
        """Yield the trials of a step with ``--retries``."""
        return self.runner.trials()

    def about_to_seed(self) -> None:
        """Take note that a call which seeds follows."""
        self.session.seeding.about_to_seed()

    def has_seeded(self, *seeds: object) -> None:
        """Take note that a call seeded random streams."""
        self.session.seeding.has_seeded(seeds)

    def display(self, value: object) -> None:
        """Show the value of a body's last expression."""
        if not self.session.silent and self.shell.ast_node_interactivity != "none":
            sys.displayhook(value)

    def pre_execute(self) -> None:
        """Take note that something runs; silent until `pre_run_cell` says otherwise."""
        self._depth += 1
        self.session.silent = True
        self.session.executing()

    def pre_run_cell(self, info: Any) -> None:
        """Take note of the cell that runs."""
        self.session.silent = bool(info.silent)
        source = info.raw_cell or ""
        if "load_ext nbckpt" in source:
            self.panel.ask("load")
        if step_line(source) is None:
            self.session.note_source(source)

    def post_execute(self) -> None:
        """Notice that a body did not reach its end.

        A magic such as ``%%capture`` runs a cell inside the cell: its end is not the
        body's. The cell that loaded nbckpt ends without having begun here.
        """
        self._depth = max(self._depth - 1, 0)
        if self._depth:
            return
        result = getattr(self.shell, "last_execution_result", None)
        error = getattr(result, "error_in_exec", None) or sys.exc_info()[1]
        step = self.runner.entered
        try:
            self.panel.count()
            self.runner.fail(error)
            self.panel.ended(step, error)
        except KeyboardInterrupt:
            # A second interrupt while the first one is recorded would end the kernel.
            return
        while current.asked:
            buttons.offer(self.session, current.asked.pop())
        buttons.offer_settling(self.session, step, self.runner.last.get(step), error)


@magics_class
class StepMagics(Magics):
    """``%%step`` and ``%nbckpt``."""

    hooks: Hooks

    @no_var_expand
    @line_cell_magic
    def step(self, line: str, cell: str | None = None) -> None:
        """Refuse: a step is taken by the transformers before it gets here."""
        del cell
        raise BadStep(f"%%step {line}: it must be the first line of its cell", EXAMPLE)

    @no_var_expand
    @line_magic
    def nbckpt(self, line: str) -> None:
        """Run a verb, such as ``start``, ``status`` or ``explain``."""
        said = verbs.in_notebook(self.hooks.session, line)
        if line.split()[:1] == ["start"]:
            self.hooks.panel.ask("start")
        if not isinstance(said, str):
            display(said)
        elif said:
            print(said)  # noqa: T201 - the answer to what was asked


TRANSFORMERS = (transform_line, with_questions)
EVENTS = ("pre_execute", "pre_run_cell", "post_execute")


def load(shell: Any) -> None:
    """Install the magics and hooks; a second time, do nothing.

    Parameters
    ----------
    shell : InteractiveShell
        The kernel's shell.
    """
    if HOOKS in shell.user_ns:
        return
    hooks = Hooks(shell)
    hooks.session.names.install()
    hooks.panel.ask("load")
    panels[:] = [hooks.panel]
    shell.configurables.append(hooks.preference)
    shell.user_ns[HOOKS] = hooks
    shell.user_ns_hidden[HOOKS] = hooks
    shell.input_transformers_cleanup.extend(TRANSFORMERS)
    shell.ast_transformers.append(hooks.wrap)
    for event in EVENTS:
        shell.events.register(event, getattr(hooks, event))
    magics = StepMagics(shell)
    magics.hooks = hooks
    StepMagics.step.__doc__ = step_parser().format_help()
    shell.register_magics(magics)
    # What IPython looks for where ``%%step`` stands below the first line of a cell.
    magics_of_lines = shell.magics_manager.magics["line"]
    magics_of_lines["%step"] = magics_of_lines["step"]


def unload(shell: Any) -> None:
    """Take everything out again and give the run back.

    Parameters
    ----------
    shell : InteractiveShell
        The kernel's shell.
    """
    hooks = shell.user_ns.pop(HOOKS, None)
    if hooks is None:
        return
    shell.user_ns_hidden.pop(HOOKS, None)
    for transform in TRANSFORMERS:
        shell.input_transformers_cleanup.remove(transform)
    shell.ast_transformers.remove(hooks.wrap)
    for event in EVENTS:
        shell.events.unregister(event, getattr(hooks, event))
    for kind in ("line", "cell"):
        for name in ("step", "%step", "nbckpt"):
            shell.magics_manager.magics[kind].pop(name, None)
    hooks.panel.close()
    panels.clear()
    shell.configurables.remove(hooks.preference)
    hooks.session.names.uninstall()
    hooks.session.release()
    current.enter(None)
