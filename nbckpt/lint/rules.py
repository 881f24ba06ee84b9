"""The rules, cell by cell from the top."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from nbckpt.lint import loops, order
from nbckpt.lint.effects import Functions, unguarded
from nbckpt.lint.findings import Finding, Report, silence
from nbckpt.lint.notebook import CellPage, Names
from nbckpt.lint.stability import Moving, key_expressions
from nbckpt.lint.unseen import unseen
from nbckpt.source.carried import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nbckpt.lint.calls import Effect

Place = tuple[str, int, str, str]
"""Code, line, what, remedy."""
GUARD = "make it nbckpt.effect(name, perform=…, lookup=…) or nbckpt.transaction"
DECLARE = f"declare it: --effects NAME; better, {GUARD}"
ONCE = {"undeclared-file", "undeclared-effect", "unseen-file"}
"""Told at the first line of a step only: what declares one declares all."""
OURS = {"nbckpt.effect", "nbckpt.transaction", "nbckpt.relay"}


def lint(pages: list[CellPage]) -> Report:
    """Return what would go wrong at a resume.

    Parameters
    ----------
    pages : list of CellPage
        The code cells of a notebook, in order.

    Returns
    -------
    Report
        Findings, and those that a comment silences.
    """
    reader = _Reader()
    report = Report()
    found = [(page, place) for page in pages for place in reader.read(page)]
    found += [(page, place) for page, place in _early(pages)]
    found.sort(key=lambda pair: (pair[0].number, pair[1][1]))
    _sort_out(found, report)
    return report


def _sort_out(found: list[tuple[CellPage, Place]], report: Report) -> None:
    """Put each finding where it belongs."""
    for page, (code, line, what, remedy) in found:
        finding = Finding(code, page.number, page.name, line, what, remedy)
        reason = silence(page.lines[line - 1 : line], code)
        if reason is not None:
            report.silenced.append(replace(finding, reason=reason))
        elif not _is_told(finding, report):
            report.findings.append(finding)


def _is_told(finding: Finding, report: Report) -> bool:
    """Tell whether one option on the step's line would settle a finding before, too."""
    same = (finding.code, finding.cell)
    told = any((other.code, other.cell) == same for other in report.findings)
    return told and finding.code in ONCE


def _early(pages: list[CellPage]) -> Iterator[tuple[CellPage, Place]]:
    """Yield the names that only a cell further down makes."""
    for page, name, line, later in order.early(pages):
        where = f"step {later.name}" if later.name else f"cell {later.number}"
        what = f"{name} is read here, but first made below, in {where}"
        yield page, ("used-before-made", line, what, "move that cell above this one")


class _Reader:
    """Goes through the cells; what one defines counts for those below."""

    def __init__(self) -> None:
        self._names = Names()
        self._functions = Functions(self._names)
        self._moving = Moving(self._names)
        self._rules: tuple[Callable[[CellPage], Iterable[Place]], ...] = (
            self._decoration, self._effects, self._unseen, self._calls, self._keep,
            self._retries, self._swallowed,
        )  # fmt: skip

    def read(self, page: CellPage) -> list[Place]:
        """Return the findings of a cell."""
        if page.wrong is not None:
            return [("bad-step", 1, page.wrong.what, page.wrong.remedy)]
        self._names.take(page.body)
        self._functions.take(page.body)
        self._moving.take(page)
        found = [place for rule in self._rules for place in rule(page)]
        self._moving.settle(page)
        return list(dict.fromkeys(found))

    def _unguarded(self, statements: list[ast.stmt]) -> list[Effect]:
        """Return the effects in code that nothing guards."""
        return unguarded(statements, self._names, self._functions)

    def _decoration(self, page: CellPage) -> Iterator[Place]:
        """Yield that a step only looks like work."""
        if order.is_decoration(page) and not self._unguarded(page.body):
            what = "the step reads nothing and changes nothing"
            remedy = "make it a plain cell, or text; a reading step needs --note"
            yield "decoration", 1, what, remedy

    def _effects(self, page: CellPage) -> Iterator[Place]:
        """Yield effects that nothing guards or declares."""
        for effect in self._unguarded(page.body):
            line = effect.node.lineno
            if effect.kind == "append":
                what = f"{effect.what} makes its file longer each time it runs"
                yield (
                    "append",
                    line,
                    what,
                    "write the whole file (mode 'w') in the step",
                )
            elif page.step is None:
                yield from _in_plain_cell(effect)
            elif not _is_declared(effect, page):
                yield _undeclared(effect)

    def _unseen(self, page: CellPage) -> Iterator[Place]:
        """Yield files that are read unseen: a change of them is not noticed."""
        if page.step is not None:
            for line, call in unseen(page.body, self._names, page.step):
                what = f"{call} opens its file unseen: a change of it goes unnoticed"
                yield "unseen-file", line, what, "declare it: --reads PATH"

    def _calls(self, page: CellPage) -> Iterator[Place]:
        """Yield names and keys that move, and effects that can't be settled."""
        for node in _walk(page.body):
            if not isinstance(node, ast.Call):
                continue
            for expression, whose in key_expressions(node, self._names):
                cause = self._moving.cause(expression)
                if cause:
                    what = f"{whose} holds {cause}: another one at each attempt"
                    remedy = (
                        "make it of what the work is about, such as an order number"
                    )
                    yield "unstable-key", node.lineno, what, remedy
            if self._names.dotted(node.func) == "nbckpt.effect":
                yield from _without_lookup(node)

    def _keep(self, page: CellPage) -> Iterator[Place]:
        """Yield loops over items that build something up."""
        for node in _walk(page.body):
            if not isinstance(node, ast.For | ast.AsyncFor):
                continue
            call = loops.items_call(node, self._names)
            keep = loops.kept(call) if call is not None else None
            if keep is None:
                continue
            for name in sorted(changed(node) - keep):
                if not loops.is_shown(name, self._names):
                    what = f"the loop changes {name}; items that are done don't bring it back"
                    remedy = f'nbckpt.items(…, keep=("{name}",))'
                    yield "no-keep", node.lineno, what, remedy

    def _retries(self, page: CellPage) -> Iterator[Place]:
        """Yield retries by hand, which a resume knows nothing of."""
        for loop, tried in loops.retries(page.body):
            calls = [e for e in self._unguarded(tried.body) if e.kind != "file"]
            if calls:
                what = f"a loop tries {calls[0].what} until it works"
                remedy = (
                    "a retry is no resume: nbckpt.items over the work, nbckpt.effect for "
                    "the call, and --retries N on the step"
                )
                yield "retry-loop", loop.lineno, what, remedy

    def _swallowed(self, page: CellPage) -> Iterator[Place]:
        """Yield errors of effects that nobody hears of."""
        for tried, handler in loops.swallowing(page.body):
            if self._unguarded(tried.body) or self._has_ours(tried.body):
                what = "an effect that failed goes on as if it had happened"
                remedy = "name the errors that are expected, and raise all others"
                yield "swallowed", handler.lineno, what, remedy

    def _has_ours(self, statements: list[ast.stmt]) -> bool:
        """Tell whether code makes an effect through nbckpt."""
        calls = (node for node in _walk(statements) if isinstance(node, ast.Call))
        return any(self._names.dotted(call.func) in OURS for call in calls)


def _walk(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes of code."""
    for statement in statements:
        yield from ast.walk(statement)


def _is_declared(effect: Effect, page: CellPage) -> bool:
    """Tell whether a step line declares an effect."""
    step = page.step
    if step is None:
        return False
    by_files = effect.kind in {"file", "process"} and bool(step.writes)
    return by_files or bool(step.effects)


def _undeclared(effect: Effect) -> Place:
    """Return the finding of an effect that a step does not declare."""
    line = effect.node.lineno
    if effect.kind == "file":
        what = f"{effect.what} changes a file that the step does not declare"
        return "undeclared-file", line, what, "declare it: --writes PATH"
    what = f"{effect.what} ({_word(effect)}) happens again whenever the step runs again"
    remedy = "declare what it makes: --writes PATH or --effects NAME"
    return (
        "undeclared-effect",
        line,
        what,
        remedy if effect.kind == "process" else DECLARE,
    )


def _in_plain_cell(effect: Effect) -> Iterator[Place]:
    """Yield the finding of an effect in a cell that always runs; files are made again."""
    if effect.kind != "file":
        what = (
            f"{effect.what} ({_word(effect)}) happens at every resume: plain cells run"
        )
        line = effect.node.lineno
        yield "effect-in-plain-cell", line, what, f"put it in a %%step; {GUARD}"


def _word(effect: Effect) -> str:
    """Return the kind of an effect, for people."""
    words = {"network": "a request", "database": "a database write"}
    return words.get(effect.kind, f"a {effect.kind}")


def _without_lookup(call: ast.Call) -> Iterator[Place]:
    """Yield the finding of an effect whose outcome nobody could find out."""
    given = {k.arg: k.value for k in call.keywords}
    if None in given or any(isinstance(a, ast.Starred) for a in call.args):
        return
    ways = [*call.args[2:4], *(given[n] for n in ("lookup", "dedup") if n in given)]
    if all(isinstance(way, ast.Constant) and way.value is None for way in ways):
        what = (
            "killed during the call, its outcome can't be found out: a human must say"
        )
        remedy = "lookup=, which asks the receiver; or dedup=, for which time it dedups"
        yield "no-lookup", call.lineno, what, remedy
