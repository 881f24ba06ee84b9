"""Bars in lanes along one axis: who ran when, how long, how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    from collections.abc import Iterable, Sequence

ROW = 22.0
BAR = 14.0
PLOT = 560.0
NAMES = 200.0
NOTES = 170.0
BREAK = 16.0
"""Width of a stretch of the axis that is left out."""
LEAST = 14.0
"""Width that each stretch has at least."""
THIN, MARKED = 3.0, 9.0
"""Least width of a bar, and of one that is told by its form."""
PLAIN = {"good", "now", "pale"}
CLOCK = (60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of a lane."""

    begin: float
    end: float
    kind: str
    """A class of the picture's style: ``good pale kept now bad lost warn
    pending``."""
    told: str = ""
    """What it stands for; shown where a pointer rests on it."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of a chart."""

    name: str
    bars: tuple[Bar, ...] = ()
    note: str = ""
    """Text at its end."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What is to be drawn."""

    title: str
    told: str
    lanes: tuple[Lane, ...]
    legend: tuple[tuple[str, str], ...] = ()
    """Kind → word."""
    starts: tuple[tuple[float, str], ...] = ()
    """Where a part of the axis begins, and its label; what lies before is left out."""
    mark: tuple[float, str] = (0.0, "")
    """A length of the axis and its label, shown as a scale."""


class Axis:
    """Places on a picture of values of an axis, of which idle stretches are left out.

    Parameters
    ----------
    bars : iterable of Bar
        All bars of a chart.
    starts : iterable of float
        Where a part begins, though no long idle stretch is before it.
    left, width : float
        Where it lies.
    """

    def __init__(
        self,
        bars: Iterable[Bar],
        starts: Iterable[float] = (),
        left: float = 0.0,
        width: float = PLOT,
    ) -> None:
        self.parts = stretches([(bar.begin, bar.end) for bar in bars], set(starts))
        self.left = left
        fixed = LEAST * len(self.parts) + BREAK * (len(self.parts) - 1)
        self._shrunk = min(width / 2 / fixed, 1.0) if self.parts else 1.0
        self._break = BREAK * self._shrunk
        busy = sum(end - begin for begin, end in self.parts)
        self.scale = (width - fixed * self._shrunk) / busy if busy else 0.0

    def at(self, value: float) -> float:
        """Return the place of a value; one that is left out stands at the next part."""
        x = self.left
        for begin, end in self.parts:
            if value <= end:
                share = (value - begin) / (end - begin) if end > begin else 0.0
                return x + max(share, 0.0) * self._width(begin, end)
            x += self._width(begin, end) + self._break
        return x - self._break

    def _width(self, begin: float, end: float) -> float:
        """Return how wide a part is."""
        return LEAST * self._shrunk + (end - begin) * self.scale

    def breaks(self) -> list[float]:
        """Return the places where something is left out."""
        return [self.at(begin) - self._break / 2 for begin, _ in self.parts[1:]]


def stretches(
    spans: Iterable[tuple[float, float]], starts: set[float]
) -> list[tuple[float, float]]:
    """Return the parts of an axis in which something is.

    Parameters
    ----------
    spans : iterable of tuple of float
        Begin and end of each bar.
    starts : set of float
        Where a part begins in any case.

    Returns
    -------
    list of tuple of float
        In order. Between two of them nothing is for more than a tenth of the time in
        which something is, or a part begins.
    """
    merged = _merged(spans, 0.0, set())
    busy = sum(end - begin for begin, end in merged)
    return _merged(merged, busy / 10, starts)


def _merged(
    spans: Iterable[tuple[float, float]], gap: float, starts: set[float]
) -> list[tuple[float, float]]:
    """Return spans in order, those that lie closer to each other than a gap as one."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        parted = found and any(found[-1][1] < start <= begin for start in starts)
        if not found or parted or begin - found[-1][1] > gap:
            found.append((begin, max(begin, end)))
        else:
            found[-1] = (found[-1][0], max(found[-1][1], end))
    return found


def chart_picture(chart: Chart) -> Picture:
    """Draw a chart.

    Parameters
    ----------
    chart : Chart
        What is to be drawn.

    Returns
    -------
    Picture
        One row for each lane, and below them labels, scale and legend.
    """
    names = min(max((width_of(lane.name) for lane in chart.lanes), default=0.0), NAMES)
    notes = min(max((width_of(lane.note) for lane in chart.lanes), default=0.0), NOTES)
    left = MARGIN * 2 + names
    bars = [bar for lane in chart.lanes for bar in lane.bars]
    starts = [start for start, _ in chart.starts]
    axis = Axis(bars, starts, left, PLOT - MARKED)
    bottom = MARGIN + ROW * len(chart.lanes)
    shapes = [_grid(chart.lanes, axis, left, bottom)]
    for row, lane in enumerate(chart.lanes):
        middle = MARGIN + ROW * (row + 0.5)
        shapes.append(_lane(lane, axis, left, middle))
    shapes.append(_labels(chart.starts, axis, bottom + ROW / 2))
    foot = bottom + ROW * (1.5 if chart.starts else 0.5)
    shapes.append(_legend(chart, axis, left, foot))
    width = left + PLOT + MARGIN * 2 + notes
    return Picture(chart.title, chart.told, width, foot + ROW, "".join(shapes))


def _grid(lanes: Sequence[Lane], axis: Axis, left: float, bottom: float) -> str:
    """Return a line below each lane, and a dotted one where something is left out."""
    rows = (MARGIN + ROW * row for row in range(1, len(lanes) + 1))
    lines = [
        tag("line", cls="line", x1=left, x2=left + PLOT, y1=row, y2=row) for row in rows
    ]
    lines += [
        tag("line", cls="cut", x1=x, x2=x, y1=MARGIN, y2=bottom) for x in axis.breaks()
    ]
    return "".join(lines)


def _lane(lane: Lane, axis: Axis, left: float, middle: float) -> str:
    """Return a lane: its name, its bars, its note."""
    name = shortened(lane.name, NAMES)
    shapes = [label(left - MARGIN, middle, name, text_anchor="end")]
    shapes += [_bar(bar, axis, middle) for bar in lane.bars]
    note = shortened(lane.note, NOTES)
    shapes.append(label(left + PLOT + MARGIN, middle, note, cls="faint"))
    return "".join(shapes)


def _bar(bar: Bar, axis: Axis, middle: float) -> str:
    """Return a bar, with what it stands for as its title."""
    x = axis.at(bar.begin)
    least = THIN if bar.kind in PLAIN else MARKED
    width = max(axis.at(bar.end) - x, least)
    shapes = box(x, middle, width, bar.kind)
    title = tag("title", safe(bar.told)) if bar.told else ""
    return tag("g", title + shapes)


def box(x: float, middle: float, width: float, kind: str) -> str:
    """Return the box of a kind, which is told by its form as well as its colour.

    Parameters
    ----------
    x, middle, width : float
        Where it lies.
    kind : str
        As of a `Bar`.

    Returns
    -------
    str
        XML.
    """
    top = middle - BAR / 2
    shape = tag("rect", cls=kind, x=x, y=top, width=width, height=BAR, rx=2)
    if kind != "bad":
        return shape
    a, b = x + width / 2 - 3, x + width / 2 + 3
    cross = (
        f"M{number(a)} {number(middle - 3)}L{number(b)} {number(middle + 3)}"
        f"M{number(a)} {number(middle + 3)}L{number(b)} {number(middle - 3)}"
    )
    return shape + tag("path", cls="cross", d=cross)


def _labels(starts: Sequence[tuple[float, str]], axis: Axis, middle: float) -> str:
    """Return the labels of the parts for which there is room."""
    places = [(axis.at(start), text) for start, text in starts]
    ends = [*(x for x, _ in places[1:]), axis.left + PLOT + NOTES][: len(places)]
    shown: list[str] = []
    free = axis.left
    for (x, text), end in zip(places, ends, strict=True):
        if x >= free and (end - x >= width_of(text) or not shown):
            shown.append(label(x, middle, text, cls="faint"))
            free = x + width_of(text) + MARGIN
    return "".join(shown)


def _legend(chart: Chart, axis: Axis, left: float, middle: float) -> str:
    """Return the words of the kinds that are there, and the scale."""
    kinds = {bar.kind for lane in chart.lanes for bar in lane.bars}
    shapes, x = [], left
    for kind, word in chart.legend:
        if kind in kinds:
            shapes += [box(x, middle, BAR, kind), label(x + BAR + 5, middle, word)]
            x += BAR + width_of(word) + 5 + MARGIN * 2
    length, word = chart.mark
    if word and axis.scale:
        wide = length * axis.scale
        end = left + PLOT
        shapes.append(tag("path", cls="edge", d=_ruler(end - wide, end, middle)))
        told = label(end + MARGIN, middle, word, cls="faint")
        shapes.append(told)
    return "".join(shapes)


def _ruler(begin: float, end: float, middle: float) -> str:
    """Return the path of a scale: a line with two ends."""
    ends = "".join(
        f"M{number(x)} {number(middle - 3)}V{number(middle + 3)}" for x in (begin, end)
    )
    return f"{ends}M{number(begin)} {number(middle)}H{number(end)}"


def round_length(most: float) -> float:
    """Return a round length that is at most so long.

    Parameters
    ----------
    most : float
        Seconds, more than 0.

    Returns
    -------
    float
        1, 2 or 5 times a power of ten; from a minute on, as clocks count.

    Examples
    --------
    >>> round_length(0.7), round_length(70), round_length(8000)
    (0.5, 60.0, 7200.0)
    """
    if most >= CLOCK[0]:
        return max(length for length in CLOCK if length <= most)
    power = 10.0 ** math.floor(math.log10(most))
    return max(power * factor for factor in (1, 2, 5) if power * factor <= most)
