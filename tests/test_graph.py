"""A graph says which values and files go from which step to which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.records import PlannedStep, PlanRecord, RunRecord
from nbckpt.runs.history import Reader
from nbckpt.runs.journal import Journal
from nbckpt.runs.opening import open_run
from nbckpt.store import Store
from nbckpt.trust import load_secret
from nbckpt.verbs.forms.pages import plain
from nbckpt.verbs.look.graph import Graph, graph, graph_page, mermaid, network
from tests.notebook import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CELLS = {
    "load --reads in.txt": "rows = Path('in.txt').read_text().split()\nunused = 1",
    "clean --writes out.txt": (
        "clean = rows[:limit]\n_ = Path('out.txt').write_text(str(clean))"
    ),
    "count": "count = len(rows), len(clean)",
    "report --writes out.txt": (
        "text = Path('out.txt').read_text()\n"
        "_ = Path('out.txt').write_text(text + str(count))"
    ),
    "tell": "told = Path('out.txt').read_text()",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """Return the graph of a notebook that ran."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "in.txt").write_text("a b c")
    with opened(folder) as notebook:
        notebook.run("from pathlib import Path\nlimit = 2")
        for line, body in CELLS.items():
            notebook.run(f"%%step {line}\n{body}")
        reader = Reader(notebook.session.store)
        yield graph(reader, reader.run(notebook.session.run_id))


def test_graph_of_a_notebook_names_values_and_files_with_maker_and_readers(
    data: Graph,
) -> None:
    assert [v for v in data["values"] if v["names"] != ["_"]] == [
        {"names": ["rows"], "maker": "load", "readers": ["clean", "count"]},
        {"names": ["clean"], "maker": "clean", "readers": ["count"]},
        {"names": ["count"], "maker": "count", "readers": ["report"]},
    ]
    found = [
        {**file, "path": file["path"].rpartition("/")[2]} for file in data["files"]
    ]
    assert found == [
        {"path": "in.txt", "writer": "", "readers": ["load"]},
        {"path": "out.txt", "writer": "clean", "readers": ["report"]},
        {"path": "out.txt", "writer": "report", "readers": ["tell"]},
    ]
    plain_names = {step["name"]: step["plain"] for step in data["steps"]}
    assert plain_names["clean"] == ["Path", "limit"]
    assert plain_names["count"] == []
    assert json.loads(json.dumps(data)) == data


def test_table_says_what_each_step_takes_and_gives(data: Graph) -> None:
    lines = plain(graph_page(data)).splitlines()
    row = next(line.split("  ") for line in lines if line.startswith("count"))
    cells = [cell.strip() for cell in row if cell.strip()]
    assert cells == ["count", "completed", "rows (load), clean (clean)", "-", "count"]


def test_value_that_no_step_reads_is_left_out(data: Graph) -> None:
    assert "unused" not in json.dumps(data)


def a_graph(**parts: Any) -> Graph:
    steps = [{"name": n, "state": "completed", "plain": []} for n in ("load", "fit")]
    return {"run": "r", "steps": steps, "values": [], "files": []} | parts  # type: ignore[return-value]


def test_network_leads_from_step_to_value_to_step_and_through_files() -> None:
    found = network(
        a_graph(
            values=[{"names": ["df"], "maker": "load", "readers": ["fit"]}],
            files=[
                {"path": "in.csv", "writer": "", "readers": ["load"]},
                {"path": "m.bin", "writer": "fit", "readers": []},
            ],
        )
    )
    assert [node.id for node in found.nodes] == ["f0", "s load", "v0", "s fit", "f1"]
    assert set(found.edges) == {
        ("f0", "s load"),
        ("s load", "v0"),
        ("v0", "s fit"),
        ("s fit", "f1"),
    }


def test_state_of_a_step_is_a_word_as_well_as_a_colour() -> None:
    steps = [{"name": "fit", "state": "failed", "plain": []}]
    (node,) = network(a_graph(steps=steps)).nodes
    assert (node.text, node.kind) == ("fit: failed", "bad")


def test_state_that_nobody_knows_is_drawn_as_pending() -> None:
    steps = [{"name": "fit", "state": "</svg>", "plain": []}]
    (node,) = network(a_graph(steps=steps)).nodes
    assert node.kind == "pending"


def test_many_names_are_one_box_with_all_of_them_in_its_title() -> None:
    names = [f"x{n}" for n in range(9)]
    values = [{"names": names, "maker": "load", "readers": ["fit"]}]
    box = next(n for n in network(a_graph(values=values)).nodes if n.kind == "thing")
    assert box.text == "x0, x1, x2 and 6 more"
    assert box.told == f"values: {', '.join(names)}"


def test_long_path_is_shown_by_its_end() -> None:
    files = [{"path": "/data/2026/11/in.csv", "writer": "", "readers": ["load"]}]
    box = network(a_graph(files=files)).nodes[0]
    assert (box.text, box.told) == ("…/11/in.csv", "/data/2026/11/in.csv")


def test_steps_that_never_ran_show_the_files_of_their_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", load_secret())
    run = open_run(store, "etl", RunRecord("", ""))
    planned = PlannedStep(1, "fit", "code", reads=("*.csv",), writes=("model.bin",))
    Journal(store, run.run_id, 1, lambda _: None).write_plan(PlanRecord((planned,)))
    found = graph(Reader(store), run)
    store.close()
    assert found["steps"] == [{"name": "fit", "state": "pending", "plain": []}]
    assert found["files"] == [
        {"path": "*.csv", "writer": "", "readers": ["fit"]},
        {"path": "model.bin", "writer": "fit", "readers": []},
    ]


def test_graph_without_steps_says_so() -> None:
    assert plain(graph_page(a_graph(steps=[]))) == "no steps yet"


def test_mermaid_is_the_same_network() -> None:
    values = [{"names": ["df"], "maker": "load", "readers": ["fit"]}]
    lines = mermaid(a_graph(values=values)).splitlines()
    assert lines[:4] == ["flowchart TD", '  n0["load"]', '  n1(["df"])', '  n2["fit"]']
    assert lines[4:6] == ["  n0 --> n1", "  n1 --> n2"]
