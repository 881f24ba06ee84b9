"""Messages are folded to what a front end shows in the end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbckpt.outputs.folding import MESSAGE, WIDGET_VIEW, Fold
from nbckpt.outputs.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Message = tuple[str, dict[str, Any]]


def text(words: str, name: str = "stdout") -> Message:
    """Print something."""
    return "stream", {"name": name, "text": words}


def show(html: str, name: str | None = None, kind: str = "display_data") -> Message:
    """Display something, under an id if one is given."""
    content: dict[str, Any] = {"data": {"text/html": html}, "metadata": {}}
    return kind, content | {"transient": {"display_id": name} if name else {}}


def update(html: str, name: str) -> Message:
    """Change what is displayed under an id."""
    return show(html, name, "update_display_data")


def result(value: str) -> Message:
    """Show a result."""
    content = {"data": {"text/plain": value}, "metadata": {}, "execution_count": 3}
    return "execute_result", content


def capture(widget: str, request: str) -> Message:
    """Let an output widget take over the output of a request, or give it back."""
    data = {"method": "update", "state": {"msg_id": request}, "buffer_paths": []}
    return "comm_msg", {"comm_id": widget, "data": data}


CLEAR: Message = ("clear_output", {"wait": False})
CLEAR_LATER: Message = ("clear_output", {"wait": True})


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    """Give a folder to spill into."""
    return tmp_path / "spill"


def folded(spill: Path, messages: Iterable[Message]) -> list[Message]:
    """Fold messages of the request ``ours``."""
    fold = Fold(Tape(spill), "ours")
    for kind, content in messages:
        fold.take(kind, content)
    recording = fold.finish()
    lines = bytes(recording.data()).splitlines()
    recording.close()
    return [(m["msg_type"], m["content"]) for m in map(json.loads, lines)]


def test_neighbouring_text_of_one_stream_is_one_message(spill: Path) -> None:
    messages = [text("a"), text("b\n"), text("e", "stderr"), text("c"), text("d")]

    assert folded(spill, messages) == [text("ab\n"), text("e", "stderr"), text("cd")]


def test_a_line_is_not_folded_across_another_output(spill: Path) -> None:
    messages = [text("long\rab"), show("x"), text("\rc\rde\n"), text("f\rg")]

    assert folded(spill, messages) == [
        text("long\rab"),
        show("x"),
        text("\rde\ng"),
    ]


@pytest.mark.parametrize("other", ["stdout", "stderr"])
def test_an_unfinished_line_of_any_stream_makes_the_next_line_unknown(
    spill: Path, other: str
) -> None:
    messages = [text("ragged", other), show("x"), text("\ra\rb")]

    assert folded(spill, messages)[-1] == text("\rb")


def test_a_finished_line_makes_the_next_line_known(spill: Path) -> None:
    messages = [text("ragged", "stderr"), text("\n", "stderr"), show("x"), text("\ra")]

    assert folded(spill, messages)[-1] == text("a")


def test_clearing_drops_what_was_shown(spill: Path) -> None:
    messages = [text("a"), show("b"), result("1"), CLEAR, text("c")]

    assert folded(spill, messages) == [text("c")]


def test_clearing_later_waits_for_the_next_output(spill: Path) -> None:
    assert folded(spill, [text("a"), CLEAR_LATER]) == [text("a")]
    assert folded(spill, [text("a"), CLEAR_LATER, text("b")]) == [text("b")]


def test_clearing_now_settles_a_clearing_later(spill: Path) -> None:
    messages = [text("a"), CLEAR_LATER, CLEAR, text("b"), text("c")]

    assert folded(spill, messages) == [text("bc")]


def test_an_update_does_not_count_as_the_next_output(spill: Path) -> None:
    messages = [show("a", "x"), CLEAR_LATER, update("b", "x"), text("c")]

    assert folded(spill, messages[:3]) == [show("b", "x")]
    assert folded(spill, messages) == [text("c")]


def test_an_update_changes_every_display_of_its_id_in_place(spill: Path) -> None:
    messages = [show("1", "x"), text("t"), show("2", "x"), update("3", "x")]

    assert folded(spill, messages) == [show("3", "x"), text("t"), show("3", "x")]


def test_an_update_can_change_a_result(spill: Path) -> None:
    shown = show("1", "x", "execute_result")

    assert folded(spill, [shown, update("2", "x")]) == [
        show("2", "x", "execute_result")
    ]


def test_only_the_last_update_of_a_display_elsewhere_is_kept(spill: Path) -> None:
    messages = [update("1", "x"), text("a"), update("2", "x"), update("3", "y")]

    assert folded(spill, messages) == [update("2", "x"), update("3", "y"), text("a")]


def test_clearing_does_not_undo_updates_of_displays_elsewhere(spill: Path) -> None:
    messages = [text("a"), update("1", "x"), show("b"), update("2", "y"), CLEAR]
    messages += [text("c"), update("3", "x")]

    assert folded(spill, messages) == [update("3", "x"), update("2", "y"), text("c")]


def test_a_display_that_was_cleared_is_elsewhere(spill: Path) -> None:
    messages = [show("1", "x"), CLEAR, update("2", "x")]

    assert folded(spill, messages) == [update("2", "x")]


def test_an_update_without_id_changes_nothing(spill: Path) -> None:
    assert folded(spill, [show("1"), show("2", kind="update_display_data")]) == [
        show("1")
    ]


def test_text_around_an_update_is_still_one_line(spill: Path) -> None:
    messages = [text("\r1%"), update("a", "x"), text("\r2%"), update("b", "x")]

    assert folded(spill, messages) == [update("b", "x"), text("2%")]


def test_results_lose_their_number_and_errors_keep_all(spill: Path) -> None:
    error = {"ename": "E", "evalue": "v", "traceback": ["t"]}

    assert folded(spill, [result("1"), ("error", error)]) == [
        ("execute_result", {"data": {"text/plain": "1"}, "metadata": {}}),
        ("error", error),
    ]


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        ({}, {WIDGET_VIEW: {"model_id": "m"}}),
        ({"text/plain": "IntSlider()"}, {"text/plain": "IntSlider()"}),
    ],
)
def test_a_widget_view_is_kept_only_if_nothing_else_shows(
    spill: Path, others: dict[str, Any], kept: dict[str, Any]
) -> None:
    content = {"data": {WIDGET_VIEW: {"model_id": "m"}} | others, "metadata": {}}

    assert folded(spill, [("display_data", content)]) == [
        ("display_data", {"data": kept, "metadata": {}})
    ]


def test_the_content_that_is_taken_is_left_as_it_was(spill: Path) -> None:
    content = {"data": {WIDGET_VIEW: 1, "text/plain": "a"}, "metadata": None}
    folded(spill, [("display_data", content)])

    assert content == {"data": {WIDGET_VIEW: 1, "text/plain": "a"}, "metadata": None}


def test_what_a_widget_takes_over_is_dropped(spill: Path) -> None:
    messages = [text("a"), capture("w", "ours"), text("b"), show("c"), CLEAR]
    messages += [capture("w", ""), text("d")]

    assert folded(spill, messages) == [text("ad")]


def test_a_widget_may_take_over_within_another(spill: Path) -> None:
    messages = [capture("w", "ours"), capture("v", "ours"), capture("v", ""), text("a")]

    assert folded(spill, [*messages, capture("w", ""), text("b")]) == [text("b")]


def test_displays_of_the_cell_are_updated_from_within_a_widget(spill: Path) -> None:
    messages = [show("1", "x"), capture("w", "ours"), update("2", "x")]

    assert folded(spill, messages) == [show("2", "x")]


@pytest.mark.parametrize(
    "data",
    [
        {"method": "update", "state": {"msg_id": "other"}},
        {"method": "update", "state": {"value": 3}},
        {"method": "custom", "content": {}},
        {},
    ],
)
def test_other_widget_messages_take_nothing_over(
    spill: Path, data: dict[str, Any]
) -> None:
    comm = ("comm_msg", {"comm_id": "w", "data": data})

    assert folded(spill, [comm, text("a")]) == [text("a")]


def test_a_result_is_remembered_even_if_it_is_cleared(spill: Path) -> None:
    fold = Fold(Tape(spill))
    assert not fold.has_result
    fold.take(*result("1"))
    fold.take(*CLEAR)

    recording = fold.finish()

    assert recording.has_result
    assert recording.data() == b""
    recording.close()


@pytest.mark.parametrize("letter", ["a", "ä", "\x01", "😀", "\ud800", "a\n"])
def test_text_of_any_size_becomes_messages_of_bounded_size(
    spill: Path, letter: str
) -> None:
    long = letter * (4 * MESSAGE // len(letter))
    fold = Fold(Tape(spill))
    fold.take(*text(long[:1000]))
    fold.take(*text(long[1000:]))
    recording = fold.finish()
    lines = bytes(recording.data()).splitlines()
    recording.close()

    assert max(map(len, lines)) <= MESSAGE
    assert "".join(json.loads(line)["content"]["text"] for line in lines) == long


def test_a_display_cleared_for_hours_leaves_nothing(spill: Path) -> None:
    messages = [m for n in range(400) for m in (CLEAR_LATER, show(f"{n}" + "." * 9999))]

    assert folded(spill, messages) == [messages[-1]]
    assert not spill.exists(), "the cleared ones were dropped at once"


small = st.sampled_from(
    [
        text("a"),
        text("b\n"),
        text("\rc"),
        text("e", "stderr"),
        show("1"),
        show("2", "x"),
        show("3", "y"),
        update("4", "x"),
        update("5", "z"),
        CLEAR,
        CLEAR_LATER,
        result("6"),
    ]
)


def front_end(messages: Iterable[Message]) -> tuple[list[Any], dict[str, str]]:
    """Show messages as nbclient does, beside a cell that displays all ids already."""
    shown: list[Any] = []
    elsewhere: dict[str, str] = {}
    clears = False
    for kind, content in messages:
        name = content.get("transient", {}).get("display_id")
        html = content.get("data", {}).get("text/html")
        if kind == "update_display_data":
            shown = [[n, html] if n == name else [n, h] for n, h in shown]
            elsewhere[name] = html
            continue
        if kind == "clear_output":
            clears = content["wait"]
            shown = shown if clears else []
            continue
        shown, clears = [] if clears else shown, False
        if kind == "stream":
            html = content["text"]
            name = content["name"]
            if shown and shown[-1][0] == name:
                html = shown.pop()[1] + html
        shown.append([name, html])
    return shown, elsewhere


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(messages=st.lists(small, max_size=14))
def test_a_front_end_shows_the_same(
    messages: list[Message], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Text with returns is compared as nbclient reads it; see test_redraws."""
    again = folded(tmp_path_factory.getbasetemp(), messages)
    shown, elsewhere = front_end(messages)
    shown_again, elsewhere_again = front_end(again)

    assert _without_returns(shown_again) == _without_returns(shown)
    cleared = {"x", "y"} & elsewhere.keys() - elsewhere_again.keys()
    assert elsewhere_again.items() <= elsewhere.items()
    assert elsewhere.keys() - elsewhere_again.keys() == cleared


def _without_returns(shown: list[Any]) -> list[Any]:
    """Show each text by its last redraws only."""
    return [
        [name, "\n".join(line.rpartition("\r")[2] for line in (html or "").split("\n"))]
        for name, html in shown
    ]
