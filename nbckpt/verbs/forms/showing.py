"""An answer with a picture: drawn by a front end, or written to a file; text elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt import places
from nbckpt.errors import BadStep
from nbckpt.verbs.forms import documents
from nbckpt.verbs.forms.pages import Page, plain, printable

if TYPE_CHECKING:
    from pathlib import Path

    from nbckpt.pictures import Picture

XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
MERMAID = ".mmd"


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer with a picture.

    Notes
    -----
    The tables stand below the picture in every form: an untrusted notebook shows no SVG,
    and a screen reader reads rows better than shapes.
    """

    picture: Picture
    page: Page
    mermaid: str = ""
    """The same as Mermaid text, if it is a graph."""

    def text(self) -> str:
        """Return the lines and tables as plain text."""
        return plain(self.page)

    def fragment(self) -> str:
        """Return picture and tables as a part of an HTML page."""
        style, picture = documents.CELLS, documents.framed(self.picture.svg())
        parts = [f"<style>{style}</style>", picture]
        parts += [documents.fragment(part) for part in self.page if part]
        return "\n".join(parts)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return what a front end shows."""
        del include, exclude
        return {"text/plain": self.text(), "text/html": self.fragment()}

    def write(self, path: Path) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : Path
            Its ending says in which form: ``.svg``, ``.html`` with the tables, or
            ``.mmd`` for Mermaid.

        Raises
        ------
        BadStep
            If there is no form of this ending.
        """
        forms = {".svg": lambda: XML + self.picture.svg() + "\n", ".html": self._whole}
        if self.mermaid:
            forms[MERMAID] = lambda: self.mermaid
        form = forms.get(path.suffix.lower())
        if form is None:
            raise BadStep(
                f"{path.name}: there is no picture of this ending",
                f"Name a file that ends in {', '.join(forms)}",
            )
        places.write_whole(path.absolute(), form().encode("utf-8", "replace"))

    def _whole(self) -> str:
        """Return picture and tables as an HTML file."""
        svg = self.picture.svg()
        section = documents.Section("", self.page, svg)
        return documents.page(printable(self.picture.title), [section])
