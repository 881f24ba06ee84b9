"""Three readers of stream text, each simple enough to be checked by eye.

What they show of the folded text must be what they show of the raw text.
"""

from __future__ import annotations

import re
import unicodedata

Cell = tuple[str, tuple[str, ...]]

_TOKEN = re.compile(
    r"\x1b\[(?P<erase>[02]?)K|\x1b\[(?P<colour>[0-9;]*)m|(?P<plain>.)", re.DOTALL
)


def nbclient(text: str) -> str:
    """Show text as nbclient stores it: nothing of a line before its last return."""
    return re.sub(r".*\r(?=[^\n])", "", text)


def notebook(text: str) -> list[str]:
    """Show text as Jupyter front ends do: characters cover characters."""
    lines = re.sub(r"\r+\n", "\n", _delete(text)).split("\n")
    return [_overwrite(line) for line in lines]


def terminal(text: str) -> Screen:
    """Show text as a terminal does: cells cover cells, tabs skip them."""
    screen = Screen()
    for token in _TOKEN.finditer(text):
        screen.take(token)
    return screen


class Screen:
    """Rows of coloured cells, and the cursor."""

    def __init__(self) -> None:
        self.rows: list[dict[int, Cell]] = [{}]
        self.column = 0
        self.colours: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Compare what shows, and where and how text would go on."""
        return isinstance(other, Screen) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the cells, for a failed test."""
        return f"{self.rows} {self.column} {self.colours}"

    def take(self, token: re.Match[str]) -> None:
        """Take a code or a character."""
        if token["plain"] is not None:
            self._type(token["plain"])
        elif token["colour"] is not None:
            self._colour(token["colour"])
        else:
            row = self.rows[-1]
            for column in list(row):
                if token["erase"] == "2" or column >= self.column:
                    del row[column]

    def _colour(self, code: str) -> None:
        """Begin a colour; what it sets stays set until the reset."""
        kept = () if code in {"", "0"} or code.startswith("0;") else self.colours
        if code not in {"", "0"}:
            kept = (*(old for old in kept if old != code), code)
        self.colours = kept

    def _type(self, character: str) -> None:
        """Take a character."""
        if character == "\n":
            self.rows.append({})
            self.column = 0
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character == "\t":
            self.column += 8 - self.column % 8
        elif unicodedata.category(character) != "Mn":
            self._print(character)

    def _print(self, character: str) -> None:
        """Fill one cell, or two; half of a wide character can't stay."""
        wide = unicodedata.east_asian_width(character) in {"W", "F"}
        row = self.rows[-1]
        for column in range(self.column, self.column + 1 + wide):
            old = row.get(column, ("", ()))[0]
            row.pop(column - 1 if old == "right half" else column, None)
            if old.startswith("wide"):
                row.pop(column + 1, None)
        row[self.column] = ("wide " * wide + character, self.colours)
        if wide:
            row[self.column + 1] = ("right half", self.colours)
        self.column += 1 + wide


def _delete(text: str) -> str:
    r"""Take each ``\b`` as the deletion of what stands before it."""
    while (shorter := re.sub("[^\n]\x08", "", text)) != text:
        text = shorter
    return text


def _overwrite(line: str) -> str:
    """Apply the returns of one line, counting characters as JavaScript does."""
    shown = b""
    for redraw in line.split("\r"):
        units = redraw.encode("utf-16-le", "surrogatepass")
        shown = units + shown[len(units) :]
    return shown.decode("utf-16-le", "replace")
