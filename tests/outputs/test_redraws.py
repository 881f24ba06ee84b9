"""Of a line that is drawn again and again, what still shows is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nbckpt.outputs.redraws import PENDING_LIMIT, Redraws
from tests.outputs.readers import nbclient, notebook, terminal

if TYPE_CHECKING:
    from collections.abc import Callable

READERS = [nbclient, notebook, terminal]

# A busy machine is no failure.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

reader = pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)

PLAIN = ["a", "xyz", "1234567", "0123456789", " ", "█", "é"]
MOVES = ["\r", "\r", "\r", "\n", "\r\n"]
ODD = ["\t", "あ", "😀", "e\u0301", "\x0b"]
COLOURS = ["\x1b[32m", "\x1b[0m", "\x1b[1m", "\x1b[0;31m", "\x1b[m"]
ERASURES = ["\x1b[K", "\x1b[2K"]

plain_text = st.lists(st.sampled_from(PLAIN + MOVES), max_size=30)
any_text = st.lists(
    st.sampled_from(PLAIN + MOVES + ODD + COLOURS + ERASURES), max_size=30
)
words = st.text("abcdef", max_size=9)


def fold(*parts: str, fresh: bool = True) -> str:
    """Fold text that comes in parts."""
    line = Redraws(fresh=fresh)
    return "".join([*map(line.add, parts), line.rest()])


def same(read: Callable[[str], Any], raw: str, folded: str) -> bool:
    """Tell whether a reader sees the same, now and whatever is written next."""
    return all(read(raw + more) == read(folded + more) for more in ["", "\rZ", "Z\n"])


@reader
@patient
@given(parts=plain_text)
@example(parts=["abc", "\r", "X"])
@example(parts=["abc", "\r", "\r", "\n"])
def test_plain_text_shows_the_same(
    read: Callable[[str], Any], parts: list[str]
) -> None:
    assert same(read, "".join(parts), fold(*parts))


@reader
@patient
@given(parts=any_text)
@example(parts=["\x1b[K", "\t", "\r", "\r", "xyz"])
@example(parts=["あ", "a", "\r", "a"])
@example(parts=["1234567", "\t", "\r", "a", "\r"])
def test_coloured_wide_and_tabbed_text_shows_the_same(
    read: Callable[[str], Any], parts: list[str]
) -> None:
    assert same(read, "".join(parts), fold(*parts))


@reader
@patient
@given(before=st.sampled_from(["ab", "\x1b[31mabc", "a\r"]), parts=any_text)
def test_text_that_continues_an_unknown_line_shows_the_same(
    read: Callable[[str], Any], before: str, parts: list[str]
) -> None:
    raw = "".join(parts)
    folded = fold(raw, fresh=False)

    assert same(read, before + raw, before + folded)
    assert same(read, raw, folded)


@st.composite
def retreating_lines(draw: st.DrawFn) -> str:
    r"""Draw redraws that end in a row of ``\b``, as the bars of Keras do."""
    text = ""
    for word in draw(st.lists(words, max_size=8)):
        back = draw(st.integers(0, len(word)))
        text += word + "\b" * back + draw(st.sampled_from("\r\r\n"))
    return text + draw(words)


@reader
@patient
@given(text=retreating_lines())
def test_closing_backspaces_show_the_same(
    read: Callable[[str], Any], text: str
) -> None:
    assert read(text) == read(fold(text))


@patient
@given(parts=any_text)
def test_the_parts_that_text_comes_in_make_no_difference(parts: list[str]) -> None:
    text = "".join(parts)

    assert fold(*text) == fold(*parts) == fold(text)


@patient
@given(parts=any_text)
def test_folding_what_is_folded_shows_the_same(parts: list[str]) -> None:
    once = fold(*parts)

    assert terminal(fold(once)) == terminal(once)
    assert len(fold(once)) <= len(once)


@patient
@given(st.text().filter(lambda text: "\r" not in text))
def test_text_without_returns_is_untouched(text: str) -> None:
    assert fold(text) == text


@pytest.mark.parametrize(
    ("raw", "folded"),
    [
        ("a\r\nb\r\n", "a\r\nb\r\n"),
        ("50%\r100%\n", "100%\n"),
        ("\r  1\r  2", "  2"),
        ("long line\rshort\rtiny", "shortline\rtiny"),
        ("|\b/\b-\b\\", "|\b/\b-\b\\"),
        ("a\x1b[2Cb\rcd", "a\x1b[2Cb\rcd"),
    ],
)
def test_what_is_kept(raw: str, folded: str) -> None:
    assert fold(raw) == folded


def test_shorter_text_over_longer_text_keeps_the_rest_of_it() -> None:
    assert fold("abc\rX") == "abc\rX"
    assert terminal("abc\rX") == terminal("Xbc\rX")


def test_text_up_to_the_first_return_of_an_unknown_line_is_kept() -> None:
    assert fold("ab\rcd\ref\rgh", fresh=False) == "ab\rgh"


def bar(step: int, of: int) -> str:
    """Draw a bar as tqdm does."""
    full = 40 * step // of
    return f"\r{step / of:4.0%}|{'█' * full}{' ' * (40 - full)}| {step}/{of}"


def coloured_bar(step: int, of: int) -> str:
    """Draw a coloured bar as tqdm, pip and many others do."""
    return f"\r\x1b[32m{bar(step, of)[1:]}\x1b[0m\x1b[K"


def keras_bar(step: int, of: int) -> str:
    """Draw a bar as Keras 3 does, which goes back before it returns."""
    full = 20 * step // of
    body = f"\x1b[1m{step:>5}/{of}\x1b[0m \x1b[32m{'━' * full}\x1b[0m\x1b[37m"
    body += f"{'━' * (20 - full)}\x1b[0m \x1b[1m0s\x1b[0m 2ms/step"
    return body + "\b" * len(body) + "\r"


def leaky_bar(step: int, of: int) -> str:
    """Draw a bar whose colours are never reset."""
    return f"\r\x1b[32m{step}\x1b[31m/{of}"


def tabbed_bar(step: int, of: int) -> str:
    """Draw a status line with tabs."""
    return f"\rstep {step:>5}\tof {of}\tloss {step / of:.4f}"


BARS = [bar, coloured_bar, keras_bar, leaky_bar, tabbed_bar]


@pytest.mark.parametrize("draw", BARS, ids=lambda draw: draw.__name__)
def test_two_thousand_redraws_take_less_than_two_kilobytes(
    draw: Callable[[int, int], str],
) -> None:
    parts = [draw(step, 2000) for step in range(2001)]

    folded = fold(*parts)

    assert len(folded.encode()) < 2000
    assert terminal(folded) == terminal("".join(parts))
    assert nbclient(folded) == nbclient("".join(parts))


def test_a_line_without_end_is_not_held_back() -> None:
    line = Redraws(fresh=True)
    passed = sum(len(line.add("x" * 1000)) for _ in range(1000))

    assert passed >= 1_000_000 - PENDING_LIMIT - 1000


def test_redraws_that_cannot_be_folded_are_passed_on() -> None:
    line = Redraws(fresh=True)
    parts = [f"up\x1b[A{step}\r" for step in range(10_000)]

    passed = [line.add(part) for part in parts]

    assert "".join([*passed, line.rest()]) == "".join(parts)
    assert all(held <= PENDING_LIMIT for held in _held(parts, passed))


def _held(parts: list[str], passed: list[str]) -> list[int]:
    """Return how many characters were held back after each part."""
    sums = [0]
    for part, out in zip(parts, passed, strict=True):
        sums.append(sums[-1] + len(part) - len(out))
    return sums[1:]


def test_redraws_are_not_passed_on_before_their_line_ends() -> None:
    line = Redraws(fresh=True)

    assert [line.add(bar(step, 100)) for step in range(101)] == [""] * 101
    assert line.add("\n") == f"{bar(100, 100)[1:]}\n"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", True),
        ("a\n", True),
        ("a", False),
        ("a\r", False),
        ("\x1b[31ma\n", False),
        ("\x1b[31ma\x1b[0m\n", True),
        ("\x1b[31ma\x1b[m\r\n", True),
        ("\x1b[5Aa\n", False),
    ],
)
def test_text_is_clean_if_it_ends_at_a_line_start_without_colour(
    text: str, *, clean: bool
) -> None:
    line = Redraws(fresh=True)
    line.add(text)

    assert line.clean is clean


def test_text_that_is_given_up_is_not_clean() -> None:
    line = Redraws(fresh=True)
    line.add("a")
    line.rest()

    assert not line.clean


@patient
@given(st.lists(st.sampled_from(["a", "bb", "\r", "\n"]), max_size=12))
def test_readers_agree_on_whole_lines(parts: list[str]) -> None:
    """If the readers themselves were wrong, the tests above would prove little."""
    text = "".join(parts)
    rows = [
        "".join(row.get(column, (" ", ()))[0] for column in range(len(row)))
        for row in terminal(text).rows
    ]

    assert rows == [line.rstrip("\r") for line in notebook(text)]
