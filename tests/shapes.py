"""The shapes of JSON answers, read from the code: ``python -m tests.shapes`` writes them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.verbs.forms.pages import JSON_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/json.md"
PRINTS = re.compile(r"What ``nbckpt ([a-z]+) --(?:json|format json)`` prints")
LISTED = {"runs": "RunLine", "monitor": "Report"}
"""Verbs that print a list of shapes, or one for each line."""
HEAD = """\
# JSON answers

Each verb that reads takes `--json` and prints one document of the shape below; `nbckpt runs`
prints a list of them, `nbckpt monitor` one in each line. Keys are never taken away or given
another meaning within one major version; new ones may come. Times are seconds since the epoch,
lengths of time are seconds, sizes are bytes. The exit code is the same as without `--json`.

Each document begins with `schema_version` (each of the list of `runs`, each line of `monitor`).
It is {version} now, and is raised when a key goes away or gets another meaning.

This page is made of the code: `python -m tests.shapes`.
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A TypedDict of the package."""

    name: str
    text: str
    rows: tuple[tuple[str, str, str], ...]


def shapes() -> dict[str, Shape]:
    """Return all TypedDicts by name."""
    found: dict[str, Shape] = {}
    for path in sorted((ROOT / "nbckpt").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and "TypedDict" in _bases(node):
                found.setdefault(node.name, _shape(node))
    return found


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base) for base in node.bases]


def _shape(node: ast.ClassDef) -> Shape:
    rows, text = [], ast.get_docstring(node) or ""
    for statement, after in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign):
            said = after.value if isinstance(after, ast.Expr) else None
            told = said.value if isinstance(said, ast.Constant) else ""
            kind = re.sub(r"\b[a-z]+\.", "", ast.unparse(statement.annotation))
            rows.append((ast.unparse(statement.target), kind, _plain(str(told))))
    return Shape(node.name, text, tuple(rows))


def _plain(text: str) -> str:
    words = " ".join(text.split()).replace("|", "\\|")
    return words.replace("``", "`")


def verbs(known: dict[str, Shape]) -> dict[str, str]:
    """Return verb → name of its shape."""
    told = ((PRINTS.match(shape.text), name) for name, shape in known.items())
    return LISTED | {found[1]: name for found, name in told if found}


def page() -> str:
    """Return the page."""
    known = shapes()
    tops = verbs(known)
    parts = [HEAD.format(version=JSON_VERSION)]
    for verb, name in sorted(tops.items()):
        parts.append(f"## {verb}\n\n{_table(known[name])}")
    inner = sorted(set(_reached(known, tops)) - set(tops.values()))
    parts.append("## Parts\n")
    parts += [
        f"### {n}\n\n{_plain(known[n].text)}\n\n{_table(known[n])}" for n in inner
    ]
    return "\n".join(parts)


def _table(shape: Shape) -> str:
    kinds = ((key, kind.replace("|", "or"), what) for key, kind, what in shape.rows)
    rows = [f"| `{key}` | `{kind}` | {what} |" for key, kind, what in kinds]
    return "\n".join(["| key | type | what it is |", "|---|---|---|", *rows, ""])


def _reached(known: dict[str, Shape], tops: dict[str, str]) -> Iterator[str]:
    queue, seen = list(tops.values()), set[str]()
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        yield name
        kinds = " ".join(kind for _, kind, _ in known[name].rows)
        queue += [word for word in re.findall(r"\w+", kinds) if word in known]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
