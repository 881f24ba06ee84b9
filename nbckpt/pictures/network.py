"""Steps and what goes between them, in rows from top to bottom.

A layered drawing after Sugiyama, Tagawa and Toda (1981): each node stands below all that
it rests on, long edges pass through places of their own, and the order in a row follows
from the middle of the neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from nbckpt.pictures.svg import (
    MARGIN,
    Picture,
    label,
    number,
    safe,
    shortened,
    tag,
    width_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROW = 52.0
HEIGHT = 24.0
GAP = 22.0
TEXT = 190.0
PASSAGE = 8.0
"""Width of the place through which an edge passes a row."""
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Node:
    """A box."""

    id: str
    text: str
    kind: str
    """``thing`` and ``file``, or the state of a step: a class of the picture's style."""
    told: str = ""
    """All that is in it; shown where a pointer rests on it."""


@dataclass(frozen=True, slots=True)
class Network:
    """What is to be drawn; an edge leads from one node to one that rests on it."""

    title: str
    told: str
    nodes: tuple[Node, ...]
    """Each after those that it rests on."""
    edges: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Layout:
    """Rows of nodes and passages, by id, and the edges from row to row."""

    rows: list[list[str]]
    above: dict[str, list[str]] = field(default_factory=dict)
    below: dict[str, list[str]] = field(default_factory=dict)

    def join(self, upper: str, lower: str) -> None:
        """Add an edge between two rows."""
        self.below.setdefault(upper, []).append(lower)
        self.above.setdefault(lower, []).append(upper)


def network_picture(network: Network) -> Picture:
    """Draw a network.

    Parameters
    ----------
    network : Network
        What is to be drawn.

    Returns
    -------
    Picture
        As wide as its widest row.
    """
    rows = ranks([node.id for node in network.nodes], network.edges)
    layout, paths = _layout(rows, network.edges)
    _untangle(layout)
    nodes = {node.id: node for node in network.nodes}
    widths = {name: _width(nodes.get(name)) for row in layout.rows for name in row}
    places = _places(layout, widths)
    left = min((places[n] - widths[n] / 2 for n in places), default=0.0) - MARGIN
    right = max((places[n] + widths[n] / 2 for n in places), default=0.0) + MARGIN
    spots = {
        name: (places[name] - left, MARGIN + HEIGHT / 2 + ROW * depth)
        for depth, row in enumerate(layout.rows)
        for name in row
    }
    shapes = [_edge([spots[name] for name in path]) for path in paths]
    shapes += [_node(node, *spots[node.id], widths[node.id]) for node in network.nodes]
    height = MARGIN * 2 + HEIGHT + ROW * max(len(layout.rows) - 1, 0)
    width = max(right - left, width_of("no steps yet"))
    return Picture(network.title, network.told, width, height, "".join(shapes))


def ranks(names: Sequence[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the row of each node: one below the lowest that it rests on.

    Parameters
    ----------
    names : sequence of str
        All nodes, each after those that it rests on.
    edges : iterable of tuple of str
        From, to.

    Returns
    -------
    dict of str to int
        Rows from 0. What nothing leads to stands right above the first that it leads to.
    """
    into: dict[str, list[str]] = {name: [] for name in names}
    out: dict[str, list[str]] = {name: [] for name in names}
    for upper, lower in edges:
        into[lower].append(upper)
        out[upper].append(lower)
    found: dict[str, int] = {}
    for name in names:
        found[name] = max((found[n] + 1 for n in into[name]), default=0)
    for name in names:
        if not into[name] and out[name]:
            found[name] = min(found[lower] for lower in out[name]) - 1
    return found


def _layout(
    rows: Mapping[str, int], edges: Iterable[tuple[str, str]]
) -> tuple[_Layout, list[list[str]]]:
    """Return the rows with passages for long edges, and the path of each edge."""
    depth = max(rows.values(), default=-1) + 1
    layout = _Layout([[] for _ in range(depth)])
    for name, row in rows.items():
        layout.rows[row].append(name)
    paths = []
    for order, (upper, lower) in enumerate(edges):
        between = range(rows[upper] + 1, rows[lower])
        passages = [f"\N{NULL}{order}.{row}" for row in between]
        for row, name in zip(between, passages, strict=True):
            layout.rows[row].append(name)
        path = [upper, *passages, lower]
        for one, other in pairwise(path):
            layout.join(one, other)
        paths.append(path)
    return layout, paths


def _untangle(layout: _Layout) -> None:
    """Put each node of a row near the middle of its neighbours, down and up again."""
    for _ in range(SWEEPS):
        for one, other in pairwise(layout.rows):
            _sort(other, one, layout.above)
        for one, other in pairwise(reversed(layout.rows)):
            _sort(other, one, layout.below)


def _sort(row: list[str], beside: list[str], near: Mapping[str, list[str]]) -> None:
    """Sort a row by the places of its neighbours in the row beside it."""
    places = {name: place for place, name in enumerate(beside)}
    own = {name: float(place) for place, name in enumerate(row)}
    for name in row:
        found = [places[n] for n in near.get(name, []) if n in places]
        if found:
            own[name] = sum(found) / len(found)
    row.sort(key=lambda name: own[name])


def _places(layout: _Layout, widths: Mapping[str, float]) -> dict[str, float]:
    """Return the middle of each node; rows are drawn towards their neighbours."""
    places: dict[str, float] = {}
    for row in layout.rows:
        x = 0.0
        for name in row:
            places[name] = x + widths[name] / 2
            x += widths[name] + GAP
        for name in row:
            places[name] -= (x - GAP) / 2
    for _ in range(SWEEPS):
        for row in layout.rows:
            _draw_near(row, layout.above, places, widths)
        for row in reversed(layout.rows):
            _draw_near(row, layout.below, places, widths)
    return places


def _draw_near(
    row: Sequence[str],
    near: Mapping[str, list[str]],
    places: dict[str, float],
    widths: Mapping[str, float],
) -> None:
    """Move a row's nodes to the middle of their neighbours; none over another."""
    wanted = {
        name: sum(places[n] for n in near[name]) / len(near[name])
        if near.get(name)
        else places[name]
        for name in row
    }
    from_left, from_right = dict(wanted), dict(wanted)
    for one, other in pairwise(row):
        least = from_left[one] + (widths[one] + widths[other]) / 2 + GAP
        from_left[other] = max(from_left[other], least)
    for other, one in pairwise(reversed(row)):
        most = from_right[other] - (widths[one] + widths[other]) / 2 - GAP
        from_right[one] = min(from_right[one], most)
    # Both keep the distances, so their mean does.
    for name in row:
        places[name] = (from_left[name] + from_right[name]) / 2


def _width(node: Node | None) -> float:
    """Return the width of a node, or of a passage."""
    if node is None:
        return PASSAGE
    return width_of(shortened(node.text, TEXT)) + 20


def _edge(points: Sequence[tuple[float, float]]) -> str:
    """Return an edge from box to box, with a tip."""
    first, last = points[0], points[-1]
    begin, end = first[1] + HEIGHT / 2, last[1] - HEIGHT / 2
    bent = [(first[0], begin), *points[1:-1], (last[0], end - 5)]
    path = [f"M{number(bent[0][0])} {number(bent[0][1])}"]
    for (x, y), (to_x, to_y) in pairwise(bent):
        half = (y + to_y) / 2
        path.append(
            f"C{number(x)} {number(half)} {number(to_x)} {number(half)} "
            f"{number(to_x)} {number(to_y)}"
        )
    x = last[0]
    tip = (
        f"M{number(x - 4)} {number(end - 6)}H{number(x + 4)}L{number(x)} {number(end)}Z"
    )
    return tag("path", cls="edge", d="".join(path)) + tag("path", cls="tip", d=tip)


def _node(node: Node, x: float, y: float, width: float) -> str:
    """Return a box with its text; steps have thick lines, values round ends."""
    is_step = node.kind not in {"thing", "file"}
    kind = f"{node.kind} box" if is_step else node.kind
    shape = tag(
        "rect",
        cls=kind,
        x=x - width / 2,
        y=y - HEIGHT / 2,
        width=width,
        height=HEIGHT,
        rx=HEIGHT / 2 if node.kind == "thing" else 3,
    )
    text = label(x, y, shortened(node.text, TEXT), text_anchor="middle")
    return tag("g", tag("title", safe(node.told or node.text)) + shape + text)
