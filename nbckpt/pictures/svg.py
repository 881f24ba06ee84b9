"""SVG as text: escaped, themed by its host, readable to a screen reader."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

UNFIT = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd"
    "\U00010000-\U0010ffff]"
)
"""What XML can't hold, and what turns the direction of the text after it."""
LETTER = 6.8
"""Width of a letter of 12 px as most fonts have it."""
WIDE = 12.4
MARGIN = 8.0
READ = frozenset({"title", "desc", "text"})
"""All that an untrusted notebook leaves of a picture: a line each, so that words stay apart."""

# In a notebook the front end's own colours; elsewhere ours, which follow the system.
STYLE = """
.nbckpt-picture { color-scheme: light dark; font: 12px var(--jp-ui-font-family,
  var(--vscode-font-family, system-ui, sans-serif)); --nb-ground: #ffffff;
  --nb-ink: #1c2126; --nb-faint: #59636e; --nb-line: #d5dae0; --nb-good: #1b7f3b;
  --nb-now: #1565c0; --nb-bad: #c62828; --nb-warn: #9a5b00; }
@media (prefers-color-scheme: dark) { .nbckpt-picture { --nb-ground: #16191d;
  --nb-ink: #e8ebee; --nb-faint: #a0abb5; --nb-line: #3a424b; --nb-good: #4cc36b;
  --nb-now: #64a9f5; --nb-bad: #f2736b; --nb-warn: #e0a23a; } }
.nbckpt-picture { --ground: var(--jp-layout-color1,
    var(--vscode-editor-background, var(--nb-ground)));
  --ink: var(--jp-ui-font-color1, var(--vscode-editor-foreground, var(--nb-ink)));
  --faint: var(--jp-ui-font-color2,
    var(--vscode-descriptionForeground, var(--nb-faint)));
  --line: var(--jp-border-color2, var(--vscode-panel-border, var(--nb-line)));
  --good: var(--jp-success-color1, var(--nb-good));
  --now: var(--jp-brand-color1, var(--nb-now));
  --bad: var(--jp-error-color1, var(--nb-bad));
  --warn: var(--jp-warn-color1, var(--nb-warn)); }
.nbckpt-picture .ground { fill: var(--ground); stroke: none; }
.nbckpt-picture text { fill: var(--ink); stroke: none; }
.nbckpt-picture .faint { fill: var(--faint); }
.nbckpt-picture .line { stroke: var(--line); fill: none; }
.nbckpt-picture .cut { stroke: var(--faint); fill: none; stroke-dasharray: 1 3; }
.nbckpt-picture .edge { stroke: var(--faint); fill: none; stroke-width: 1.2; }
.nbckpt-picture .tip { fill: var(--faint); stroke: none; }
.nbckpt-picture .thing { fill: none; stroke: var(--line); }
.nbckpt-picture .file { fill: none; stroke: var(--faint); }
.nbckpt-picture .pending { fill: none; stroke: var(--faint); stroke-dasharray: 2 2; }
.nbckpt-picture .good { fill: var(--good); stroke: var(--good); }
.nbckpt-picture .pale { fill: var(--good); fill-opacity: .45; stroke: var(--good); }
.nbckpt-picture .kept { fill: none; stroke: var(--good); stroke-width: 1.5; }
.nbckpt-picture .now { fill: var(--now); stroke: var(--now); }
.nbckpt-picture .bad { fill: var(--bad); stroke: var(--bad); }
.nbckpt-picture .cross { stroke: var(--ground); fill: none; stroke-width: 1.5; }
.nbckpt-picture .lost { fill: var(--bad); fill-opacity: .25; stroke: var(--bad);
  stroke-dasharray: 4 2; }
.nbckpt-picture .warn { fill: var(--warn); fill-opacity: .35; stroke: var(--warn);
  stroke-width: 1.5; }
.nbckpt-picture .box { fill-opacity: .12; stroke-width: 1.5; }
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that needs nothing but what is in it."""

    title: str
    told: str
    """What it shows, in a sentence, for who does not see it."""
    width: float
    height: float
    body: str
    """Shapes, as `tag` gives them."""

    def svg(self) -> str:
        """Return the picture as SVG: a file of its own, or a part of a page."""
        ground = tag("rect", cls="ground", width=self.width, height=self.height)
        inner = (
            tag("title", safe(self.title))
            + tag("desc", safe(self.told))
            + tag("style", STYLE)
        )
        return tag(
            "svg",
            inner + ground + self.body,
            xmlns="http://www.w3.org/2000/svg",
            cls="nbckpt-picture",
            viewBox=f"0 0 {number(self.width)} {number(self.height)}",
            width=self.width,
            height=self.height,
            role="img",
            aria_label=self.title,
        )


def safe(content: str) -> str:
    """Return text that SVG and HTML show as it is.

    Parameters
    ----------
    content : str
        Any text; a foreign store may hold such.

    Returns
    -------
    str
        What XML can't hold is replaced.
    """
    return html.escape(UNFIT.sub("\N{REPLACEMENT CHARACTER}", content))


def tag(name: str, inner: str = "", **attributes: str | float) -> str:
    """Return an element.

    Parameters
    ----------
    name : str
        Its name.
    inner : str, optional
        What it holds, escaped already.
    **attributes : str or float
        Escaped here; ``cls`` stands for ``class``, an underscore for a hyphen.

    Returns
    -------
    str
        XML.

    Examples
    --------
    >>> tag("rect", cls="good", width=2.0)
    '<rect class="good" width="2"/>'
    """
    said = "".join(
        f' {"class" if key == "cls" else key.replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
    )
    end = "\n" if name in READ else ""
    return f"<{name}{said}>{inner}</{name}>{end}" if inner else f"<{name}{said}/>"


def _attribute(value: str | float) -> str:
    """Return the value of an attribute."""
    return safe(value) if isinstance(value, str) else number(value)


def number(value: float) -> str:
    """Return a length with one digit after the point at most.

    Parameters
    ----------
    value : float
        In pixels.

    Returns
    -------
    str
        Without a zero after the point.
    """
    return f"{value:.1f}".removesuffix(".0")


def label(x: float, y: float, content: str, **attributes: str | float) -> str:
    """Return a line of text whose middle stands at a height.

    Parameters
    ----------
    x, y : float
        Where.
    content : str
        Any text.
    **attributes : str or float
        Such as ``text_anchor``.

    Returns
    -------
    str
        XML.
    """
    return tag("text", safe(content), x=x, y=y + 4, **attributes)


def width_of(content: str) -> float:
    """Return about how wide a text is, in pixels.

    Parameters
    ----------
    content : str
        Any text.

    Returns
    -------
    float
        No font is asked; letters of East Asia count as wide.
    """
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in content)
    return wide * WIDE + (len(content) - wide) * LETTER


def shortened(content: str, width: float) -> str:
    """Return a text that fits, with an ellipsis where it was cut.

    Parameters
    ----------
    content : str
        Any text.
    width : float
        In pixels.

    Returns
    -------
    str
        In one line.
    """
    line = " ".join(content.split())
    if width_of(line) <= width:
        return line
    while line and width_of(line) + LETTER > width:
        line = line[:-1]
    return f"{line}…"
