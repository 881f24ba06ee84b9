"""``nbckpt lint``: what in a notebook's source would go wrong at a resume."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, TypedDict, cast

from nbckpt.lint import CODES, Finding, Report, lint, read_cell_page
from nbckpt.source.cells import parse_body, read_sources
from nbckpt.verbs.forms.pages import Page, Part, Table, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class LintLine(TypedDict):
    """One finding."""

    code: str
    cell: int
    step: str
    line: int
    what: str
    remedy: str
    reason: str
    """Why it is silenced; empty for others."""


class Lint(TypedDict):
    """What ``nbckpt lint --json`` prints."""

    notebook: str
    ok: bool
    findings: list[LintLine]
    silenced: list[LintLine]


def lint_notebook(notebook: Path) -> Lint:
    """Return what in a notebook's source would go wrong at a resume.

    Parameters
    ----------
    notebook : Path
        An ``.ipynb`` file, which is only read.

    Returns
    -------
    Lint
        In the order of the notebook.

    Raises
    ------
    BadNotebook
        If the file is missing, empty or broken.
    """
    report = _lint(read_sources(notebook))
    return Lint(
        notebook=str(notebook),
        ok=not report.findings,
        findings=list(map(_line, report.findings)),
        silenced=list(map(_line, report.silenced)),
    )


def _lint(sources: Iterable[str]) -> Report:
    """Return what is found in the cells of a notebook."""
    numbered = enumerate(sources, 1)
    return lint([read_cell_page(n, source, parse_body) for n, source in numbered])


def lint_sources(sources: Iterable[str]) -> list[LintLine]:
    """Return the findings in the code cells of a notebook; see `lint_notebook`."""
    return list(map(_line, _lint(sources).findings))


def _line(finding: Finding) -> LintLine:
    """Return a finding as JSON values."""
    return cast("LintLine", asdict(finding))


def notices(sources: Iterable[str]) -> dict[str, list[str]]:
    """Return the findings of each step, for its plan.

    Parameters
    ----------
    sources : iterable of str
        The text of each code cell.

    Returns
    -------
    dict
        Step → one line for each finding.
    """
    found: dict[str, list[str]] = {}
    for one in _lint(sources).findings:
        text = f"{one.code}, line {one.line}: {one.what}"
        found.setdefault(one.step, []).append(text)
    return found


def lint_page(data: Lint) -> Page:
    """Return findings for people.

    Parameters
    ----------
    data : Lint
        From `lint_notebook`.

    Returns
    -------
    Page
        Each finding with what to do.
    """
    found = data["findings"]
    said = f"{len(found)} findings" if len(found) != 1 else "1 finding"
    if data["silenced"]:
        said += f", {len(data['silenced'])} silenced"
    page: list[Part] = [Tree(f"notebook {data['notebook']}: {said}", _places(found))]
    if found:
        codes = sorted({line["code"] for line in found})
        page += ["", Table(("code", "what it is"), [(c, CODES[c]) for c in codes])]
        page.append("to silence one, on its line: # nbckpt: ok CODE reason")
    return page


def _places(found: list[LintLine]) -> list[Tree]:
    """Return findings by the cells that they are in."""
    places: dict[str, list[Tree]] = {}
    for line in found:
        where = f"step {line['step']}" if line["step"] else f"cell {line['cell']}"
        told = Tree(
            f"line {line['line']}: {line['code']}",
            [line["what"], f"do: {line['remedy']}"],
        )
        places.setdefault(where, []).append(told)
    return [Tree(where, told) for where, told in places.items()]
