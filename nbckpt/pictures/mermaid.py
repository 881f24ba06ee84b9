"""A network as Mermaid text, which GitHub and JupyterLab draw by themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nbckpt.pictures.svg import UNFIT

if TYPE_CHECKING:
    from nbckpt.pictures.network import Network, Node

PLAIN = re.compile(r"[^\w .,:/+*…-]")
SHAPES = {"thing": ('(["', '"])'), "file": ('[/"', '"/]')}
BOX = ('["', '"]')
# Readable on light and on dark: the text has a colour of its own.
COLOURS = {
    "good": "fill:#d7f0dc,stroke:#1b7f3b,color:#101418",
    "kept": "fill:#f2faf4,stroke:#1b7f3b,color:#101418,stroke-dasharray:4 3",
    "now": "fill:#d9e8f8,stroke:#1565c0,color:#101418",
    "bad": "fill:#f9dcdc,stroke:#c62828,color:#101418",
    "lost": "fill:#f9dcdc,stroke:#c62828,color:#101418,stroke-dasharray:4 3",
    "warn": "fill:#faecd2,stroke:#9a5b00,color:#101418",
    "pending": "fill:#eceff2,stroke:#59636e,color:#101418,stroke-dasharray:2 2",
}


def flowchart(network: Network) -> str:
    """Return a network as Mermaid text.

    Parameters
    ----------
    network : Network
        What is to be drawn.

    Returns
    -------
    str
        A flowchart; no text in it is taken for Mermaid or HTML.
    """
    ids = {node.id: f"n{place}" for place, node in enumerate(network.nodes)}
    lines = ["flowchart TD"]
    lines += [f"  {ids[node.id]}{_box(node)}" for node in network.nodes]
    lines += [f"  {ids[upper]} --> {ids[lower]}" for upper, lower in network.edges]
    for kind, colours in COLOURS.items():
        members = [ids[node.id] for node in network.nodes if node.kind == kind]
        if members:
            lines.append(f"  classDef {kind} {colours}")
            lines.append(f"  class {','.join(members)} {kind}")
    return "\n".join(lines) + "\n"


def _box(node: Node) -> str:
    """Return the shape and the text of a node."""
    begin, end = SHAPES.get(node.kind, BOX)
    line = " ".join(UNFIT.sub("\N{REPLACEMENT CHARACTER}", node.text).split())
    return begin + PLAIN.sub(lambda found: f"#{ord(found[0])};", line) + end
