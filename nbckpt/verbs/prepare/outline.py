"""What a notebook's source tells about the names that its steps will find.

Nothing runs: assignments of plain cells are followed in order, so that a prediction can
say which inputs are sure to be as they were. Limit: what a plain cell computes counts as
unchanged while its source is, unless it uses words that mean clocks, chance, files or
the network.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from nbckpt.plan import Step, read_lines, read_plan

if TYPE_CHECKING:
    from nbckpt.records import PlannedStep

Parse = Callable[[str], list[ast.stmt]]

CLOCKS = (
    "time time_ns perf_counter monotonic now today utcnow uuid1 uuid4 urandom getpid"
)
WORLD = (
    "environ getenv gethostname input getpass get_ipython check_output Popen requests "
    "httpx urlopen urlretrieve connect execute fetchall fetchone token_hex token_bytes"
)
FILES = (
    "open listdir scandir glob iglob rglob iterdir stat getmtime exists is_file read_text "
    "read_bytes read_csv read_parquet read_excel read_json read_sql read_table read_pickle "
    "read_feather read_html loadtxt genfromtxt fromfile"
)
VOLATILE = frozenset(f"{CLOCKS} {WORLD} {FILES}".split())
RANDOM = frozenset(
    ["random", "rand", "randn", "randint", "choice", "shuffle", "default_rng"]
)
SEEDED = re.compile(r"seed\(\s*[^)\s]|default_rng\(\s*[^)\s]|RandomState\(\s*[^)\s]")
DYNAMIC = frozenset({"eval", "exec", "globals", "locals", "vars"})
TIMED = frozenset({"time", "timeit", "prun", "capture"})
MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a name's value comes from, as the source tells."""

    steps: frozenset[str] = frozenset()
    """Steps that made it, or made what it was computed from."""
    literal: Any = MISSING
    """The value, if a plain cell writes it out."""
    computed: bool = False
    """Whether a plain cell computes or may change it."""
    volatile: bool = False
    """Whether it may differ each time although no source changed."""
    fixed: bool = False
    """Whether code that merely reads the name can't change it."""


@dataclass(frozen=True, slots=True)
class Outlined:
    """A step, and the origins of all names above it."""

    step: Step
    planned: PlannedStep
    bound: frozenset[str]
    """Names that its body binds."""
    loaded: frozenset[str]
    """Names that its body reads, and so may change inside."""
    origins: dict[str, Origin]
    dynamic: bool
    """Whether it may touch any name."""


@dataclass(slots=True)
class _Words:
    """Identifiers of some statements."""

    loaded: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)

    @property
    def names(self) -> set[str]:
        """All names, bound or read."""
        return self.loaded | self.bound


def outline(sources: Iterable[str], parse: Parse) -> list[Outlined]:
    """Return the steps of a notebook with the origins of the names above each.

    Parameters
    ----------
    sources : iterable of str
        The text of each code cell, in order.
    parse : callable
        Turns the text of a cell into statements.

    Returns
    -------
    list of Outlined
        In order. A cell whose step line is wrong counts as a plain one.
    """
    cells = list(sources)
    planned = {step.name: step for step in read_plan(cells, parse).steps}
    reading = _Reading(seeded=bool(SEEDED.search("\n".join(cells))))
    found = []
    for source, step in zip(cells, read_lines(cells), strict=True):
        text = source if step is None else source.partition("\n")[2]
        body = _statements(text, parse)
        if not isinstance(step, Step):
            reading.plain(body)
            continue
        above = dict(reading.origins)
        words = reading.take_step(step.name, body)
        bound, loaded = frozenset(words.bound), frozenset(words.loaded)
        dynamic = bool(DYNAMIC & loaded)
        found.append(Outlined(step, planned[step.name], bound, loaded, above, dynamic))
    return found


def _statements(source: str, parse: Parse) -> list[ast.stmt]:
    """Return a cell's statements; none if it is no Python."""
    try:
        return parse(source)
    except SyntaxError:
        return []


class _Reading:
    """Follows names through the cells of a notebook.

    Parameters
    ----------
    seeded : bool
        Whether the notebook seeds its random streams.
    """

    def __init__(self, *, seeded: bool) -> None:
        self.origins: dict[str, Origin] = {}
        self._volatile = VOLATILE if seeded else VOLATILE | RANDOM
        self._inside: dict[str, _Words] = {}

    def plain(self, statements: list[ast.stmt]) -> None:
        """Take a plain cell."""
        for statement in statements:
            self._define([statement])
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._bind(_words([statement]).bound, Origin(fixed=True))
            elif (pair := _literal(statement)) is not None:
                fixed = not isinstance(pair[1], list | dict | set)
                self._bind([pair[0]], Origin(literal=pair[1], fixed=fixed))
            elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
                fixed = isinstance(statement, ast.FunctionDef)
                self._bind([statement.name], Origin(computed=True, fixed=fixed))
            else:
                self._compute(statement)

    def take_step(self, name: str, body: list[ast.stmt]) -> _Words:
        """Take a step; return its identifiers, those of the functions it uses too."""
        self._define(body)
        words = self._closed(_words(body))
        self._bind(words.bound, Origin(steps=frozenset({name})))
        return words

    def _bind(self, names: Iterable[str], origin: Origin) -> None:
        """Note where names come from."""
        self.origins.update(dict.fromkeys(names, origin))

    def _compute(self, statement: ast.stmt) -> None:
        """Take a statement that computes: all of its names may be changed by it."""
        words = self._closed(_words([statement]))
        before = [self.origins[n] for n in words.names if n in self.origins]
        steps = frozenset[str]().union(*(origin.steps for origin in before))
        volatile = bool(self._volatile & (words.names | words.attributes))
        volatile |= any(origin.volatile for origin in before)
        made = Origin(steps=steps, computed=True, volatile=volatile)
        for name in words.names & self.origins.keys():
            old = self.origins[name]
            if old.fixed and name not in words.bound:
                continue
            risen = volatile and not isinstance(statement, ast.Assign | ast.AnnAssign)
            self.origins[name] = replace(
                old, literal=MISSING, computed=True, volatile=old.volatile or risen
            )
        self._bind(words.bound, made)

    def _define(self, statements: Iterable[ast.stmt]) -> None:
        """Keep what functions and classes use, for when they are used."""
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(
                    node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
                ):
                    self._inside[node.name] = _words(node.body)

    def _closed(self, words: _Words) -> _Words:
        """Return identifiers with those inside the notebook functions among them."""
        found = _Words(set(words.loaded), set(words.bound), set(words.attributes))
        queue = list(words.names)
        seen: set[str] = set()
        while queue:
            name = queue.pop()
            inner = self._inside.get(name)
            if name in seen or inner is None:
                continue
            seen.add(name)
            found.loaded |= inner.names
            found.attributes |= inner.attributes
            queue += inner.names
        return found


def _literal(statement: ast.stmt) -> tuple[str, Any] | None:
    """Return name and value of an assignment that writes its value out."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return None
    try:
        return target.id, ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _words(statements: Iterable[ast.stmt]) -> _Words:
    """Return the identifiers of statements."""
    found = _Words()
    for statement in statements:
        for node in ast.walk(statement):
            _take(node, found)
    return found


def _take(node: ast.AST, found: _Words) -> None:
    """Take the identifiers of one node."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            found.loaded.add(name)
        case ast.Name(id=name):
            found.bound.add(name)
        case ast.Attribute(attr=name):
            found.attributes.add(name)
        case ast.alias():
            found.bound.add(_imported(node))
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            found.bound.add(node.name)
        case ast.Call(func=ast.Attribute(attr="run_line_magic" | "run_cell_magic")):
            _take_magic(node, found)
        case _:
            pass


def _imported(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def _take_magic(node: ast.Call, found: _Words) -> None:
    """Take the identifiers of code that a magic holds as text."""
    texts = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
    if not texts or texts[0] not in TIMED:
        return
    try:
        inner = _words(ast.parse(texts[-1]).body)
    except SyntaxError:
        return
    found.loaded |= inner.loaded
    found.bound |= inner.bound
    found.attributes |= inner.attributes
