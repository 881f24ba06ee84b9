"""Whether a name or key is another one at each attempt."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.lint.notebook import CellPage, Names

UNSTABLE = re.compile(
    r"time\.(time|time_ns|monotonic|monotonic_ns|perf_counter|perf_counter_ns|ctime"
    r"|strftime|localtime|gmtime)"
    r"|datetime\.(datetime|date)\.(now|utcnow|today)|datetime\.now|pandas\.Timestamp\.\w+"
    r"|uuid\.uuid[14]|secrets\.\w+|os\.(urandom|getpid)|id|hash"
    r"|random\.(?!seed)\w+|numpy\.random\.(?!seed|default_rng)\w+"
)
KEYED = {
    "nbckpt.effect": (0, {"name", "key"}),
    "nbckpt.idempotency_key": (0, {"name"}),
    "nbckpt.transaction": (1, {"name"}),
    "nbckpt.items": (9, {"key", "name"}),
    "nbckpt.map": (9, {"key", "name"}),
}
"""Call → place of its name, and the keywords that hold a name or key."""
HEADER = re.compile(r"(x-)?idempotency[-_]?key", re.IGNORECASE)


class Moving:
    """The names whose value is another one at each resume.

    Parameters
    ----------
    names : Names
        What names stand for.

    Notes
    -----
    A value that an earlier step made is recorded, and so the same at each resume.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._moving: dict[str, str] = {}

    def take(self, page: CellPage) -> None:
        """Take the assignments of a cell."""
        for statement in page.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
                    self._assign(node, node.value)

    def _assign(self, node: ast.Assign | ast.AnnAssign, value: ast.expr) -> None:
        """Note whether an assigned value moves."""
        cause = self.cause(value)
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                self._moving.pop(target.id, None)
                if cause:
                    self._moving[target.id] = cause

    def settle(self, page: CellPage) -> None:
        """Take note that a cell's values are recorded, if it is a step."""
        if page.step is None or page.step.always:
            return
        for statement in page.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._moving.pop(node.id, None)

    def cause(self, expression: ast.expr) -> str:
        """Return what in an expression moves; empty if nothing does."""
        for node in ast.walk(expression):
            if isinstance(node, ast.Call):
                called = self._names.dotted(node.func)
                if UNSTABLE.fullmatch(called):
                    return f"{ast.unparse(node.func)}()"
            elif isinstance(node, ast.Name) and node.id in self._moving:
                return f"{node.id}, made by {self._moving[node.id].split(',')[0]}"
        return ""


def key_expressions(call: ast.Call, names: Names) -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions of a call that must be the same at each attempt.

    Parameters
    ----------
    call : ast.Call
        The call.
    names : Names
        What names stand for.

    Yields
    ------
    tuple of ast.expr and str
        The expression, and what it is the name or key of.
    """
    called = names.dotted(call.func)
    place, words = KEYED.get(called, (9, set[str]()))
    for argument in call.args[place : place + 1]:
        yield argument, f"the name in {ast.unparse(call.func)}()"
    for keyword in call.keywords:
        yield from _of_keyword(keyword, ast.unparse(call.func), words)


def _of_keyword(
    keyword: ast.keyword, called: str, words: set[str]
) -> Iterator[tuple[ast.expr, str]]:
    """Yield what a keyword holds, if that is a name or key."""
    name = keyword.arg or ""
    if name in words:
        yield keyword.value, f"{name}= of {called}()"
    elif HEADER.fullmatch(name):
        yield keyword.value, f"{name}="
    elif name == "headers" and isinstance(keyword.value, ast.Dict):
        yield from _headers(keyword.value)


def _headers(given: ast.Dict) -> Iterator[tuple[ast.expr, str]]:
    """Yield the idempotency keys among headers."""
    for key, value in zip(given.keys, given.values, strict=True):
        match key:
            case ast.Constant(value=str(text)) if HEADER.fullmatch(text):
                yield value, f"the header {text}"
            case _:
                pass
