"""The README and the documents, as their readers have them: code blocks and links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
)
FENCES = re.compile(
    r"(?:^<!-- not run: (.+?) -->\n)?^```(\S*)\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


class Block(NamedTuple):
    """A code block."""

    why_not: str
    """Why no test runs it; empty: one does."""
    language: str
    text: str


def text_of(page: str) -> str:
    """Return the text of a page, which is named from the root of the repository."""
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> list[Block]:
    """Return all code blocks of a page."""
    return [Block(*found) for found in FENCES.findall(text_of(page))]


def run(page: str, language: str) -> list[str]:
    """Return the blocks of a language that a test runs."""
    return [b.text for b in blocks(page) if b.language == language and not b.why_not]


def commands(page: str) -> list[str]:
    """Return each ``nbckpt`` line of a page, in blocks and in its text."""
    lines = [line for block in blocks(page) for line in block.text.splitlines()]
    lines += re.findall(r"`(nbckpt [^`]+)`", text_of(page))
    return [line for line in lines if line.startswith("nbckpt ")]


def links(page: str) -> list[str]:
    """Return the files that a page links to or shows."""
    return re.findall(r"\]\(([^)#:]+)[^):]*\)", text_of(page))
