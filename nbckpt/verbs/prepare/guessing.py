"""What the source of a plain notebook tells of its steps-to-be: their names and files.

Guesses, for a person to look at: what the source does not write out is left open.
"""

from __future__ import annotations

import ast
import builtins
import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nbckpt.lint.calls import OPENS, effect_of
from nbckpt.lint.notebook import Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
NUMBERING = re.compile(r"^(\d+(\.\d+)*[.):]?|[A-Z][.)])\s+")
LINKS = re.compile(r"\[([^\]]*)\]\([^)]*\)")
WORDS = 5
LETTERS = 40
READERS = re.compile(
    r"(pandas|polars|geopandas|pyarrow\.\w+|xarray|cv2|imageio(\.\w+)?|skimage\.io|PIL\.Image"
    r"|numpy|joblib|torch|matplotlib\.(pyplot|image))"
    r"\.(read_(?!sql|html|clipboard|gbq|database)\w+|scan_\w+|load|loadtxt|genfromtxt"
    r"|fromfile|open_dataset|open_dataarray|imread|open)"
)
LIGHT = re.compile(
    r"pathlib\.(Path|PurePath)(\.(home|cwd))?|os\.(makedirs|getenv|path\.\w+)"
    r"|pathlib\.Path\(\)\.(mkdir|resolve|absolute|expanduser|joinpath|with_\w+)"
    r"|\?\w+\.mkdir|os\.environ\.(get|setdefault)|sys\.path\.(append|insert)|dotenv\.load_dotenv"
    r"|pandas\.set_option|polars\.Config\.\w+|warnings\.(filterwarnings|simplefilter)"
    r"|matplotlib\.(pyplot\.)?(style\.use|rc|use|rcParams\.update)|seaborn\.set\w*"
    r"|logging\.(basicConfig|getLogger(\(\)\.setLevel)?)|re\.compile|functools\.partial"
    r"|numpy\.(random\.(seed|default_rng)|set_printoptions|seterr)|random\.(seed|Random)"
    r"|torch\.(manual_seed|device|set_\w+)|datetime\.(date|datetime|timedelta)"
    r"|dict|list|set|tuple|frozenset|int|float|str|bool|range|len|print"
)
"""Calls that are quick and give the same each time."""
HANDLES = re.compile(
    r"(sqlite3|psycopg2?|duckdb|pymysql|redis)\.\w*([cC]onnect|Redis)(\(\)\.cursor)?"
    r"|sqlalchemy\.create_engine|requests\.Session|httpx\.(Async)?Client|openai\.OpenAI"
    r"|boto3\.(client|resource|Session\S*)|smtplib\.SMTP\w*|anthropic\.Anthropic"
)
"""Calls whose result lives in this kernel only."""
SCRATCH = re.compile(
    r"csv\.(DictW|w)riter|csv\.(DictR|r)eader|open|iter|enumerate|zip|map|filter"
    rf"|{HANDLES.pattern}"
)
"""Calls whose result can't be kept, as most steps need it only themselves."""
SECOND = re.compile(r"joblib\.dump|torch\.save|pickle\.dump")
"""Calls whose first word is what they write, and whose second is where."""
MAGIC = re.compile(r"\?get_ipython\(\)\.run_line_magic|get_ipython\(\)\.run_line_magic")
PATHS = {"pathlib.Path", "os.path.join", "str"}
BETWEEN: dict[type[ast.operator], str] = {ast.Div: "/", ast.Add: ""}
"""What an operator puts between two parts of a path."""
SIMPLE = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
    ast.Pass,
)  # fmt: skip


def slug(text: str) -> str:
    """Return a step's name made of a heading or a comment.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Empty if no letter of it can stand in a name.

    Examples
    --------
    >>> slug("2.1 Clean the **orders** (again)")
    'clean-the-orders-again'
    """
    plain = LINKS.sub(r"\1", NUMBERING.sub("", text.strip()))
    letters = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9_]+", letters.lower().replace("'", ""))
    return "-".join(words[:WORDS])[:LETTERS].strip("-")


def last_heading(text: str) -> str:
    """Return the last heading of a text; empty if it has none."""
    fenced = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = HEADING.findall(fenced)
    return str(found[-1]) if found else ""


def first_comment(source: str) -> str:
    """Return the comment that a cell begins with; empty if it begins otherwise."""
    first = source.lstrip("\n").partition("\n")[0]
    is_prose = first.startswith("# ") and not re.search(r"[=()\[\]]|nbckpt:", first)
    return first.removeprefix("# ") if is_prose else ""


def made_last(body: list[ast.stmt]) -> str:
    """Return the last name that a cell assigns, as a name of a step.

    Parameters
    ----------
    body : list of ast.stmt
        A cell.

    Returns
    -------
    str
        Empty if it assigns none; variables of loops and files that are open in a block
        are none.
    """
    nodes = [node for statement in body for node in ast.walk(statement)]
    inner = {n for target in _passing(nodes) for n in ast.walk(target)}
    targets = [
        node.id
        for node in nodes
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node not in inner
    ]
    return slug(targets[-1]) if targets else ""


def _passing(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    """Yield what names a thing for the time of a loop or a block."""
    for node in nodes:
        if isinstance(node, ast.comprehension | ast.For):
            yield node.target
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield node.optional_vars


@dataclass(slots=True)
class Source:
    """What is known of a notebook's names, cell by cell from the top."""

    names: Names = field(default_factory=Names)
    light: set[str] = field(default_factory=lambda: set(dir(builtins)))
    """Names that setup makes."""
    texts: dict[str, str] = field(default_factory=dict)
    """Name → the path that it was given."""
    handles: set[str] = field(default_factory=set)
    """Names of connections."""

    def take(self, body: list[ast.stmt]) -> None:
        """Take what a cell imports and assigns."""
        self.names.take(body)
        self.handles |= set(self._made_by(HANDLES, body))
        for node in _walk(body):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    path = self.path(value)
                    if path is None:
                        self.texts.pop(name, None)
                    else:
                        self.texts[name] = path
                case ast.For(target=ast.Name(id=name)):
                    self.texts.pop(name, None)
                case _:
                    pass

    def is_setup(self, body: list[ast.stmt]) -> bool:
        """Tell whether a cell is better run each time than recorded.

        Parameters
        ----------
        body : list of ast.stmt
            A cell, after `take`.

        Returns
        -------
        bool
            Imports, definitions, constants, settings and connections. Its names then
            count as setup, too.
        """
        light = set(self.light)
        for statement in body:
            if not self._is_light(statement, light):
                return False
            light |= _made(statement)
        self.light = light
        return True

    def _is_light(self, statement: ast.stmt, light: set[str]) -> bool:
        """Tell whether a statement is setup."""
        match statement:
            case ast.Try(body=body, handlers=handlers, orelse=[], finalbody=[]):
                inner = [*body, *(one for handler in handlers for one in handler.body)]
                return all(self._is_light(one, light) for one in inner)
            case ast.Assign(value=value) | ast.Expr(value=value):
                return self._is_quick(value, light)
            case ast.AnnAssign(value=value):
                return value is None or self._is_quick(value, light)
            case _:
                return isinstance(statement, SIMPLE)

    def _is_quick(self, value: ast.expr, light: set[str]) -> bool:
        """Tell whether an expression is quick, and made of setup alone."""
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and node.id not in light | {"get_ipython"}:
                return False
            if isinstance(node, ast.Call) and not self._is_quick_call(node):
                return False
            if isinstance(node, ast.Await | ast.NamedExpr):
                return False
        return True

    def _is_quick_call(self, call: ast.Call) -> bool:
        """Tell whether a call is quick, a setting, or makes a handle."""
        called = self.names.dotted(call.func)
        if MAGIC.fullmatch(called):
            return getattr(call.args[0], "value", "") != "run"
        if called.endswith("get_ipython().system"):
            return str(getattr(call.args[0], "value", "")).startswith("pip ")
        known = LIGHT.fullmatch(called) or HANDLES.fullmatch(called)
        return called.endswith("get_ipython") or bool(known)

    def scratch(self, body: list[ast.stmt]) -> list[str]:
        """Return the names of handles and iterators that a cell makes.

        Parameters
        ----------
        body : list of ast.stmt
            A cell, after `take`.

        Returns
        -------
        list of str
            They can't be kept.
        """
        return self._made_by(SCRATCH, body)

    def foreign(self, body: list[ast.stmt]) -> list[str]:
        """Return the connections that a cell uses and does not make.

        Parameters
        ----------
        body : list of ast.stmt
            A cell, after `take`.

        Returns
        -------
        list of str
            No two kernels have the same one.
        """
        used = {node.id for node in _walk(body) if isinstance(node, ast.Name)}
        return sorted((used & self.handles).difference(self._made_by(HANDLES, body)))

    def _made_by(self, calls: re.Pattern[str], body: list[ast.stmt]) -> list[str]:
        """Return the names that a cell gives to the results of some calls."""
        found = dict[str, None]()
        for node in _walk(body):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func)):
                    if calls.fullmatch(self.names.dotted(func)):
                        found[name] = None
                case _:
                    pass
        return list(found)

    def files(self, body: list[ast.stmt]) -> tuple[list[str], list[str]]:
        """Return the files that a cell reads and writes, as far as it writes them out.

        Parameters
        ----------
        body : list of ast.stmt
            A cell, after `take`.

        Returns
        -------
        tuple of list and list
            Paths and globs, each once.
        """
        calls = [node for node in _walk(body) if isinstance(node, ast.Call)]
        writes = _kept(self._written(call) for call in calls)
        reads = _kept(self._read(call) for call in calls)
        return [path for path in reads if path not in writes], writes

    def _written(self, call: ast.Call) -> str | None:
        """Return the file that a call writes."""
        effect = effect_of(call, self.names)
        if effect is None or effect.kind not in {"file", "append"}:
            return None
        return self._target(call)

    def _read(self, call: ast.Call) -> str | None:
        """Return the file that a call reads."""
        called = self.names.dotted(call.func)
        method = called.rpartition(".")[2]
        opens = OPENS.fullmatch(called) and effect_of(call, self.names) is None
        if method in {"read_text", "read_bytes"} or opens or READERS.fullmatch(called):
            return self._target(call)
        return None

    def _target(self, call: ast.Call) -> str | None:
        """Return the file that a call is about: what it is called on, or its first word."""
        named = {"path", "path_or_buf", "filepath_or_buffer", "fname", "file"}
        first = 1 if SECOND.fullmatch(self.names.dotted(call.func)) else 0
        given = [
            *call.args[first : first + 1],
            *(k.value for k in call.keywords if k.arg in named),
        ]
        if isinstance(call.func, ast.Attribute):
            given.insert(0, call.func.value)
        found = (self.path(one) for one in given)
        return next((path for path in found if path is not None), None)

    def path(self, node: ast.expr) -> str | None:
        """Return the path that an expression stands for; ``*`` where it varies.

        Parameters
        ----------
        node : ast.expr
            Texts, ``pathlib`` and ``os.path.join``.

        Returns
        -------
        str or None
            None if the source does not tell.
        """
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self.texts.get(name)
            case ast.JoinedStr(values=parts):
                return "".join(self._part(part) for part in parts)
            case ast.BinOp(left=left, op=joint, right=right):
                between = BETWEEN.get(type(joint))
                return self._joined([left, right], between)
            case ast.Call(func=func, args=given):
                is_path = self.names.dotted(func) in PATHS
                return self._joined(given, "/" if is_path else None)
            case _:
                return None

    def _part(self, part: ast.expr) -> str:
        """Return a part of an f-string."""
        found = self.path(part.value if isinstance(part, ast.FormattedValue) else part)
        return "*" if found is None else found

    def _joined(self, parts: list[ast.expr], between: str | None) -> str | None:
        """Return parts as one path; None unless all are known, and how they join."""
        if between is None or not parts:
            return None
        found = [self.path(part) for part in parts]
        known = [text for text in found if text is not None]
        return between.join(known) if len(known) == len(found) else None


def _walk(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield all nodes of code."""
    for statement in body:
        yield from ast.walk(statement)


def _made(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of setup makes."""
    found = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    for node in ast.walk(statement):
        if isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def _kept(paths: Iterable[str | None]) -> list[str]:
    """Return the paths of which enough is known, each once."""
    told = (p for p in paths if p and "://" not in p and "\n" not in p and p[0] != "*")
    return list(dict.fromkeys(re.sub("/+", "/", path) for path in told))
