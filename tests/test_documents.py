"""Documents show every text as it is: as text, Markdown and HTML, hostile or not."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbckpt.verbs.forms.documents import Code, Section, markdown, page, text
from nbckpt.verbs.forms.pages import Table, Tree, printable

HOSTILE = "<script>alert(1)</script>|`x`\n# h & 'q\" \x1b[31m\u202e"
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=40)
PLAIN = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=40)


class Seen(HTMLParser):
    """The tags of a page, and the text of its cells."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[str] = []
        self.titles: list[str] = []
        self._open = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # A long cell has a class of its own.
        self.tags += [tag, *(name for name, value in attrs if value != "nbckpt-long")]
        self._open = tag
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self._open in {"td", "th"}:
            self.cells[-1] += data
        if self._open in {"h1", "h2"}:
            self.titles.append(data)

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._open = ""


def a_table(*cells: str) -> list[Section]:
    return [Section("part", [Table(("one", "two"), [cells])])]


@given(ANYTHING, ANYTHING)
def test_html_shows_any_text_as_it_is(one: str, other: str) -> None:
    seen = Seen(page("t", a_table(one, other)))
    shown = [printable(cell) for cell in (one, other)]
    expected = [cell.encode("utf-8", "replace").decode() for cell in shown]
    # An HTML reader takes a null or a lone carriage return for something else.
    assert seen.cells == ["one", "two", *expected]


@given(ANYTHING)
@settings(deadline=None)
def test_html_of_any_text_has_only_our_own_tags(content: str) -> None:
    plain, hostile = (
        Seen(page(t, [*a_table(t, t), Section("tree", [Tree(t, [Tree(t, [t])])])]))
        for t in ("x", content)
    )
    assert hostile.tags == plain.tags


@given(PLAIN, PLAIN)
def test_markdown_row_of_any_text_keeps_its_columns(one: str, other: str) -> None:
    content = markdown("t", a_table(one, other))
    row = content.rstrip("\n").split("| --- | --- |\n")[1]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
    assert "\n" not in row


@given(PLAIN)
def test_markdown_of_any_line_holds_no_html(content: str) -> None:
    shown = markdown("t", [Section("s", [content])])
    assert not re.search(r"(?<!\\)(?:\\\\)*[<>`\[\]]", shown)


def test_html_is_one_file_that_loads_nothing() -> None:
    content = page("t", a_table("a", "b"))
    loading = {"script", "link", "img", "src", "href", "iframe", "object"}
    assert not loading & {*Seen(content).tags}
    assert "default-src 'none'" in content
    assert "url(" not in content
    assert "@import" not in content


def test_html_is_readable_in_light_and_dark_and_by_keyboard() -> None:
    content = page("t", a_table("a", "b"))
    assert "color-scheme: light dark" in content
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(", content), "a colour of its own"
    assert '<html lang="en">' in content
    assert 'scope="col"' in content
    assert 'tabindex="0"' in content


TREE = Tree("a *b*", ["<c>", Tree("d", [Table(("one",), [("x|y",)])])])


def test_tree_is_lists_within_lists() -> None:
    sections = [Section("part", [TREE])]
    assert text("t", sections).endswith("a *b*\n  <c>\n  d\n    one\n    x|y\n")
    assert markdown("t", sections).endswith(
        "- a \\*b\\*\n  - \\<c\\>\n  - d\n    - | one |\n      | --- |\n      | x\\|y |\n"
    )
    seen = Seen(page("t", sections))
    assert (seen.tags.count("ul"), seen.tags.count("li"), seen.cells) == (
        2, 3, ["one", "x|y"]
    )  # fmt: skip


def test_sections_without_parts_are_left_out() -> None:
    empty = [Section("nothing", []), Section("something", ["line"])]
    for form in (text, markdown, page):
        shown = form("title", empty)
        assert "nothing" not in shown
        assert "something" in shown
        assert shown.endswith("\n")


def test_titles_are_shown_as_they_are() -> None:
    seen = Seen(page("a & b", [Section("c < d", ["x"])]))
    assert "".join(seen.titles) == "a & bc < d"
    assert "# a \\& b" in markdown("a & b", [Section("c < d", ["x"])])


def test_text_aligns_columns_and_underlines_titles() -> None:
    shown = text("Title", [Section("part", [Table(("a", "b"), [("long", "x")])])])
    assert shown == "Title\n=====\n\npart\n----\na     b\nlong  x\n"


@pytest.mark.parametrize("form", [text, markdown, page])
def test_what_steers_a_terminal_is_taken_out(form: object) -> None:
    assert callable(form)
    shown = form("t", a_table(HOSTILE, HOSTILE))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_markdown_shows_hostile_names_as_they_are() -> None:
    table = Table(("a|b", "c"), [(HOSTILE, "[x](javascript:1)")])
    content = markdown(HOSTILE, [Section("t", [table, "- x\n1. y\n= z\n--- w"])])
    row = next(line for line in content.splitlines() if "javascript" in line)
    assert re.findall(r"(?<!\\)\|", row) == ["|"] * 3
    assert not re.search(r"(?<!\\)[<>`\[\]]", content)
    for start in ("\\- x", "1\\. y", "\\= z"):
        assert start in content


def test_command_is_copied_as_it_is_and_can_hold_no_html() -> None:
    command = "nbckpt resolve r-1 'a b' --done VALUE|--redo"
    sections = [Section("Go on", ["First:", Code(command), Code("<b>\n# x")])]
    assert f"\n\n    {command}\n\n    <b> # x\n" in markdown("t", sections)
    assert command in text("t", sections)
    assert "<b>" not in page("t", sections)


def test_names_with_underscores_stay_readable_in_markdown() -> None:
    assert "load_all_rows" in markdown("t", [Section("s", ["load_all_rows"])])
