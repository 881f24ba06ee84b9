r"""Folding of carriage returns: of a line drawn a million times, what still shows.

A progress bar is one line of text drawn again and again after ``\r``. Only those
redraws are kept that a reader could still see. Three readers must see the same in the
folded text as in the raw text: a terminal (new text covers old cells), JupyterLab (new
text covers old characters, escape codes included) and nbclient (what stood before the
last ``\r`` of a line is gone). So a redraw is dropped only where a later one covers it
by cells *and* by characters, and the last one stays as it is.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from dataclasses import dataclass

PENDING_LIMIT = 1 << 14
"""Characters of an unfinished line that are held back; a longer one is passed on."""

_CODE = re.compile(r"\x1b\[(?:[02]?K|([0-9;]*)m)")
_ERASE = re.compile(r"\x1b\[[02]?K")
_TAB = 8
_STYLE_LIMIT = 32

Style = tuple[str, ...]
"""Colour codes in force since the last reset, each once, the latest last."""

_DEFAULT: Style = ()
_UNKNOWN: Style = ("?",)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """One redraw of a line, and the room it takes."""

    text: str
    chars: int
    cells: float
    """Screen cells it covers; infinite if it erases the rest of the line."""
    before: Style
    after: Style
    gaps: frozenset[int] = frozenset()
    """Cells that a tab skips, so that older text shows there."""
    narrow: bool = False
    """Whether each character is one printable cell and nothing else."""
    retreat: int = 0
    r"""Length of the closing row of ``\b``, which JupyterLab takes as deletions."""
    opaque: bool = False
    """Whether it holds codes whose effect is not known."""

    @property
    def _left_by_retreat(self) -> int:
        r"""Characters left where each closing ``\b`` deletes one (JupyterLab)."""
        return self.chars - self.retreat

    @property
    def _left_by_pairs(self) -> int:
        r"""Characters left where two ``\b`` also delete each other (VS Code)."""
        return self.chars - (2 - self.retreat % 2 if self.retreat else 0)

    def covers(self, other: _Drawing) -> bool:
        """Return whether nothing of an older redraw shows under this one."""
        return (
            not (self.opaque or other.opaque)
            and other.before == other.after
            and self._left_by_retreat >= other._left_by_retreat
            and self._left_by_pairs >= other._left_by_pairs
            and self.cells >= other.cells
            and self.gaps <= other.gaps
        )


class Redraws:
    r"""The unfinished line of one stream, folded while it grows.

    Parameters
    ----------
    fresh : bool
        Whether the text begins on an empty line, in the default colour. If not, the
        text up to the first ``\r`` continues something unknown and is kept.

    Notes
    -----
    Holds at most `PENDING_LIMIT` characters between two calls. A longer line is passed
    on unfolded, so redraws of lines longer than that are not folded. The same is true
    of lines with cursor movements other than ``\r`` and a closing row of ``\b``.

    Examples
    --------
    >>> line = Redraws(fresh=True)
    >>> line.add("\r 1%\r 2%")
    ''
    >>> line.add("\r99%\ndone")
    '99%\n'
    >>> line.rest()
    'done'
    """

    def __init__(self, *, fresh: bool) -> None:
        self._style = _DEFAULT if fresh else _UNKNOWN
        self._begin_line(fresh=fresh)

    @property
    def clean(self) -> bool:
        """Whether the text so far ends at a line start in the default colour."""
        return self._fresh and self._open == [""] and self._style == _DEFAULT

    def add(self, text: str) -> str:
        """Take more text.

        Parameters
        ----------
        text : str
            What the stream wrote next.

        Returns
        -------
        str
            Text that is final, because its line is finished or too long.
        """
        if "\r" not in text and not self._buried and len(self._open) == 1:
            final = self._add_plain(text)
        else:
            *lines, tail = text.split("\n")
            final = "".join(self._finish_line(line) for line in lines)
            self._draw(tail)
        return final + self.rest() if self._pending() > PENDING_LIMIT else final

    def rest(self) -> str:
        """Give up the unfinished line, because something else follows.

        Returns
        -------
        str
            The line as it stands.
        """
        text = self._shown()
        if text:
            self._note_style()
            self._begin_line(fresh=False)
        return text

    def _begin_line(self, *, fresh: bool) -> None:
        """Start a line: empty if fresh, else with something unknown on it."""
        self._fresh = fresh
        self._buried: list[_Drawing] = []
        self._open = [""]

    def _pending(self) -> int:
        """Count the characters that are held back."""
        texts = [drawing.text for drawing in self._buried] + self._open
        return sum(map(len, texts)) + len(texts) - 1

    def _add_plain(self, text: str) -> str:
        """Take text without redraws: whole lines pass through."""
        self._open[0] += text
        lines, newline, tail = self._open[0].rpartition("\n")
        if newline:
            self._style = _restyle(self._style, lines)
            self._begin_line(fresh=True)
            self._open = [tail]
        return lines + newline

    def _finish_line(self, text: str) -> str:
        """Take the last text of a line and return the line."""
        self._draw(text)
        line = self._shown()
        self._note_style()
        self._begin_line(fresh=True)
        return line + "\n"

    def _draw(self, text: str) -> None:
        r"""Take text without newline, with any number of ``\r``."""
        first, *redraws = text.split("\r")
        self._write(first)
        for redraw in redraws:
            self._return()
            self._write(redraw)

    def _return(self) -> None:
        r"""Take one ``\r``; of several in a row two tell as much."""
        if len(self._open) == 1:
            self._open.append("")
        elif self._open[0] or len(self._buried) < self._pinned:
            self._bury(self._open[0])
            self._open = ["", ""]

    def _write(self, text: str) -> None:
        """Write at the cursor; behind a return that covers what stood there."""
        if not text:
            return
        if len(self._open) == 1:
            self._open[0] += text
        else:
            self._bury(self._open[0])
            self._open = [text]

    def _bury(self, text: str) -> None:
        """Put a redraw under the next one, without what it covers itself."""
        drawing = _measure(text, self._style)
        self._style = drawing.after
        self._uncover(drawing)
        below = len(self._buried) - self._pinned
        if below > 0 and drawing.narrow and self._buried[-1].narrow:
            self._buried[-1] = _overlay(self._buried[-1], drawing)
        elif text or below < 0:
            self._buried.append(drawing)

    @property
    def _pinned(self) -> int:
        """Number of redraws that must stay, as they continue something unknown."""
        return 0 if self._fresh else 1

    def _uncover(self, drawing: _Drawing) -> None:
        """Drop the redraws that this one covers, from the latest on."""
        while len(self._buried) > self._pinned and drawing.covers(self._buried[-1]):
            if self._buried[-1].retreat and len(self._buried) > 1:
                return
            self._buried.pop()

    def _shown(self) -> str:
        """Return the shortest text that shows the line."""
        top = self._open[0] or self._open[-1]
        if self._buried and top:
            self._uncover(_measure(top, self._style))
        return "\r".join([d.text for d in self._buried] + self._open)

    def _note_style(self) -> None:
        """Take over the colour that the unfinished redraw leaves."""
        self._style = _restyle(self._style, self._open[0])
        self._style = _restyle(self._style, "".join(self._open[1:]))


def _overlay(old: _Drawing, new: _Drawing) -> _Drawing:
    """Return one narrow redraw that shows a longer one under a shorter one."""
    text = new.text + old.text[new.chars :]
    return _Drawing(text, old.chars, old.cells, old.before, new.after, narrow=True)


def _measure(text: str, before: Style) -> _Drawing:
    """Return a redraw with its room."""
    if text.isascii() and text.isprintable():
        return _Drawing(text, len(text), len(text), before, before, narrow=True)
    body = text.rstrip("\b")
    bare = _CODE.sub("", body)
    after = _restyle(before, text)
    erases = bool(_ERASE.search(body))
    if len(text) > 2 * len(body) or not _is_known(bare, erases=erases):
        return _Drawing(text, len(text), 0, before, after, opaque=True)
    cells, gaps = _room(bare)
    return _Drawing(
        text,
        chars=_units(body),
        cells=math.inf if erases else cells,
        before=before,
        after=after,
        gaps=gaps,
        narrow=bare == text and _is_narrow(text),
        retreat=len(text) - len(body),
    )


def _is_known(bare: str, *, erases: bool) -> bool:
    """Return whether it is known which cells a text without codes covers."""
    return (bare if erases else bare.replace("\t", "")).isprintable()


def _room(bare: str) -> tuple[int, frozenset[int]]:
    """Return how many cells printable text spans, and those that tabs skip."""
    first, *others = bare.split("\t")
    column = sum(map(_width, first))
    gaps: set[int] = set()
    for other in others:
        stop = column - column % _TAB + _TAB
        gaps.update(range(column, stop))
        column = stop + sum(map(_width, other))
    return column, frozenset(gaps)


def _units(text: str) -> int:
    """Count characters as JavaScript does, where some count twice."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_narrow(text: str) -> bool:
    """Return whether each character takes one cell and counts once."""
    return all(c != "\t" and _width(c) == 1 == _units(c) for c in set(text))


@functools.lru_cache(maxsize=4096)
def _width(character: str) -> int:
    """Return how many cells a printable character takes."""
    if unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _restyle(style: Style, text: str) -> Style:
    """Return the colour codes in force after a text."""
    if "\x1b" not in text:
        return style
    if "\x1b" in _CODE.sub("", text):
        return _UNKNOWN
    for code in _CODE.finditer(text):
        values = code[1]
        if values is not None:
            style = _recolour(style, values)
    return style if len(style) <= _STYLE_LIMIT else _UNKNOWN


def _recolour(style: Style, values: str) -> Style:
    """Return the colour codes in force after one more code."""
    if values in {"", "0"}:
        return _DEFAULT
    base = _DEFAULT if values.startswith("0;") else style
    return (*(old for old in base if old != values), values)
