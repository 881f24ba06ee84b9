"""``status`` and ``show`` tell how far each loop is, and which items failed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.records import ItemError, LoopRecord, NextInput
from nbckpt.runs.history import Reader
from nbckpt.verbs.forms.pages import Tree, plain
from nbckpt.verbs.look.overview import status_page
from nbckpt.verbs.look.steps import show, show_page
from nbckpt.verbs.standing.looping import loop_tree, loops, open_trees
from nbckpt.verbs.standing.status import status
from tests.notebook import Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEP = """%%step load
for number in nbckpt.items({items}):
    if number in (2, 4):
        raise ValueError(f"no {{number}}\\nand why")
"""


GOES_ON = """%%step load
loop = nbckpt.items(range(6), on_error="continue")
for number in loop:
    try:
        if number in (2, 4):
            raise ValueError(f"no {number}\\nand why")
    except ValueError as error:
        loop.failed(error)
del loop, number
"""


class Book(Notebook):
    """A notebook, and what the verbs say of its run."""

    @property
    def reader(self) -> Reader:
        return Reader(self.session.store)

    def status(self) -> Any:
        run = self.reader.run(self.session.run_id)
        return json.loads(json.dumps(status(self.reader, run)))

    def show(self) -> Any:
        run = self.reader.run(self.session.run_id)
        return json.loads(json.dumps(show(self.reader, run, "load")))


@pytest.fixture
def book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Book]:
    monkeypatch.chdir(tmp_path)
    found = Book(capsys)
    found.run("import nbckpt")
    yield found
    found.close()


def step(items: str = "range(6)") -> str:
    return STEP.format(items=items)


def test_loop_that_stopped_is_told_with_what_comes_next(book: Book) -> None:
    book.error(step())
    (loop,) = book.status()["loops"]
    assert {name: loop[name] for name in ("done", "failed", "total", "ended")} == {
        "done": 2, "failed": 1, "total": 6, "ended": False
    }  # fmt: skip
    assert loop["next_input"] == {"item": "2", "text": "2"}
    assert loop["errors"] == [
        {"item": "2", "error": "ValueError: no 2\nand why", "attempt": 1}
    ]
    text = plain(status_page(book.status()))
    assert "items     load/1: 2 of 6 done, 1 failed, next 2: 2" in text
    assert "failed: 2 (attempt 1): ValueError: no 2\n" in text


def test_failed_items_of_a_loop_that_went_on_are_shown_with_the_step(
    book: Book,
) -> None:
    """The line on failed items says: nbckpt show STEP."""
    book.run(GOES_ON)
    assert "nbckpt show load" in book.capsys.readouterr().err
    data = book.show()
    assert [each["item"] for each in data["loops"][0]["errors"]] == ["2", "4"]
    text = plain(show_page(data))
    assert "loop 1: 4 of 6 done, 2 failed, ended" in text
    assert "failed item  attempt  error" in text
    assert "4            1        ValueError: no 4 and why" in text


def test_item_that_is_done_later_is_no_failed_one_any_more(book: Book) -> None:
    book.error(step())
    book.run(step().replace("(2, 4)", "()"))
    (loop,) = book.show()["loops"]
    assert (loop["done"], loop["failed"], loop["errors"]) == (6, 0, [])
    assert (loop["ended"], loop["next_input"]) == (True, None)
    assert "failed item" not in plain(show_page(book.show()))


def test_loop_that_ended_well_takes_no_line_of_the_status(book: Book) -> None:
    book.run(step("range(2)"))
    assert [loop["done"] for loop in book.status()["loops"]] == [2]
    assert "items  " not in plain(status_page(book.status()))


def test_number_of_items_that_is_not_known_is_left_out(book: Book) -> None:
    book.error(step("iter(range(6))"))
    (loop,) = book.status()["loops"]
    assert loop["total"] is None
    assert "load/1: 2 done, 1 failed" in plain(status_page(book.status()))


def test_step_without_a_loop_has_none(book: Book) -> None:
    book.run("%%step load\nx = 1")
    assert book.show()["loops"] == []
    assert book.status()["loops"] == []


def test_only_the_loops_of_the_step_are_shown_with_it(book: Book) -> None:
    book.run(step("range(2)"))
    book.run(step("range(1)").replace("%%step load", "%%step more"))
    assert [loop["step"] for loop in book.show()["loops"]] == ["load"]
    assert [loop["step"] for loop in book.status()["loops"]] == ["load", "more"]


def test_magic_shows_them_too(book: Book) -> None:
    book.error(step())
    book.capsys.readouterr()
    book.run("%nbckpt status")
    book.run("%nbckpt show load")
    out = book.capsys.readouterr().out
    assert "items     load/1: 2 of 6 done" in out
    assert "failed item" in out


def a_loop(count: int, failed: int) -> LoopRecord:
    errors = tuple(ItemError(f"i{n}", "E: " + "x" * 500, 1) for n in range(count))
    return LoopRecord(
        "etl-1", "load", "1", "", "", 1,
        failed=failed, errors=errors, next_input=NextInput("i0", "y" * 200),
        kept=("model", "losses"),
    )  # fmt: skip


class Shelf(Reader):
    """A reader of records that nobody wrote."""

    def __init__(self, *records: LoopRecord) -> None:
        self.records = list(records)

    def loops(self, run_id: str, step: str = "") -> list[LoopRecord]:
        del run_id, step
        return self.records


def test_status_names_a_few_failed_items_and_says_where_the_others_are() -> None:
    lines = plain(open_trees(loops(Shelf(a_loop(200, 1000)), "etl-1"))).splitlines()
    assert len(lines) == 1 + 5 + 1
    assert lines[-1] == "  all of them: nbckpt show load"
    assert all(len(line) < 150 for line in lines)
    assert "i199" in lines[5]


def test_show_names_all_that_are_kept_and_counts_the_others() -> None:
    (loop,) = loops(Shelf(a_loop(200, 1000)), "etl-1")
    text = plain([loop_tree(loop)])
    assert text.count("E: xxx") == 200
    assert "and 800 that failed before these" in text
    assert "keeps: model, losses" in text


def test_loop_without_a_next_item_has_no_word_of_it() -> None:
    found = loops(Shelf(replace(a_loop(0, 0), next_input=None)), "etl-1")
    assert open_trees(found) == [Tree("items     load/1: 0 done", [])]
