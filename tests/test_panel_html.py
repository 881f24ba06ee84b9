"""The panel's HTML: whole, without script, and harmless whatever it shows."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbckpt.panel import html
from nbckpt.panel.html import head_html, steps_html
from nbckpt.panel.style import CSS
from nbckpt.panel.view import LoopView, RunView, State, StepView

VOID = {"br"}
KNOWN_TO_SANITIZERS = {
    "b", "br", "code", "details", "div", "i", "li", "p", "progress", "section",
    "style", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e&amp;"


class Shape(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def a_run(text: str = "load") -> RunView:
    """Return a run with one step in each state, and a text wherever there can be one."""
    steps = [
        StepView(
            number, f"{text}-{number}", state, 2.0, 90.0, 20.0,
            4.0 if state is State.SKIPPED else 0.0, text, (text, "check x"),
            (LoopView(text, 6, 12, 3), LoopView(text, 7)),
        )
        for number, state in enumerate(State, 1)
    ]  # fmt: skip
    return RunView(text, tuple(steps), 80.0, 100.0, text, steps[1].loops)


def many(state: State, count: int, **known: Any) -> tuple[StepView, ...]:
    """Return as many steps in one state."""
    return tuple(
        StepView(n, f"s{n}", state, saved=1.0, **known) for n in range(1, count + 1)
    )


def folded(text: str = "load") -> str:
    """Return the page of a stretch of steps, of which each is known by a text."""
    known = {"why": text, "evidence": (text,), "loops": (LoopView(text, 6),)}
    return steps_html(RunView(text, many(State.SKIPPED, 20, **known)))


def both(run: RunView) -> str:
    return head_html(run) + steps_html(run)


def test_page_uses_only_tags_that_sanitizers_leave_in_place() -> None:
    assert set(Shape(both(a_run())).tags) == KNOWN_TO_SANITIZERS


def test_page_holds_no_script_and_no_address() -> None:
    found = Shape(both(a_run(HOSTILE))).attributes
    names = {name for name, _ in found}
    assert names <= {
        "aria-hidden",
        "aria-label",
        "class",
        "max",
        "scope",
        "value",
    }
    assert "style" not in names
    assert "url(" not in CSS
    assert "@import" not in CSS


@given(st.text(min_size=1))
@settings(max_examples=30, deadline=None)
def test_text_changes_nothing_but_text(text: str) -> None:
    assert Shape(both(a_run(text))).tags == Shape(both(a_run())).tags
    assert Shape(folded(text)).tags == Shape(folded()).tags


def test_hostile_name_is_shown_as_it_is_without_marks_that_turn_it() -> None:
    shown = Shape(steps_html(a_run(HOSTILE))).text
    assert HOSTILE.replace("\u202e", "\N{REPLACEMENT CHARACTER}") in shown


@pytest.mark.parametrize("state", list(State))
def test_step_shows_its_state_in_icon_and_word(state: State) -> None:
    [row] = re.findall(rf"<tr class={state}>.*?</tr>", steps_html(a_run()))
    shown = Shape(row).text
    assert state.icon in shown
    assert state.word in shown


def test_words_stay_apart_where_the_style_is_lost() -> None:
    """A sanitizer takes the style: cells then hold the columns apart, blanks the words."""
    [row] = re.findall(r"<tr class=skipped>.*?</tr>", steps_html(a_run()))
    cells = [Shape(cell).text for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
    assert cells[0] == "1 load-1"
    assert cells[1].split(maxsplit=1)[1] == "verified, skipped"
    assert cells[3] == "saved 4.0 s"


def test_evidence_opens_by_keyboard_and_mouse_without_a_script() -> None:
    page = steps_html(a_run("out.csv"))
    assert "<details><summary>evidence: 2 pieces</summary>" in page
    assert "<li><code>out.csv</code></li>" in page


def test_head_tells_counts_time_left_and_saved() -> None:
    shown = Shape(head_html(a_run("r-1"))).text
    assert "r-1 \N{MIDDLE DOT} 3 of 10 steps done" in shown
    assert "elapsed 20 s" in shown
    assert "saved 4.0 s" in shown
    assert "as of 1970-01-01" in shown


def test_head_tells_the_running_step_and_its_items() -> None:
    shown = Shape(head_html(a_run("geo"))).text
    assert "geo-2 running for 10 s, last time 20.0 s" in shown
    assert "6 of 12 items, 3 failed" in shown
    assert "7 items" in shown


def test_items_have_a_bar_with_a_name_if_their_end_is_known() -> None:
    page = head_html(a_run("geo"))
    label = 'aria-label="items of geo-2, loop geo"'
    assert f'<progress max="12" value="6" {label}></progress>' in page
    assert page.count("<progress") == 1


def test_bar_holds_each_step_and_is_hidden_from_readers() -> None:
    [bar] = re.findall('<div class="bar" aria-hidden="true">(.*?)</div>', both(a_run()))
    assert re.findall("<i class=(.*?)></i>", bar) == list(State)


def test_fold_has_the_place_of_all_of_its_steps_in_the_bar() -> None:
    page = steps_html(RunView("r-1", many(State.SKIPPED, 200)))
    assert "<i class=skipped style=flex:200></i></div>" in page


def test_only_the_line_of_a_changed_step_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = RunView("r-1", many(State.FAILED, 200))
    steps_html(run)
    made: list[str] = []
    monkeypatch.setattr(html, "_told", lambda step: made.append(step.name) or ["new"])
    page = steps_html(run.put(replace(run.steps[7], state=State.RUNNING)))
    assert made == ["s8"]
    assert page.count("<td>new</td>") == 1
    assert page.count("<tr class=failed>") == 199


def test_line_is_written_in_ascii_and_reads_as_it_was() -> None:
    page = steps_html(a_run("\N{GREEK SMALL LETTER PI}r\N{LATIN SMALL LETTER E}²"))
    assert page.isascii() is False
    [row] = re.findall(r"<tr class=skipped>.*?</tr>", page)
    assert row.isascii()
    assert "1 \N{GREEK SMALL LETTER PI}re²-1" in Shape(row).text


def test_resume_command_is_chosen_whole_by_one_click() -> None:
    assert "<code>nbckpt run a.ipynb</code>" in steps_html(
        RunView("r-1", resume="nbckpt run a.ipynb")
    )
    assert "user-select:all" in CSS


def test_run_that_is_done_needs_no_command() -> None:
    step = StepView(1, "load", State.DONE)
    assert "crash" not in steps_html(RunView("r-1", (step,), resume="nbckpt run a"))


def test_run_that_nobody_began_shows_its_steps_alone() -> None:
    run = RunView("", (StepView(1, "load"),))
    shown = Shape(both(run)).text
    assert "0 of 1 steps done" in shown
    assert "elapsed" not in shown
    assert "crash" not in shown


def test_fold_opens_into_the_names_of_its_steps() -> None:
    page = steps_html(RunView("r-1", many(State.SKIPPED, 200)))
    assert page.count("<tr") == 2
    assert "<summary>200 steps</summary>" in page
    assert "<li>77 s77 saved 1.0 s</li>" in page
    assert "saved 3 min 20 s" in page


def test_step_of_a_fold_opens_into_all_that_is_known_of_it() -> None:
    page = folded("out.csv")
    assert page.count("<tr") == 2
    known = "<li>6 items</li><li>out.csv</li><li><code>out.csv</code></li>"
    step = f"<summary>7 s7 saved 1.0 s</summary><ul>{known}</ul></details></li>"
    assert f"<li><details>{step}" in page
    assert page.count("<details>") == 21
    assert page.isascii()


def test_style_takes_the_colours_of_the_host_and_moves_nothing() -> None:
    rules: Any = re.findall(r"--[a-z]+:(.*?);", CSS)
    assert all(rule.startswith("var(--jp-") for rule in rules)
    assert "animation" not in CSS
    assert "transition" not in CSS
    assert ":focus-visible" in CSS
