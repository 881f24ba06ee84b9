"""Loops over items: what is done is passed over, what is kept stands."""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.codecs import canonical
from nbckpt.errors import BadStep
from nbckpt.loops import begun

if TYPE_CHECKING:
    from nbckpt.records import LoopRecord
    from tests.notebook import Notebook

LOOP = """%%step a --ignore worked --ignore stop
for item in nbckpt.items({items}{options}):
    worked.append(item)
    if item == stop:
        1 / 0
{body}"""


@pytest.fixture
def notebook(notebook: Notebook) -> Notebook:
    prepare(notebook)
    return notebook


def prepare(notebook: Notebook, stop: object = None) -> None:
    notebook.run("import nbckpt")
    notebook.names.update(worked=[], stop=stop)


def cell(items: str = "range(6)", options: str = "", body: str = "    pass") -> str:
    return LOOP.format(items=items, options=options, body=body)


def worked(notebook: Notebook) -> list[Any]:
    found: list[Any] = notebook.names["worked"]
    return found


def loops(notebook: Notebook) -> list[LoopRecord]:
    return notebook.journal.loops(notebook.session.run_id, "a")


def fail_at(notebook: Notebook, item: object, source: str) -> None:
    """Run a cell that fails at an item, and begin a new kernel."""
    notebook.names["stop"] = item
    assert isinstance(notebook.error(source), ZeroDivisionError)
    notebook.restart()
    prepare(notebook)


def test_loop_goes_on_at_the_item_that_failed(notebook: Notebook) -> None:
    fail_at(notebook, 3, cell())
    notebook.run(cell())
    assert worked(notebook) == [3, 4, 5]


def test_item_that_failed_is_listed_with_its_error(notebook: Notebook) -> None:
    notebook.names["stop"] = 3
    notebook.error(cell())
    (loop,) = loops(notebook)
    assert (loop.done, loop.total, loop.failed, loop.ended) == (3, 6, 1, False)
    assert loop.next_input is not None
    assert loop.next_input.item == "3"
    (error,) = loop.errors
    assert (error.item, error.attempt) == ("3", 1)
    assert error.error == "ZeroDivisionError: division by zero"
    assert list(notebook.journal.items_done(loop)) == ["0", "1", "2"]


NEXT = """%%step a
import threading
from nbckpt.current import session
box, seen = [], []
def named():
    here = session()
    return here.store.get(f"loop/{{here.run_id}}/a/1")["next_input"]["item"]
for item in nbckpt.items(range(4), {options}):
    box.append(item)
{body}"""


@pytest.mark.parametrize("options", ["keep='box'", "every=9"])
def test_next_input_is_written_before_an_item_that_may_have_an_effect(
    notebook: Notebook, options: str
) -> None:
    body = "    nbckpt.effect('send', lambda: seen.append(named()))"
    notebook.run(NEXT.format(options=options, body=body))
    assert notebook.names["seen"] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("options", ["", "keep='box'", "keep='box', every=9"])
def test_next_input_is_written_soon_after_a_long_item_began(
    notebook: Notebook, options: str
) -> None:
    body = """    while named() != str(item):
        threading.Event().wait(0.001)
    seen.append(named())"""
    notebook.run(NEXT.format(options=options, body=body))
    assert notebook.names["seen"] == ["0", "1", "2", "3"]


def test_lineage_is_read_once_for_all_loops_of_a_body(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    lineage = begun.lineage
    monkeypatch.setattr(
        begun, "lineage", lambda place: read.append(place) or lineage(place)
    )
    notebook.run(
        """%%step a
for outer in nbckpt.items(range(5)):
    for inner in nbckpt.items(range(2)):
        pass"""
    )
    assert len(read) == 1


def test_loop_outside_of_a_step_is_refused(notebook: Notebook) -> None:
    error = notebook.error("for x in nbckpt.items([1]): pass")
    assert isinstance(error, BadStep)
    assert "outside of a step" in str(error)


def test_two_equal_keys_are_an_error_before_any_item_runs(notebook: Notebook) -> None:
    error = notebook.error(cell("[1, 2, 1]"))
    assert isinstance(error, BadStep)
    assert "two items have the key '1'" in str(error)
    assert worked(notebook) == []


def test_second_of_two_equal_keys_of_an_iterator_does_not_run(
    notebook: Notebook,
) -> None:
    assert isinstance(notebook.error(cell("iter([1, 2, 1])")), BadStep)
    assert worked(notebook) == [1, 2]


def test_key_gives_items_their_names(notebook: Notebook) -> None:
    items = "[{'id': n, 'v': n} for n in range(4)]"
    source = cell(items, ", key=lambda row: row['id']").replace(
        "item == stop", "item['id'] == stop"
    )
    fail_at(notebook, 2, source)
    notebook.run(source)
    assert [row["id"] for row in worked(notebook)] == [2, 3]


def test_item_without_key_counts_by_its_content(notebook: Notebook) -> None:
    source = cell("[(n, str(n)) for n in range(4)]").replace(
        "item == stop", "item[0] == stop"
    )
    fail_at(notebook, 2, source)
    notebook.run(source)
    assert worked(notebook) == [(2, "2"), (3, "3")]


def test_item_that_has_no_lasting_content_needs_a_key(notebook: Notebook) -> None:
    error = notebook.error(cell("[(n for n in [1])]"))
    assert isinstance(error, BadStep)
    assert "key=" in str(error)


@pytest.mark.parametrize(
    "key",
    ["(n, 'a')", "n / 2", "numpy.int64(n)", "pathlib.Path(str(n))", "n + 9**9999"],
)
def test_key_of_any_kind_that_lasts_tells_items_apart(
    notebook: Notebook, key: str
) -> None:
    notebook.run("import numpy, pathlib")
    source = cell("range(4)", f", key=lambda n: {key}")
    fail_at(notebook, 2, source)
    notebook.run("import numpy, pathlib")
    notebook.run(source)
    assert worked(notebook) == [2, 3]


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("None", "key gave None"),
        ("(m for m in [n])", "a key holds a"),
        ("n // 5 or float('nan')", "two items have the key nan"),
    ],
)
def test_key_that_tells_no_item_is_refused_and_shown(
    notebook: Notebook, key: str, part: str
) -> None:
    error = notebook.error(cell("[1, 2]", f", key=lambda n: {key}"))
    assert isinstance(error, BadStep)
    assert part in str(error)


def test_done_item_with_another_value_runs_again(notebook: Notebook) -> None:
    options = ", key=lambda pair: pair[0]"
    source = "rows = [(0, 'a'), (1, 'b'), (2, 'c')]"
    loop = cell("rows", options).replace("item == stop", "item[0] == stop")
    notebook.run(source)
    notebook.names["stop"] = 2
    notebook.error(loop)
    notebook.restart()
    prepare(notebook)
    notebook.run(source.replace("'b'", "'B'"))
    notebook.run(loop)
    assert worked(notebook) == [(1, "B"), (2, "c")]


def test_done_item_whose_file_is_gone_runs_again(notebook: Notebook) -> None:
    body = "    open(f'{item}.txt', 'w').close()"
    source = cell(body=body)
    fail_at(notebook, 3, source)
    notebook.run("import os; os.remove('1.txt')")
    notebook.run(source)
    assert worked(notebook) == [1, 3, 4, 5]


def test_done_item_whose_file_has_lost_its_bytes_runs_again(notebook: Notebook) -> None:
    # So a file stands after a loss of power that nobody had synced.
    source = cell(body="    with open(f'{item}.txt', 'w') as f: f.write('x' * item)")
    fail_at(notebook, 3, source)
    notebook.run("import os; os.truncate('0.txt', 0); os.truncate('2.txt', 0)")
    notebook.run(source)
    assert worked(notebook) == [2, 3, 4, 5]


def test_item_is_done_that_wrote_beside_its_place_and_moved_the_file(
    notebook: Notebook,
) -> None:
    new = "    open(f'{item}.new', 'w').close(); "
    source = cell(body=f"{new}os.replace(f'{{item}}.new', f'{{item}}.txt')")
    notebook.run("import os")
    fail_at(notebook, 3, source)
    notebook.run("import os; os.remove('1.txt')")
    notebook.run(source)
    assert worked(notebook) == [1, 3, 4, 5]


def test_files_of_items_done_before_are_evidence_of_the_step(
    notebook: Notebook,
) -> None:
    source = cell(body="    open(f'{item}.txt', 'w').close()")
    fail_at(notebook, 3, source)
    notebook.run(source)
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    assert sorted(record.evidence.files) == [f"{n}.txt" for n in range(6)]


def test_files_read_for_items_done_before_are_inputs_of_the_step(
    notebook: Notebook,
) -> None:
    source = cell(body="    open(f'in{item}.txt').close()")
    notebook.run("for n in range(6): open(f'in{n}.txt', 'w').close()")
    fail_at(notebook, 3, source)
    notebook.run(source)
    record = notebook.journal.step(notebook.session.run_id, "a")
    assert record is not None
    assert sorted(record.fingerprint.files) == [f"in{n}.txt" for n in range(6)]


def test_completed_step_that_runs_again_begins_its_items_anew(
    notebook: Notebook,
) -> None:
    notebook.run(cell())
    notebook.run("%nbckpt rerun a")
    notebook.run(cell())
    assert worked(notebook) == [*range(6), *range(6)]


def test_rerun_of_a_failed_step_begins_its_items_anew_once(notebook: Notebook) -> None:
    fail_at(notebook, 3, cell())
    notebook.run("%nbckpt rerun a")
    fail_at(notebook, 2, cell())
    notebook.run(cell())
    assert worked(notebook) == [2, 3, 4, 5]


def test_edited_code_leaves_items_done_and_says_so(notebook: Notebook) -> None:
    fail_at(notebook, 3, cell())
    notebook.told()
    notebook.run(cell(body="    x = 1"))
    assert worked(notebook) == [3, 4, 5]
    told = notebook.told()
    assert "its code was edited since 3 of 6 items were done" in told
    assert "nbckpt rerun a" in told


def test_loop_that_completes_leaves_its_counts(notebook: Notebook) -> None:
    notebook.run(cell())
    (loop,) = loops(notebook)
    assert (loop.done, loop.total, loop.ended) == (6, 6, True)
    assert loop.next_input is None


def test_current_item_is_the_key_while_the_body_works(notebook: Notebook) -> None:
    notebook.run("from nbckpt import current")
    body = "    worked.append(current.item.get())"
    notebook.run(cell("['x', 'y']", body=body) + "\nworked.append(current.item.get())")
    assert worked(notebook) == ["x", "x", "y", "y", ""]


def test_current_item_is_none_after_a_body_that_failed(notebook: Notebook) -> None:
    notebook.names["stop"] = 3
    notebook.error(cell())
    notebook.run("from nbckpt import current\nleft = current.item.get()")
    assert notebook.names["left"] == ""


def test_error_told_to_a_loop_that_continues_is_listed_and_the_item_runs_again(
    notebook: Notebook,
) -> None:
    source = """%%step a --ignore worked --ignore stop
loop = nbckpt.items(range(4), on_error="continue")
for item in loop:
    worked.append(item)
    try:
        1 / (item - 1)
    except ZeroDivisionError as error:
        loop.failed(error)
    if item == stop:
        [][0]
failed = [error.item for error in loop.errors]
"""
    notebook.names["stop"] = 2
    notebook.error(source)
    assert loops(notebook)[0].failed == 2
    notebook.restart()
    prepare(notebook)
    notebook.run(source)
    assert worked(notebook) == [1, 2, 3]
    assert notebook.names["failed"] == ["1"]
    assert "1 of its items failed" in notebook.told()
    (loop,) = loops(notebook)
    assert [error.item for error in loop.errors] == ["1"]
    assert (loop.done, loop.failed) == (3, 1)


def test_error_told_to_a_loop_that_stops_is_raised(notebook: Notebook) -> None:
    source = """%%step a
loop = nbckpt.items(range(4))
for item in loop:
    loop.failed(KeyError(item))
"""
    assert isinstance(notebook.error(source), KeyError)
    assert loops(notebook)[0].errors[0].item == "0"


def test_error_after_a_loop_that_was_left_is_none_of_an_item(
    notebook: Notebook,
) -> None:
    notebook.error(cell(body="    break") + "\n[][0]")
    assert loops(notebook)[0].errors == ()


def test_error_told_outside_of_the_body_is_refused(notebook: Notebook) -> None:
    error = notebook.error("%%step a\nnbckpt.items([1]).failed(KeyError(1))")
    assert isinstance(error, BadStep)


def test_interrupt_is_no_error_of_the_item(notebook: Notebook) -> None:
    source = cell().replace("1 / 0", "raise KeyboardInterrupt")
    notebook.names["stop"] = 3
    notebook.run(source, fine=False)
    (loop,) = loops(notebook)
    assert (loop.done, loop.errors) == (3, ())
    notebook.restart()
    prepare(notebook)
    notebook.run(source)
    assert worked(notebook) == [3, 4, 5]


def test_two_loops_of_a_step_are_told_apart(notebook: Notebook) -> None:
    second = "\nfor other in nbckpt.items(range(3)):\n    worked.append(-other)"
    source = cell() + second
    fail_at(notebook, 5, source)
    notebook.run(source)
    assert worked(notebook) == [5, 0, -1, -2]
    assert [loop.loop for loop in loops(notebook)] == ["1", "2"]


def test_named_loop_is_found_below_a_new_one(notebook: Notebook) -> None:
    source = cell(options=", name='main'")
    fail_at(notebook, 3, source)
    first = "for other in nbckpt.items(range(3)):\n    pass\nfor item"
    notebook.run(source.replace("for item", first))
    assert worked(notebook) == [3, 4, 5]


def test_two_loops_of_one_name_are_refused(notebook: Notebook) -> None:
    one = "for item in nbckpt.items([1], name='x'):\n    pass\n"
    assert isinstance(notebook.error(f"%%step a\n{one}{one}"), BadStep)


def test_loop_that_is_begun_twice_is_refused(notebook: Notebook) -> None:
    error = notebook.error("%%step a\nloop = nbckpt.items([1])\nlist(loop), list(loop)")
    assert isinstance(error, BadStep)


@pytest.mark.parametrize(
    "options", [", every=0", ", every=True", ", on_error='no'", ", name='a/b'"]
)
def test_argument_that_makes_no_sense_is_refused(
    notebook: Notebook, options: str
) -> None:
    assert isinstance(notebook.error(cell(options=options)), BadStep)


NESTED = """%%step a --ignore worked --ignore stop
from nbckpt import current
for outer in nbckpt.items(["x", "y"]):
    for inner in nbckpt.items(range(3)):
        worked.append(current.item.get())
        if (outer, inner) == stop:
            1 / 0
"""


def test_loop_inside_an_item_goes_on_too(notebook: Notebook) -> None:
    fail_at(notebook, ("y", 1), NESTED)
    notebook.run(NESTED)
    assert worked(notebook) == ["y/1", "y/2"]


def test_loops_inside_an_item_go_when_it_is_done(notebook: Notebook) -> None:
    notebook.run(NESTED)
    assert [loop.loop for loop in loops(notebook)] == ["1"]
    assert len(notebook.session.store.keys("done/")) == 1


def test_trial_of_a_step_with_retries_goes_on_at_its_item(notebook: Notebook) -> None:
    source = """%%step a --retries 2 --backoff 0 --ignore worked
for item in nbckpt.items(range(4)):
    worked.append(item)
    if worked == [0, 1, 2]:
        1 / 0
"""
    notebook.run(source)
    assert worked(notebook) == [0, 1, 2, 2, 3]


def test_every_writes_after_so_many_items(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def look() -> None:
        counts.append(loops(notebook)[0].done)

    monkeypatch.setattr(builtins, "look", look, raising=False)
    notebook.run(cell(options=", every=2", body="    look()"))
    assert counts == [0, 0, 2, 2, 4, 4]


def test_last_items_of_many_cost_as_many_calls_as_the_first(
    notebook: Notebook,
) -> None:
    part, count = 1000, 8000
    calls, seen = [0], []

    def counting(_: object, event: str, __: object) -> None:
        calls[0] += event in ("call", "c_call")

    notebook.names["stamp"] = lambda: seen.append(calls[0])
    sys.setprofile(counting)
    try:
        notebook.run(
            f"""%%step a --ignore stamp --drop stamp
for item in nbckpt.items(range({count}), every={part // 2}):
    if item % {part} == 0:
        stamp()"""
        )
    finally:
        sys.setprofile(None)
    first, last = seen[2] - seen[1], seen[-1] - seen[-2]
    assert last < first * 1.05


ORDERS = """class Order:
    rate = {rate}
    def __init__(self, number):
        self.number = number
    def __eq__(self, other):
        return self.number == other
orders = [Order(n) for n in range(4)]"""
BY_NUMBER = ", key=lambda order: order.number"


def numbers(notebook: Notebook) -> list[int]:
    return [order.number for order in worked(notebook)]


def test_what_a_body_does_to_the_class_of_its_items_makes_no_item_another(
    notebook: Notebook,
) -> None:
    """A kernel that resumes the loop begins with the class as it was at first."""
    source = cell("orders", BY_NUMBER, "    type(item).rate += 1")
    notebook.run(ORDERS.format(rate=1))
    notebook.names["stop"] = 2
    assert isinstance(notebook.error(source), ZeroDivisionError)
    notebook.restart()
    prepare(notebook)
    notebook.run(ORDERS.format(rate=1))
    notebook.run(source)
    assert numbers(notebook) == [2, 3]


def test_items_whose_class_was_edited_are_worked_on_again(notebook: Notebook) -> None:
    source = cell("orders", BY_NUMBER)
    notebook.run(ORDERS.format(rate=1))
    fail_at(notebook, 2, source)
    notebook.run(ORDERS.format(rate=2))
    notebook.run(source)
    assert numbers(notebook) == [0, 1, 2, 3]


def test_class_of_many_items_is_looked_through_once(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked: list[str] = []
    walk = canonical.Canon._walk

    def counted(self: Any, definition: type) -> Any:
        walked.append(definition.__name__)
        return walk(self, definition)

    monkeypatch.setattr(canonical.Canon, "_walk", counted)
    notebook.run(ORDERS.format(rate=1).replace("range(4)", "range(40)"))
    notebook.run(cell("orders", BY_NUMBER))
    assert len(worked(notebook)) == 40
    assert 0 < len(walked) < 10
