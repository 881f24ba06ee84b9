"""``nbckpt graph``: the steps of a run, and the values and files between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from nbckpt.pictures import Network, Node, Picture, flowchart, network_picture
from nbckpt.verbs.forms.pages import Page, Table, listed
from nbckpt.verbs.standing.status import status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.records import PlannedStep, RunRecord, StepRecord
    from nbckpt.runs.history import Reader

KINDS = {
    "completed": "good", "running": "now", "failed": "bad", "interrupted": "lost",
    "waiting": "warn", "answered": "warn", "stale": "warn", "cancelled": "pending",
    "pending": "pending",
}  # fmt: skip
FEW = 3
"""Names in one box."""


class GraphStep(TypedDict):
    """A step."""

    name: str
    state: str
    """As `StepStatus.state`."""
    plain: list[str]
    """Names that it reads and no step before it made: a plain cell did."""


class GraphValues(TypedDict):
    """Values that one step made and others read."""

    names: list[str]
    maker: str
    readers: list[str]


class GraphFile(TypedDict):
    """A file, as one step wrote it and others read it."""

    path: str
    writer: str
    """Empty: no step of the run wrote it before them."""
    readers: list[str]


class Graph(TypedDict):
    """What ``nbckpt graph --json`` prints."""

    run: str
    steps: list[GraphStep]
    values: list[GraphValues]
    files: list[GraphFile]


@dataclass(frozen=True, slots=True)
class _Step:
    """What a step takes and gives, as far as it is known."""

    name: str
    reads: tuple[str, ...] = ()
    """Names."""
    makes: frozenset[str] = frozenset()
    opens: tuple[str, ...] = ()
    """Files that it reads."""
    writes: tuple[str, ...] = ()


def graph(reader: Reader, run: RunRecord) -> Graph:
    """Return the steps of a run, and the values and files between them.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    Graph
        JSON values.

    Notes
    -----
    Told from the records: of a step that has none yet, only the files in its line are
    known.
    """
    standing, records = status(reader, run)["steps"], reader.steps(run.run_id)
    planned = {step.name: step for step in reader.plan(run.run_id).steps}
    steps = [
        _step(step["name"], records.get(step["name"]), planned.get(step["name"]))
        for step in standing
    ]
    values, plain = _values(steps)
    return Graph(
        run=run.run_id,
        steps=[
            GraphStep(name=s["name"], state=s["state"], plain=plain[s["name"]])
            for s in standing
        ],
        values=values,
        files=_files(steps),
    )


def _step(name: str, record: StepRecord | None, planned: PlannedStep | None) -> _Step:
    """Return what a step takes and gives."""
    if record is None:
        opens, writes = (planned.reads, planned.writes) if planned else ((), ())
        return _Step(name, opens=opens, writes=writes)
    return _Step(
        name,
        tuple(sorted(record.fingerprint.inputs)),
        frozenset(record.contents.bound),
        tuple(sorted(record.fingerprint.files)),
        tuple(sorted(record.evidence.files)),
    )


def _values(
    steps: Iterable[_Step],
) -> tuple[list[GraphValues], dict[str, list[str]]]:
    """Return the values between steps, and the names that each has from plain cells."""
    makers: dict[str, str] = {}
    readers: dict[tuple[str, str], list[str]] = {}
    plain: dict[str, list[str]] = {}
    for step in steps:
        plain[step.name] = [name for name in step.reads if name not in makers]
        for name in step.reads:
            if name in makers:
                readers.setdefault((makers[name], name), []).append(step.name)
        makers.update(dict.fromkeys(step.makes, step.name))
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (maker, name), found in readers.items():
        together.setdefault((maker, tuple(found)), []).append(name)
    values = [
        GraphValues(names=sorted(names), maker=maker, readers=list(found))
        for (maker, found), names in together.items()
    ]
    return values, plain


def _files(steps: Iterable[_Step]) -> list[GraphFile]:
    """Return the files that steps read and write, each as its last writer left it."""
    last: dict[str, GraphFile] = {}
    found: list[GraphFile] = []
    for step in steps:
        for path in step.opens:
            if path not in last:
                last[path] = GraphFile(path=path, writer="", readers=[])
                found.append(last[path])
            last[path]["readers"].append(step.name)
        for path in step.writes:
            last[path] = GraphFile(path=path, writer=step.name, readers=[])
            found.append(last[path])
    return found


def graph_page(data: Graph) -> Page:
    """Return a graph for people.

    Parameters
    ----------
    data : Graph
        From `graph`.

    Returns
    -------
    Page
        What each step takes and gives.
    """
    rows = [
        (
            step["name"],
            step["state"],
            _taken(data, step["name"]),
            listed(step["plain"]),
            _given(data, step["name"]),
        )
        for step in data["steps"]
    ]
    head = ("step", "state", "takes", "from plain cells", "gives")
    return [f"run {data['run']}", "", Table(head, rows)] if rows else ["no steps yet"]


def _taken(data: Graph, step: str) -> str:
    """Return what a step takes, and from whom."""
    values = [
        f"{listed(v['names'])} ({v['maker']})"
        for v in data["values"]
        if step in v["readers"]
    ]
    files = [
        f"{f['path']} ({f['writer']})" if f["writer"] else f["path"]
        for f in data["files"]
        if step in f["readers"]
    ]
    return listed([*values, *files])


def _given(data: Graph, step: str) -> str:
    """Return what a step gives to later ones, and the files that it writes."""
    names = [name for v in data["values"] if v["maker"] == step for name in v["names"]]
    files = [f["path"] for f in data["files"] if f["writer"] == step]
    return listed([*sorted(set(names)), *files])


def network(data: Graph) -> Network:
    """Return a graph as what can be drawn.

    Parameters
    ----------
    data : Graph
        From `graph`.

    Returns
    -------
    Network
        A box for each step, for each file, and for what one step gives to the same
        others.
    """
    nodes = {s["name"]: _step_node(s) for s in data["steps"]}
    before: dict[str, list[Node]] = {name: [] for name in nodes}
    after: dict[str, list[Node]] = {name: [] for name in nodes}
    edges: list[tuple[str, str]] = []
    things = [(v["maker"], v["readers"], _value_node(n, v)) for n, v in _of(data)]
    things += [
        (
            f["writer"],
            f["readers"],
            Node(f"f{n}", _end_of(f["path"]), "file", f["path"]),
        )
        for n, f in enumerate(data["files"])
    ]
    for maker, readers, node in things:
        (after[maker] if maker else before[readers[0]]).append(node)
        edges += [(f"s {maker}", node.id)] if maker else []
        edges += [(node.id, f"s {reader}") for reader in readers]
    ordered = [
        node for name in nodes for node in (*before[name], nodes[name], *after[name])
    ]
    told = f"{len(nodes)} steps, {len(things)} values and files between them"
    title = f"Steps of run {data['run']}, and what goes between them"
    return Network(title, told, tuple(ordered), tuple(edges))


def _of(data: Graph) -> Iterable[tuple[int, GraphValues]]:
    """Return the values with their numbers."""
    return enumerate(data["values"])


def _step_node(step: GraphStep) -> Node:
    """Return the box of a step."""
    name, state = step["name"], step["state"]
    text = name if state == "completed" else f"{name}: {state}"
    return Node(f"s {name}", text, KINDS.get(state, "pending"), f"step {name}: {state}")


def _value_node(order: int, values: GraphValues) -> Node:
    """Return the box of some values."""
    told = ", ".join(values["names"])
    return Node(f"v{order}", listed(values["names"], FEW), "thing", f"values: {told}")


def _end_of(path: str) -> str:
    """Return the end of a path, by which people know it."""
    parts = path.split("/")
    return path if len(parts) <= 2 else f"…/{'/'.join(parts[-2:])}"  # noqa: PLR2004


def graph_picture(data: Graph) -> Picture:
    """Return a graph as a picture.

    Parameters
    ----------
    data : Graph
        From `graph`.

    Returns
    -------
    Picture
        From top to bottom.
    """
    return network_picture(network(data))


def mermaid(data: Graph) -> str:
    """Return a graph as Mermaid text.

    Parameters
    ----------
    data : Graph
        From `graph`.

    Returns
    -------
    str
        For a Markdown file, or JupyterLab.
    """
    return flowchart(network(data))
