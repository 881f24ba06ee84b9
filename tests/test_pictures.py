"""Pictures are whole SVG, harmless whatever a text holds, and say the same as their data."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbckpt.pictures import (
    Bar,
    Chart,
    Lane,
    Network,
    Node,
    Picture,
    chart_picture,
    flowchart,
    network_picture,
)
from nbckpt.pictures.lanes import BREAK, LEAST, Axis, round_length, stretches
from nbckpt.pictures.network import HEIGHT, ranks
from nbckpt.pictures.svg import STYLE, shortened, tag, width_of

HOSTILE = "</text><script>alert(1)</script>\"'&\x00\x1b[31m\u202e\ud800"
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=30)
SVG = "{http://www.w3.org/2000/svg}"


def root(picture: Picture) -> ET.Element:
    """Return a picture as a reader of XML finds it."""
    return ET.fromstring(picture.svg())  # noqa: S314 - ours, and that is the test


def shapes(picture: Picture, name: str) -> list[Any]:
    """Return the elements of a name."""
    return root(picture).findall(f".//{SVG}{name}")


def texts(picture: Picture) -> list[str]:
    return [found.text for found in shapes(picture, "text")]


def kinds(picture: Picture) -> list[str]:
    found = [rect.get("class").removesuffix(" box") for rect in shapes(picture, "rect")]
    return found[1:]


def a_chart(*lanes: Lane, **more: Any) -> Picture:
    return chart_picture(Chart("title", "told", lanes, **more))


def a_network(*edges: str, names: str = "abcdef") -> Network:
    nodes = tuple(Node(name, name, "good") for name in names)
    return Network("title", "told", nodes, tuple((e[0], e[1]) for e in edges))


def boxes(picture: Picture) -> dict[str, tuple[float, float, float]]:
    """Return left, right and middle height of each node by its text."""
    groups = root(picture).findall(f".//{SVG}g")
    found = {}
    for group in groups:
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert rect is not None
        assert text is not None
        x, y, wide = (float(rect.get(name, "")) for name in ("x", "y", "width"))
        found[text.text or ""] = (x, x + wide, y + HEIGHT / 2)
    return found


# any text


@settings(max_examples=40, deadline=None)
@given(ANYTHING)
def test_picture_of_any_text_is_whole_xml_of_our_own_elements(content: str) -> None:
    bar = Bar(0.0, 1.0, "good", content)
    chart = Chart(content, content, (Lane(content, (bar,), content),))
    nodes = (Node("a", content, "good", content), Node("b", content, "file", content))
    network = Network(content, content, nodes, (("a", "b"),))
    for picture in (chart_picture(chart), network_picture(network)):
        names = {found.tag for found in root(picture).iter()}
        assert names <= {
            f"{SVG}{name}"
            for name in [
                "svg",
                "title",
                "desc",
                "style",
                "rect",
                "line",
                "g",
                "text",
                "path",
            ]
        }


def test_hostile_text_is_shown_and_does_nothing() -> None:
    picture = a_chart(Lane(HOSTILE, (Bar(0, 1, "good", HOSTILE),), HOSTILE))
    assert "<script" not in picture.svg()
    assert "\x1b" not in picture.svg()
    assert "\u202e" not in picture.svg()
    assert "</text><script>" in shapes(picture, "g")[0].find(f"{SVG}title").text
    picture.svg().encode("utf-8")


@settings(max_examples=40, deadline=None)
@given(ANYTHING)
def test_mermaid_of_any_text_has_one_line_for_each_node(content: str) -> None:
    network = Network("t", "t", (Node("a", content, "thing"),), ())
    lines = flowchart(network).splitlines()
    assert len(lines) == 2
    inner = lines[1].removeprefix('  n0(["').removesuffix('"])')
    assert not re.search(r'["\[\](){}<>`|]|-->', inner)


# what a reader needs


def test_picture_tells_what_it_is_to_who_does_not_see_it() -> None:
    top = root(a_chart(Lane("load")))
    assert (top.get("role"), top.get("aria-label")) == ("img", "title")
    assert [(found.tag, found.text) for found in top][:2] == [
        (f"{SVG}title", "title"),
        (f"{SVG}desc", "told"),
    ]


def test_picture_takes_the_colours_of_its_host_and_else_of_the_system() -> None:
    svg = a_chart(Lane("load")).svg()
    assert "var(--jp-ui-font-color1, var(--vscode-editor-foreground," in svg
    assert "@media (prefers-color-scheme: dark)" in svg
    assert "@import" not in svg
    assert "url(" not in svg


def test_rules_of_a_picture_touch_nothing_else_on_the_page() -> None:
    rules = re.sub(
        r"\s+", " ", STYLE.replace("@media (prefers-color-scheme: dark) {", "")
    )
    selectors = re.findall(r"(?:^|[{}])\s*([^{}:;]+?)\s*\{", rules)
    assert len(selectors) > 15
    assert all(found.startswith(".nbckpt-picture") for found in selectors)


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("name", "least"),
    [("ink", 7), ("faint", 4.5), ("good", 3), ("now", 3), ("bad", 3), ("warn", 3)],
)
def test_colours_of_our_own_stand_out_from_the_ground(
    scheme: int, name: str, least: float
) -> None:
    def colour(of: str) -> str:
        return re.findall(rf"--nb-{of}: (#[0-9a-f]{{6}})", STYLE)[scheme]

    pair = sorted((luminance(colour("ground")), luminance(colour(name))))
    assert (pair[1] + 0.05) / (pair[0] + 0.05) >= least


# charts


def test_chart_has_a_lane_for_each_name_and_a_box_for_each_bar() -> None:
    bars = (Bar(0, 1, "good"), Bar(2, 3, "kept"))
    picture = a_chart(Lane("load", bars, "ran"), Lane("fit", (), "pending"))
    assert texts(picture) == ["load", "ran", "fit", "pending"]
    assert kinds(picture) == ["good", "kept"]


def test_kinds_differ_in_form_and_not_in_colour_alone() -> None:
    def form(kind: str) -> str:
        rule = re.findall(rf"\.{kind} {{([^}}]*)}}", STYLE)[0]
        return re.sub(r"var\([^)]*\)", "", " ".join(rule.split()))

    forms = [form(kind) for kind in ("good", "kept", "lost", "warn", "pending")]
    assert len(set(forms)) == len(forms)
    crosses = [len(shapes(a_chart(Lane("x", (Bar(0, 1, k),))), "path")) for k in
               ("good", "bad")]  # fmt: skip
    assert crosses == [0, 1]


def test_legend_names_the_kinds_that_are_there() -> None:
    legend = (("good", "ran"), ("bad", "failed"))
    picture = a_chart(Lane("load", (Bar(0, 1, "good"),)), legend=legend)
    assert "ran" in texts(picture)
    assert "failed" not in texts(picture)


def test_bar_is_as_long_as_what_it_stands_for() -> None:
    picture = a_chart(Lane("a", (Bar(0, 100, "good"), Bar(100, 400, "good"))))
    first, second = (float(rect.get("width")) for rect in shapes(picture, "rect")[1:])
    assert second == pytest.approx(3 * first, rel=0.01)


def test_bar_of_no_length_is_seen() -> None:
    picture = a_chart(Lane("a", (Bar(0, 0, "kept"), Bar(0, 0, "good"))))
    assert [float(rect.get("width")) for rect in shapes(picture, "rect")[1:]] == [9, 3]


def test_chart_without_bars_or_lanes_is_a_picture() -> None:
    assert kinds(a_chart()) == []
    assert texts(a_chart(Lane("load"))) == ["load", None]


def test_nothing_of_a_chart_lies_outside_of_it() -> None:
    bars = (Bar(0, 1e6, "good"), Bar(1e6, 1e6, "kept"))
    picture = a_chart(Lane("n" * 99, bars, "m" * 99), starts=((0.0, "00:00"),))
    for rect in shapes(picture, "rect"):
        begin = float(rect.get("x") or 0)
        assert begin >= 0
        assert begin + float(rect.get("width")) <= picture.width
    assert all(width_of(text) < 210 for text in texts(picture) if text)


def test_long_pauses_are_left_out_and_short_ones_are_not() -> None:
    spans = [(0.0, 10.0), (10.5, 20.0), (5000.0, 5010.0)]
    assert stretches(spans, set()) == [(0.0, 20.0), (5000.0, 5010.0)]


def test_a_part_begins_where_a_session_does_however_short_the_pause() -> None:
    spans = [(0.0, 10.0), (10.5, 20.0)]
    assert stretches(spans, {10.5}) == spans
    assert stretches(spans, {0.0}) == [(0.0, 20.0)]


def test_overlapping_bars_are_one_stretch() -> None:
    assert stretches([(5.0, 6.0), (0.0, 9.0), (8.0, 10.0)], set()) == [(0.0, 10.0)]


def test_places_on_an_axis_grow_with_the_value() -> None:
    axis = Axis([Bar(0, 10, "good"), Bar(1000, 1030, "good")], left=100.0, width=400.0)
    places = [axis.at(value) for value in (0, 5, 10, 500, 1000, 1015, 1030, 2000)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (100.0, 500.0)
    assert axis.at(1000) - axis.at(10) == BREAK
    assert axis.breaks() == [axis.at(1000) - BREAK / 2]


def test_axis_of_many_parts_keeps_half_of_its_width_for_them() -> None:
    bars = [Bar(n * 100.0, n * 100.0 + 1, "good") for n in range(200)]
    axis = Axis(bars, left=0.0, width=400.0)
    assert axis.at(199 * 100 + 1) == pytest.approx(400.0)
    assert axis.at(1) - axis.at(0) < LEAST
    assert axis.scale == pytest.approx(1.0)


def test_labels_are_left_out_where_there_is_no_room() -> None:
    bars = tuple(Bar(n * 100.0, n * 100.0 + 1, "good") for n in range(60))
    starts = tuple((bar.begin, "00:00:00") for bar in bars)
    picture = a_chart(Lane("a", bars), starts=starts)
    assert 0 < texts(picture).count("00:00:00") < 15


def test_scale_has_its_length_and_its_word() -> None:
    picture = a_chart(Lane("a", (Bar(0, 100, "good"),)), mark=(20.0, "20 s"))
    (path,) = shapes(picture, "path")
    begin, end = (float(x) for x in re.findall(r"M(\S+) ", path.get("d"))[:2])
    assert end - begin == pytest.approx((560 - 9 - LEAST) / 5, abs=0.2)
    assert texts(picture)[-1] == "20 s"


@pytest.mark.parametrize(
    ("most", "length"),
    [(0.0123, 0.01), (0.9, 0.5), (1, 1), (49, 20), (59.9, 50), (60, 60), (4000, 3600),
     (1e9, 86400)],
)  # fmt: skip
def test_length_of_a_scale_is_round(most: float, length: float) -> None:
    assert round_length(most) == pytest.approx(length)


# networks


def test_node_stands_below_all_that_it_rests_on() -> None:
    network = a_network("ab", "bc", "ac", "cd", "ae", "ef", "df")
    found = boxes(network_picture(network))
    for upper, lower in network.edges:
        assert found[upper][2] < found[lower][2]


def test_source_stands_right_above_what_it_leads_to() -> None:
    found = ranks("abcd", [("a", "b"), ("b", "d"), ("c", "d")])
    assert found == {"a": 0, "b": 1, "c": 1, "d": 2}


@settings(max_examples=30, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25))
def test_no_two_boxes_of_any_network_touch(pairs: set[tuple[int, int]]) -> None:
    names = "abcdefghij"
    edges = [f"{names[a]}{names[b]}" for a, b in sorted(pairs) if a < b]
    picture = network_picture(a_network(*edges, names=names))
    found = sorted(boxes(picture).values(), key=lambda box: (box[2], box[0]))
    assert len(found) == 10
    for one, other in pairwise(found):
        assert one[2] != other[2] or one[1] < other[0]
    assert min(box[0] for box in found) >= 0
    assert max(box[1] for box in found) <= picture.width
    assert len(shapes(picture, "path")) == 2 * len(edges)


def test_crossing_is_undone_where_the_order_allows() -> None:
    found = boxes(network_picture(a_network("ad", "bc", names="abcd")))
    assert (found["a"][0] < found["b"][0]) is (found["d"][0] < found["c"][0])


def test_long_edge_passes_a_row_beside_its_boxes() -> None:
    network = a_network("ab", "bc", "ac", names="abc")
    picture = network_picture(network)
    left, right, middle = boxes(picture)["b"]
    long_edge = max((p.get("d") for p in shapes(picture, "path")), key=len)
    points = re.findall(r"(\S+) (\S+?)(?=[C ]|$)", long_edge)
    at_row = [float(x) for x, y in points if float(y) == middle]
    assert at_row
    assert all(x < left or x > right for x in at_row)


def test_network_without_nodes_is_a_picture() -> None:
    picture = network_picture(Network("title", "told", (), ()))
    assert picture.width > 0
    assert kinds(picture) == []


def test_two_hundred_steps_are_drawn() -> None:
    names = [chr(0x4E00 + n) for n in range(200)]
    edges = [a + b for a, b in pairwise(names)]
    picture = network_picture(a_network(*edges, names="".join(names)))
    assert len(boxes(picture)) == 200


def test_mermaid_joins_and_colours_the_nodes() -> None:
    nodes = (Node("s load", "load", "good"), Node("v", "a, b", "thing"),
             Node("f", "out/x.csv", "file"))  # fmt: skip
    said = flowchart(Network("t", "t", nodes, (("s load", "v"), ("v", "f"))))
    assert said.splitlines() == [
        "flowchart TD",
        '  n0["load"]',
        '  n1(["a, b"])',
        '  n2[/"out/x.csv"/]',
        "  n0 --> n1",
        "  n1 --> n2",
        "  classDef good fill:#d7f0dc,stroke:#1b7f3b,color:#101418",
        "  class n0 good",
    ]


# text


def test_words_of_a_picture_stay_apart_where_only_they_are_left() -> None:
    """An untrusted notebook shows the text between the tags, and no picture."""
    picture = a_chart(Lane("load", (Bar(0.0, 1.0, "good", "ran, 1 s"),)))
    left = re.sub("<style>.*?</style>|<[^>]*>", "", picture.svg(), flags=re.DOTALL)
    assert left.splitlines()[:2] == [picture.title, picture.told]
    assert {"load", "ran, 1 s"} <= set(left.splitlines())


def test_text_that_does_not_fit_ends_in_an_ellipsis() -> None:
    assert shortened("load\n the  data", 500) == "load the data"
    cut = shortened("a" * 99, 70)
    assert cut.endswith("a…")
    assert width_of(cut) <= 70
    assert shortened("\u65e5" * 9, 40) == "\u65e5\u65e5…"


def test_attributes_are_escaped_and_lengths_are_short() -> None:
    assert tag("a", cls='"><b', x=1.25, stroke_width=2) == (
        '<a class="&quot;&gt;&lt;b" x="1.2" stroke-width="2"/>'
    )
