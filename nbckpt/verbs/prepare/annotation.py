"""``nbckpt annotate``: a plain notebook turned into steps, as a proposal first."""

from __future__ import annotations

import ast
import difflib
import json
import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from nbckpt import places
from nbckpt.errors import BadNotebook
from nbckpt.plan import step_line
from nbckpt.source.cells import parse_body, read_notebook
from nbckpt.verbs.forms.pages import Diff, Page, Part, Table, Tree, listed
from nbckpt.verbs.prepare.guessing import (
    Source,
    first_comment,
    last_heading,
    made_last,
    slug,
)
from nbckpt.verbs.prepare.linting import LintLine, lint_sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

By = Literal["cell", "heading"]
LOAD = "%load_ext nbckpt"
TIMED = ("%%time", "%%timeit", "%%capture")
"""Cell magics that a step may stand above."""
SHELLS = ("%%bash", "%%sh", "%%script")
INSTALLS = re.compile(r"\b(pip|conda|mamba|uv|apt|apt-get)3? (-\S+ )*(install|add)\b")
"""What each new kernel's environment needs."""
OPTIONS = ("reads", "writes", "drop", "ignore")
NOT_YET = "nothing is written to {} yet. To do it, say the same with --write"


class NewStep(TypedDict):
    """A cell that becomes a step."""

    cell: int
    """Number among the code cells of the notebook as it is, from 1."""
    name: str
    reads: list[str]
    writes: list[str]
    drop: list[str]
    """Handles that no other cell names."""
    ignore: list[str]
    """Handles of cells above: they can't be compared, and the step would run again."""


class Annotation(TypedDict):
    """What ``nbckpt annotate --json`` prints."""

    notebook: str
    changed: bool
    written: bool
    steps: list[NewStep]
    plain: list[int]
    """Code cells that stay plain."""
    diff: str
    findings: list[LintLine]
    """What ``nbckpt lint`` finds in the result."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the result."""

    kind: str
    source: str
    number: int = 0
    """Place among the code cells; 0 for others."""
    places: tuple[int, ...] = ()
    """Where it stands in the file, with the cells that were joined into it."""
    tags: tuple[str, ...] = ()


@dataclass(slots=True)
class Proposal:
    """A notebook as it is, and as it would be."""

    before: list[Cell]
    after: list[Cell]
    steps: list[NewStep]
    plain: list[int]


def annotate(notebook: Path, by: By = "cell", *, write: bool = False) -> Annotation:
    """Turn a plain notebook into steps.

    Parameters
    ----------
    notebook : Path
        An ``.ipynb`` file.
    by : {"cell", "heading"}, optional
        What becomes a step: each code cell, or all code under one heading.
    write : bool, optional
        Whether to change the file; without it nothing is written.

    Returns
    -------
    Annotation
        With the diff. Of what is annotated already nothing changes.

    Raises
    ------
    BadNotebook
        If the file is missing, broken, no ``.ipynb`` or of an old format.
    """
    if notebook.suffix != ".ipynb":
        raise BadNotebook(
            f"{notebook} is no .ipynb file",
            "In a script write the steps by hand: # %%step NAME below a # %% line",
        )
    read_notebook(notebook)
    text = notebook.read_text("utf-8")
    document = json.loads(text)
    if "cells" not in document:
        raise BadNotebook(
            f"{notebook} is of an old format", "Open it in Jupyter and save it again"
        )
    found = propose(list(map(_cell, document["cells"])), by)
    diff = _diff(found, notebook.name)
    if write and diff:
        document["cells"] = [_raw(cell, document) for cell in found.after]
        _write(notebook, document)
    sources = [cell.source for cell in found.after if cell.kind == "code"]
    return Annotation(
        notebook=str(notebook),
        changed=bool(diff),
        written=write and bool(diff),
        steps=found.steps,
        plain=found.plain,
        diff=diff,
        findings=lint_sources(sources),
    )


def _cell(raw: dict[str, Any]) -> Cell:
    """Return a cell of the file."""
    source = raw.get("source", "")
    text = source if isinstance(source, str) else "".join(source)
    tags = tuple(raw.get("metadata", {}).get("tags") or ())
    return Cell(str(raw.get("cell_type")), text, tags=tags)


def _raw(cell: Cell, document: dict[str, Any]) -> dict[str, Any]:
    """Return a cell as the file holds it; only its text may be another."""
    if not cell.places:
        made: dict[str, Any] = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
        }
        if document.get("nbformat_minor", 0) >= 5:  # noqa: PLR2004 - cells have ids from 4.5 on
            made["id"] = "nbckpt-load"
        return made | {"outputs": [], "source": [cell.source]}
    raw: dict[str, Any] = document["cells"][cell.places[0]]
    before = raw.get("source", "")
    is_text = isinstance(before, str)
    text = cell.source if is_text else cell.source.splitlines(keepends=True)
    if len(cell.places) > 1:
        raw = raw | {"outputs": [], "execution_count": None}
    return raw | {"source": text}


def _write(notebook: Path, document: dict[str, Any]) -> None:
    """Write a notebook as Jupyter does, whole and with its permissions."""
    mode = notebook.stat().st_mode
    text = json.dumps(document, indent=1, ensure_ascii=False)
    places.write_whole(notebook.resolve(), f"{text}\n".encode())
    notebook.chmod(mode & 0o777)


def propose(cells: list[Cell], by: By = "cell") -> Proposal:
    """Return a notebook as it is, and with steps.

    Parameters
    ----------
    cells : list of Cell
        The notebook.
    by : {"cell", "heading"}, optional
        What becomes a step.

    Returns
    -------
    Proposal
        Cells that are steps already stay as they are, and so do those that only set up.
    """
    cells = _numbered(cells)
    reader = _Reader(cells)
    units = _joined(cells) if by == "heading" else cells
    after = [reader.read(cell) for cell in units]
    if reader.steps and not any("load_ext nbckpt" in cell.source for cell in cells):
        first = next(n for n, cell in enumerate(after) if cell.kind == "code")
        after.insert(first, Cell("code", LOAD))
    return Proposal(cells, after, reader.steps, reader.plain)


def _numbered(cells: list[Cell]) -> list[Cell]:
    """Return cells with their places: in the file, and among the code cells."""
    count, found = 0, []
    for place, cell in enumerate(cells):
        count += cell.kind == "code"
        number = count if cell.kind == "code" else 0
        found.append(replace(cell, number=number, places=(place,)))
    return found


class _Reader:
    """Goes through the cells; what one defines counts for those below."""

    def __init__(self, cells: list[Cell]) -> None:
        lines = (step_line(cell.source) for cell in cells)
        self._cells = [cell for cell in cells if cell.kind == "code"]
        self._taken = {line.split()[0] for line in lines if line and line.split()}
        self._source = Source()
        self._heading = ""
        self._section = ""
        self.steps: list[NewStep] = []
        self.plain: list[int] = []

    def read(self, cell: Cell) -> Cell:
        """Return a cell as it would be."""
        if cell.kind != "code":
            self._heading = last_heading(cell.source) or self._heading
            return cell
        if step_line(cell.source) is not None:
            return cell
        body = _body(cell.source)
        if body:
            self._source.take(body)
        if body is None or "parameters" in cell.tags or self._source.is_setup(body):
            self.plain.append(cell.number)
            return cell
        return self._step(cell, body)

    def _step(self, cell: Cell, body: list[ast.stmt]) -> Cell:
        """Return a cell as a step."""
        reads, writes = self._source.files(body)
        name = self._name(cell, body)
        drop = [n for n in self._source.scratch(body) if not self._is_shared(n, cell)]
        ignore = self._source.foreign(body)
        self.steps.append(
            NewStep(cell=cell.number, name=name, reads=reads, writes=writes, drop=drop,
                    ignore=ignore)
        )  # fmt: skip
        words, told = ["%%step", name], (reads, writes, drop, ignore)
        for option, values in zip(OPTIONS, told, strict=True):
            words += [f"--{option}", *map(shlex.quote, values)] if values else []
        text = cell.source.lstrip("\n")
        return replace(cell, source=f"{' '.join(words)}\n{text}")

    def _is_shared(self, name: str, cell: Cell) -> bool:
        """Tell whether another cell names something, too."""
        others = (o for o in self._cells if o.places[0] not in cell.places)
        return any(re.search(rf"\b{re.escape(name)}\b", o.source) for o in others)

    def _name(self, cell: Cell, body: list[ast.stmt]) -> str:
        """Return a name that no other step bears: of the heading, or what the cell says."""
        heading, self._heading = slug(self._heading), ""
        self._section = heading or self._section
        comment = slug(first_comment(cell.source))
        said = (heading, comment, made_last(body), self._section)
        base = next(filter(None, said), f"cell-{cell.number}")
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}-{count}"
        self._taken.add(name)
        return name


def _body(source: str) -> list[ast.stmt] | None:
    """Return the statements of a cell; None if it must stay plain."""
    text = source.lstrip()
    if text.startswith(TIMED):
        text = text.partition("\n")[2]
    elif text.startswith("%%") and not text.startswith(SHELLS):
        return None
    if INSTALLS.search(text):
        return None
    try:
        return parse_body(text)
    except SyntaxError:
        return None


def _joined(cells: list[Cell]) -> list[Cell]:
    """Return cells with neighbouring work under one heading in one cell."""
    source, found = Source(), list[Cell]()
    place = -1
    for cell in cells:
        if cell.kind != "code":
            place = -1 if last_heading(cell.source) else place
        elif not _is_work(cell, source):
            place = -1
        elif place >= 0:
            found[place] = _join(found[place], cell)
            continue
        else:
            place = len(found)
        found.append(cell)
    return found


def _is_work(cell: Cell, source: Source) -> bool:
    """Tell whether a cell can be joined with others: plain Python that is no setup."""
    body = _body(cell.source)
    if body is None or cell.tags or step_line(cell.source) is not None:
        return False
    source.take(body)
    if source.is_setup(body):
        return False
    try:
        return bool(ast.parse(cell.source).body)
    except SyntaxError:
        return False


def _join(one: Cell, other: Cell) -> Cell:
    """Return two cells as one; the first one's result is shown as it was."""
    text = f"{_shown(one.source)}\n\n{other.source}"
    return replace(one, source=text, places=(*one.places, *other.places))


def _shown(source: str) -> str:
    """Return a cell whose last expression is shown wherever it stands."""
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        return source
    call = last.value
    if isinstance(call, ast.Call) and ast.unparse(call.func) in {"print", "display"}:
        return source
    lines = source.split("\n")
    text = "\n".join(lines[last.lineno - 1 :])
    return "\n".join([*lines[: last.lineno - 1], f"display({text.rstrip()})"])


def _diff(found: Proposal, name: str) -> str:
    """Return what changes in a notebook, as a diff of its cells."""
    before, after = (list(_lines(cells)) for cells in (found.before, found.after))
    lines = difflib.unified_diff(before, after, name, f"{name} with steps", lineterm="")
    return "\n".join(lines)


def _lines(cells: list[Cell]) -> Iterator[str]:
    """Yield a notebook as lines of text."""
    for cell in cells:
        yield "# %%" if cell.kind == "code" else f"# %% [{cell.kind}]"
        yield from cell.source.split("\n")


def annotation_page(data: Annotation) -> Page:
    """Return an annotation for people.

    Parameters
    ----------
    data : Annotation
        From `annotate`.

    Returns
    -------
    Page
        The diff, the steps, and what a person has yet to say.
    """
    if not data["changed"]:
        return [f"{data['notebook']}: nothing to do"]
    rows = [
        (str(s["cell"]), s["name"], listed(s["reads"], 3), listed(s["writes"], 3))
        for s in data["steps"]
    ]
    page: list[Part] = [Diff(data["diff"]), ""]
    page.append(Table(("cell", "step", "reads", "writes"), rows))
    plain = ", ".join(map(str, data["plain"]))
    page += [f"cells that stay plain: {plain}"] if plain else []
    if data["findings"]:
        told = [
            f"{line['step'] or 'plain cell'}, line {line['line']}: {line['what']}"
            for line in data["findings"]
        ]
        page += ["", Tree("to look at (nbckpt lint tells what to do):", told)]
    is_written = "written to {}" if data["written"] else NOT_YET
    page += ["", is_written.format(data["notebook"])]
    return page
