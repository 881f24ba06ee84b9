"""What a run keeps is told by step, and each pack is counted once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.runs.history import Reader
from nbckpt.verbs.forms.pages import plain
from nbckpt.verbs.look.sizes import Size, size_of, size_page, size_picture
from tests.notebook import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

BULK = 1_000_000


@pytest.fixture(scope="module")
def found(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Size, Size, Size]]:
    """Return the size of a run, then that of the next run, then of the first again."""
    with opened(tmp_path_factory.mktemp("sizes")) as notebook:
        notebook.run("import numpy")
        notebook.run(f"chance = numpy.random.default_rng(0).bytes({BULK})")
        notebook.run("%%step load\nbulk = numpy.frombuffer(chance, 'u1').copy()")
        notebook.run("%%step copy\nagain = bulk.copy()")
        notebook.run("%%step count\ncount = len(bulk)")
        reader, first = Reader(notebook.session.store), notebook.session.run_id
        before = size_of(reader, reader.run(first))
        notebook.run("%nbckpt start --fresh")
        notebook.run("%%step load\nsmall = 1")
        reader = Reader(notebook.session.store)
        other = size_of(reader, reader.run(notebook.session.run_id))
        yield before, other, size_of(reader, reader.run(first))


@pytest.fixture
def data(found: tuple[Size, Size, Size]) -> Size:
    """Return the size of the first run."""
    return found[0]


def by_step(data: Size) -> dict[str, Any]:
    return {step["step"]: step for step in data["steps"]}


def test_bytes_that_two_steps_need_are_counted_with_the_first(data: Size) -> None:
    load, copy, count = by_step(data).values()
    assert load["values"] >= BULK
    assert copy["values"] >= BULK
    assert load["stored"] >= BULK
    assert copy["stored"] < BULK / 10
    assert 0 < count["stored"] < 10_000


def test_parts_make_up_the_whole(data: Size) -> None:
    assert data["stored"] == sum(step["stored"] for step in data["steps"])
    assert data["others"] == 0
    assert data["stored"] < data["total"]
    assert json.loads(json.dumps(data)) == data


def test_other_runs_are_told_apart(found: tuple[Size, Size, Size]) -> None:
    before, other, again = found
    assert other["others"] == before["stored"]
    assert (again["stored"], again["others"]) == (before["stored"], other["stored"])
    assert again["total"] == other["total"]


def test_table_has_a_line_for_each_step(data: Size) -> None:
    lines = plain(size_page(data)).splitlines()
    assert lines[0].startswith(f"run {data['run']}: ")
    assert [line.split()[0] for line in lines[-3:]] == ["load", "copy", "count"]


def a_size(*steps: tuple[str, int, int]) -> Size:
    found: Any = [
        {"step": name, "names": 1, "values": values, "stored": stored}
        for name, values, stored in steps
    ]
    return Size(run="r", store="s", steps=found, stored=1, others=0, total=1)


@pytest.mark.parametrize(
    ("values", "stored", "kinds"),
    [(0, 0, []), (100, 100, ["good"]), (100, 105, ["good"]), (900, 0, ["kept"]),
     (900, 100, ["good", "kept"])],
)  # fmt: skip
def test_picture_shows_what_is_stored_and_what_is_shared(
    values: int, stored: int, kinds: list[str]
) -> None:
    svg = size_picture(a_size(("load", values, stored))).svg()
    lane = svg.partition(">load</text>")[2].partition("<text")[0]
    assert [kind for kind in ("good", "kept") if f'class="{kind}"' in lane] == kinds


def test_run_without_steps_is_shown() -> None:
    assert "<svg" in size_picture(a_size()).svg()
    assert "step" in plain(size_page(a_size()))
