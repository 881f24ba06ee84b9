"""``nbckpt size``: what a run keeps in its store, by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from nbckpt.pictures import Bar, Chart, Lane, Picture, chart_picture
from nbckpt.places import folder_bytes
from nbckpt.verbs.finding.opening import step_names
from nbckpt.verbs.forms.pages import Page, Table, size

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.runs.history import Reader
    from nbckpt.store import Store

LEGEND = (
    ("good", "stored for it"),
    ("kept", "shared with earlier steps, or stored smaller"),
)


class StepSize(TypedDict):
    """What a step keeps."""

    step: str
    names: int
    values: int
    """Bytes of all values that it left."""
    stored: int
    """Bytes of the packs that are kept for it first: what earlier steps need as well is
    counted with them."""


class Size(TypedDict):
    """What ``nbckpt size --json`` prints."""

    run: str
    store: str
    """The store's folder."""
    steps: list[StepSize]
    stored: int
    """Bytes of the run's packs."""
    others: int
    """Bytes of the packs of other runs alone."""
    total: int
    """Bytes of the whole store, its records and history too."""


def size_of(reader: Reader, run: RunRecord) -> Size:
    """Return what a run keeps in its store.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    Size
        JSON values; each pack is counted once.
    """
    names, records = step_names(reader, run.run_id), reader.steps(run.run_id)
    stored = dict.fromkeys(names, 0)
    others = 0
    for key, row in reader.store.scan("pack/"):
        owner = _owner(row["users"], run.run_id, names)
        count = _pack_bytes(reader.store, key.removeprefix("pack/"))
        if owner is None:
            others += count
        else:
            stored[owner] += count
    found = {name: records[name].contents for name in names if name in records}
    return Size(
        run=run.run_id,
        store=str(reader.store.folder),
        steps=[
            StepSize(
                step=name,
                names=len(found[name].bound) if name in found else 0,
                values=found[name].size if name in found else 0,
                stored=stored[name],
            )
            for name in names
        ],
        stored=sum(stored.values()),
        others=others,
        total=folder_bytes(reader.store.folder),
    )


def _owner(users: list[str], run_id: str, names: list[str]) -> str | None:
    """Return the first step of a run that uses a pack; None if none does."""
    parts = [user.split("/") for user in users]
    mine = {part[2] for part in parts if part[1:2] == [run_id] and len(part) > 2}  # noqa: PLR2004
    return next((name for name in names if name in mine), None)


def _pack_bytes(store: Store, name: str) -> int:
    """Return how large a pack is: a file, or a small one beside its record."""
    path = store.folder / "packs" / f"{name}.pack"
    if path.is_file():
        return path.stat().st_size
    return len(store.get_bytes(f"inline/{name}") or b"")


def size_page(data: Size) -> Page:
    """Return what a run keeps, for people.

    Parameters
    ----------
    data : Size
        From `size_of`.

    Returns
    -------
    Page
        One line for each step.
    """
    rows = [
        (step["step"], str(step["names"]), size(step["values"]), size(step["stored"]))
        for step in data["steps"]
    ]
    rest = data["total"] - data["stored"] - data["others"]
    kept = f"{size(data['stored'])} of {size(data['total'])} in {data['store']}"
    return [
        f"run {data['run']}: {kept}",
        f"other runs {size(data['others'])}, records and history {size(max(rest, 0))}",
        "",
        Table(("step", "names", "values", "stored"), rows),
    ]


def size_picture(data: Size) -> Picture:
    """Return what a run keeps as a picture.

    Parameters
    ----------
    data : Size
        From `size_of`.

    Returns
    -------
    Picture
        A lane for each step.
    """
    lanes = tuple(
        Lane(step["step"], _bars(step), size(step["stored"])) for step in data["steps"]
    )
    chart = Chart(
        title=f"Bytes that run {data['run']} keeps, by step",
        told=f"{size(data['stored'])} stored in {len(lanes)} steps",
        lanes=lanes,
        legend=LEGEND,
    )
    return chart_picture(chart)


def _bars(step: StepSize) -> tuple[Bar, ...]:
    """Return the bars of a step: what is stored for it, and what its values are beyond."""
    told = (
        f"{step['step']}: values {size(step['values'])}, stored {size(step['stored'])}"
    )
    stored, values = float(step["stored"]), float(step["values"])
    bars = [Bar(0.0, stored, "good", told)] if stored else []
    if values > stored * 1.1:
        bars.append(Bar(stored, values, "kept", told))
    return tuple(bars)
