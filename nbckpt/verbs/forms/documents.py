"""Documents of several sections: as text, Markdown, or one HTML file of its own.

What is shown can come from a foreign store: it is escaped everywhere, and the HTML holds
no script and loads nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING

from nbckpt.verbs.forms.pages import Page, Part, Table, Tree, as_html, plain, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKS = re.compile(r"([\\`*\[\]<>|&#~])|(?<![A-Za-z0-9])(_)|(_)(?![A-Za-z0-9])")
SHORT = 32
"""Letters of a cell that are shown in one line, however narrow the page is."""
CELLS = """
.nbckpt-wide { overflow-x: auto; }
.nbckpt-wide.nbckpt-wide :is(th, td) { text-align: left; white-space: nowrap; }
.nbckpt-wide.nbckpt-wide .nbckpt-long { white-space: normal; overflow-wrap: anywhere;
  min-width: 22ch; }
"""
"""Of tables, in a notebook as well: there the doubled class wins over the host's rules."""
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto;
  padding: 0 1rem; color: CanvasText; background: Canvas; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid GrayText; }
p { white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0; }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document under a title; HTML needs none."""

    title: str
    parts: Page
    picture: str = ""
    """SVG that HTML shows above its parts; other forms leave it out."""


class Code(str):
    """A line that is copied as it is, such as a command."""

    __slots__ = ()


def text(title: str, sections: Iterable[Section]) -> str:
    """Return a document as plain text.

    Parameters
    ----------
    title : str
        Its title.
    sections : iterable of Section
        Those without parts are left out.

    Returns
    -------
    str
        Titles are underlined; a line break at the end.
    """
    return plain(outline(title, sections)) + "\n"


def outline(title: str, sections: Iterable[Section]) -> Page:
    """Return a document as one page.

    Parameters
    ----------
    title : str
        Its title.
    sections : iterable of Section
        Those without parts are left out.

    Returns
    -------
    Page
        Titles are underlined.
    """
    found: list[Part] = [title, "=" * len(title)]
    for section in _full(sections):
        found += ["", section.title, "-" * len(section.title), *section.parts]
    return found


def markdown(title: str, sections: Iterable[Section]) -> str:
    """Return a document as Markdown with tables as GitHub reads them.

    Parameters
    ----------
    title : str
        Its title.
    sections : iterable of Section
        Those without parts are left out.

    Returns
    -------
    str
        No text in it is taken for Markdown or HTML.
    """
    found = [f"# {_escaped(title)}"]
    for section in _full(sections):
        found.append(f"## {_escaped(section.title)}")
        found += [_marked(part) for part in section.parts if part]
    return printable("\n\n".join(found)) + "\n"


def _marked(part: Part) -> str:
    """Return a part of a page as Markdown."""
    if isinstance(part, Tree):
        return _bullet(part)
    if isinstance(part, Code):
        return "    " + " ".join(part.splitlines())
    if isinstance(part, str):
        return "  \n".join(_escaped(line) for line in part.splitlines())
    rows = [part.head, ("---",) * len(part.head), *part.rows]
    return "\n".join(
        "| " + " | ".join("---" if n == 1 else _cell(text) for text in row) + " |"
        for n, row in enumerate(rows)
    )


def _bullet(part: Part) -> str:
    """Return a part of a tree as an item of a list."""
    text, below = (part.text, part.branches) if isinstance(part, Tree) else (part, ())
    items = [indent(_bullet(branch), "  ") for branch in below]
    return "\n".join(["- " + indent(_marked(text), "  ").lstrip(), *items])


def _cell(content: str) -> str:
    """Return the text of a table's cell, in one line."""
    return _escaped(" ".join(content.split()))


def _escaped(content: str) -> str:
    """Return text that Markdown shows as it is."""
    line = MARKS.sub(lambda found: "\\" + found[0], content)
    return re.sub(r"^(\s*)([-+=]|\d+[.)])(?=\s|$|-|=)", _guarded, line)


def _guarded(found: re.Match[str]) -> str:
    """Return the begin of a line that would be a list or a rule."""
    space, mark = found[1], found[2]
    return f"{space}{mark[:-1]}\\{mark[-1]}"


def page(title: str, sections: Iterable[Section]) -> str:
    """Return a document as one HTML file that needs nothing else.

    Parameters
    ----------
    title : str
        Its title.
    sections : iterable of Section
        Those without parts are left out.

    Returns
    -------
    str
        Readable without scripts, in light and dark.
    """
    body = [f"<h1>{as_html(title)}</h1>"]
    for section in _full(sections):
        body += [f"<h2>{as_html(section.title)}</h2>"] if section.title else []
        body += [framed(section.picture)] if section.picture else []
        body += [fragment(part) for part in section.parts if part]
    head = HEAD.format(title=as_html(title), style=STYLE + CELLS)
    return head + "\n".join([*body, END])


POLICY = "default-src 'none'; style-src 'unsafe-inline'"
HEAD = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
    "<title>{title}</title>\n<style>{style}</style>\n<main>\n"
)
END = "</main>\n</html>\n"


def framed(picture: str) -> str:
    """Return a picture as a part of a page; a wide one scrolls within it.

    Parameters
    ----------
    picture : str
        SVG.

    Returns
    -------
    str
        HTML.
    """
    return f'<div class="nbckpt-wide" tabindex="0">{picture}</div>'


def fragment(part: Part) -> str:
    """Return a line, a table or a tree as a part of a document.

    Parameters
    ----------
    part : Part
        Of a page; a tree becomes lists within lists.

    Returns
    -------
    str
        HTML.
    """
    if isinstance(part, str):
        return f"<p>{as_html(part)}</p>"
    if isinstance(part, Tree):
        items = "\n".join(map(_item, part.branches))
        return f"<p>{as_html(part.text)}</p>\n<ul>\n{items}\n</ul>"
    head = "".join(f'<th scope="col">{as_html(name)}</th>' for name in part.head)
    rows = "\n".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in part.rows)
    return (
        '<div class="nbckpt-wide" tabindex="0">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _item(branch: Part) -> str:
    """Return a branch as an item of a list; a table needs no bullet."""
    style = ' style="list-style: none"' if isinstance(branch, Table) else ""
    return f"<li{style}>{fragment(branch)}</li>"


def _data(cell: str) -> str:
    """Return a cell of a table: words and times stay whole, texts and digests break."""
    long = ' class="nbckpt-long"' if len(cell) > SHORT else ""
    return f"<td{long}>{as_html(cell)}</td>"


def _full(sections: Iterable[Section]) -> list[Section]:
    """Return the sections that say something."""
    return [section for section in sections if section.parts]
