"""Steps as the user writes them: the ``%%step`` line, and the plan of a notebook.

Text in, records out; the notebook's file is read by others.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, NoReturn

from nbckpt import keys
from nbckpt.errors import BadStep
from nbckpt.records import PlannedStep, PlanRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EXAMPLE = 'Write for example: %%step clean --reads raw.csv --check "len(df) > 0"'
MAGIC = re.compile(r"%%?step(?=\s|$)")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(frozen=True, slots=True)
class Step:
    """One ``%%step`` line, parsed."""

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    always: bool = False
    version: str = ""
    max_age: float = 0.0
    """Seconds; 0: any age."""
    note: str = ""
    retries: int = 0
    backoff: float = 1.0
    """Seconds before the first retry."""
    stop_on_redo: bool = False

    @property
    def options_fingerprint(self) -> str:
        """Digest of the options that change what the step means."""
        return keys.digest(self.version)


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        raise BadStep(f"%%step: {message}", EXAMPLE)


LISTS = {
    "reads": ("PATH", "files (globs) whose content is an input"),
    "writes": ("PATH", "files (globs) that the step makes; verified at every resume"),
    "effects": ("NAME", "external effects of the step, for the plan and the audit"),
    "ignore": ("NAME", "names that are read but are no input"),
    "env": ("NAME", "environment variables that are inputs"),
    "drop": ("NAME", "names not to be kept: handles, scratch"),
}
TEXTS = {
    "version": ("TEXT", "change it to run the step again"),
    "max-age": ("DURATION", "run again when older: 12h, 7d"),
    "backoff": ("DURATION", "wait before the first retry, 1s; doubles each time"),
}
FLAGS = {
    "always": "never skipped: connections, configuration",
    "stop-on-redo": "attempted before and not completed: stop for a human",
}


@cache
def step_parser() -> argparse.ArgumentParser:
    """Return the parser of a ``%%step`` line, which also makes the help text.

    Returns
    -------
    argparse.ArgumentParser
        It raises `BadStep` instead of leaving the process.
    """
    parser = _Parser(prog="%%step", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("name", help="name of the step, unique in the notebook")
    for name, (kind, text) in LISTS.items():
        add(
            f"--{name}", nargs="+", action="extend", default=[], metavar=kind, help=text
        )
    for name, (kind, text) in TEXTS.items():
        add(f"--{name}", default="", metavar=kind, help=text)
    for name, text in FLAGS.items():
        add(f"--{name}", action="store_true", help=text)
    check = "completion check, after the body and again at every resume; repeatable"
    add(
        "--check",
        action="append",
        default=[],
        metavar="EXPR",
        dest="checks",
        help=check,
    )
    note = "written note, the evidence of a step whose product is understanding"
    add("--note", nargs="+", default=[], metavar="TEXT", help=note)
    add(
        "--retries", type=int, default=0, metavar="N", help="retries inside one attempt"
    )
    return parser


def read_duration(text: str | float | timedelta) -> float:
    """Return the seconds in a duration such as ``90s``, ``12h`` or ``7d``.

    Parameters
    ----------
    text : str or float or timedelta
        A number and one of s, m, h, d, w; a bare number counts seconds.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    BadStep
        If it is no duration.

    Examples
    --------
    >>> read_duration("2h")
    7200.0
    """
    words = text.total_seconds() if isinstance(text, timedelta) else text
    words = f"{words:f}" if isinstance(words, float) else str(words)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw]?)", words.strip())
    if not found:
        raise BadStep(f"{text!r} is no duration", "Write for example 90s, 12h or 7d")
    return float(found[1]) * UNITS[found[2] or "s"]


def read_step(line: str) -> Step:
    """Return the step that a ``%%step`` line describes.

    Parameters
    ----------
    line : str
        What follows ``%%step`` on its line.

    Returns
    -------
    Step
        The name and its options.

    Raises
    ------
    BadStep
        If an option is unknown, the name missing or ill formed, a check is no
        expression, or a value is not what its option takes.
    """
    found = step_parser().parse_args(_words(line))
    _check_name(found.name)
    for check in found.checks:
        _check_expression(found.name, check)
    if found.retries < 0:
        raise BadStep(
            f"step {found.name}: --retries {found.retries} is below 0", EXAMPLE
        )
    return Step(
        found.name,
        **{key: tuple(getattr(found, key)) for key in (*LISTS, "checks")},
        always=found.always,
        version=found.version,
        max_age=read_duration(found.max_age) if found.max_age else 0.0,
        note=" ".join(found.note),
        retries=found.retries,
        backoff=read_duration(found.backoff or "1s"),
        stop_on_redo=found.stop_on_redo,
    )


def _words(line: str) -> list[str]:
    """Split a line as a shell does, with our own error."""
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise BadStep(f"%%step {line}: {error}", EXAMPLE) from None


def _check_name(name: str) -> None:
    """Refuse a name that can't be a key."""
    if not keys.STEP_NAME.fullmatch(name):
        raise BadStep(
            f"%%step: {name!r} is no step name (letters, digits, _ . -)", EXAMPLE
        )


def _check_expression(name: str, text: str) -> None:
    """Refuse a check that is no Python expression."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise BadStep(
            f"step {name}: --check {text!r} is no expression ({error.msg})", EXAMPLE
        ) from None


def step_line(source: str) -> str | None:
    """Return what follows the magic on a step cell's first line.

    Parameters
    ----------
    source : str
        The cell's text.

    Returns
    -------
    str or None
        None if the cell is no step.
    """
    first = source.split("\n", 1)[0]
    found = MAGIC.match(first)
    return first[found.end() :].strip() if found else None


def doubles(sources: Iterable[str]) -> set[str]:
    """Return the names that more than one cell bears.

    Parameters
    ----------
    sources : iterable of str
        The text of each code cell.

    Returns
    -------
    set of str
        Empty if all is well.
    """
    lines = [line for source in sources if (line := step_line(source)) is not None]
    names = [line.split()[0] for line in lines if line.split()]
    return {name for name in names if names.count(name) > 1}


def read_lines(sources: Iterable[str]) -> list[Step | BadStep | None]:
    """Return what each cell of a notebook is.

    Parameters
    ----------
    sources : iterable of str
        The text of each code cell, in order.

    Returns
    -------
    list of Step, BadStep or None
        The cell's step; what is wrong with its line, which names the cell; or None for
        a plain cell. Of two cells with one name, the later one is wrong.
    """
    found: list[Step | BadStep | None] = []
    names: set[str] = set()
    for number, source in enumerate(sources, 1):
        line = step_line(source)
        try:
            step = None if line is None else _read_new(line, names)
        except BadStep as error:
            found.append(_placed(error, number, source))
            continue
        if step is not None:
            names.add(step.name)
        found.append(step)
    return found


def wrong_lines(sources: Iterable[str]) -> list[BadStep]:
    """Return what is wrong with the step lines of a notebook; see `read_lines`."""
    return [found for found in read_lines(sources) if isinstance(found, BadStep)]


def _read_new(line: str, names: set[str]) -> Step:
    """Return the step of a line whose name no step before it bears."""
    step = read_step(line)
    if step.name in names:
        raise twice(step.name)
    return step


def _placed(error: BadStep, number: int, source: str) -> BadStep:
    """Return an error that says in which cell it is."""
    line = source.partition("\n")[0].strip()
    what = error.what.removeprefix("%%step: ")
    return BadStep(f"code cell {number} ({line}): {what}", error.remedy)


def read_plan(
    sources: Iterable[str], parse: Callable[[str], list[ast.stmt]]
) -> PlanRecord:
    """Return the plan of a notebook.

    Parameters
    ----------
    sources : iterable of str
        The text of each code cell, in order.
    parse : callable
        Turns the text of a cell into statements; what it can't parse counts as text.

    Returns
    -------
    PlanRecord
        The steps in order, each with its checks, files and effects. A cell whose step
        line is wrong is left out: it says so itself when it runs.
    """
    steps: list[PlannedStep] = []
    plain: list[str] = []
    cells = list(sources)
    for source, step in zip(cells, read_lines(cells), strict=True):
        if step is None:
            plain.append(_code(source, parse))
        elif isinstance(step, Step):
            code = _code(source.partition("\n")[2], parse)
            steps.append(planned(len(steps) + 1, step, code, keys.digest(*plain)))
    return PlanRecord(steps=tuple(steps), source="notebook")


def planned(number: int, step: Step, code: str, before: str = "") -> PlannedStep:
    """Return the plan's line of a step.

    Parameters
    ----------
    number : int
        Position, from 1.
    step : Step
        The step.
    code : str
        Fingerprint of its body.
    before : str, optional
        Fingerprint of the plain cells above it.

    Returns
    -------
    PlannedStep
        The line.
    """
    return PlannedStep(
        number,
        step.name,
        code,
        step.checks,
        step.reads,
        step.writes,
        step.effects,
        before,
    )


def twice(name: str) -> BadStep:
    """Return the error for two cells of one name.

    Parameters
    ----------
    name : str
        The step's name.

    Returns
    -------
    BadStep
        To be raised.
    """
    return BadStep(
        f"two cells are named {name!r}", "Give each %%step a name of its own"
    )


def _code(source: str, parse: Callable[[str], list[ast.stmt]]) -> str:
    """Fingerprint a cell; one that doesn't parse counts by its text."""
    try:
        return keys.code_fingerprint(parse(source))
    except SyntaxError:
        return keys.digest(source)
