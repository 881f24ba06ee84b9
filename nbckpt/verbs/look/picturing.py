"""``%nbckpt timeline|graph|size|runs``: answers with a picture, in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbckpt.verbs.finding.calling import calling
from nbckpt.verbs.forms import pages
from nbckpt.verbs.forms.documents import Section
from nbckpt.verbs.forms.showing import Shown
from nbckpt.verbs.look import graph as graphs
from nbckpt.verbs.look import overview, sizes
from nbckpt.verbs.look import timeline as timelines
from nbckpt.verbs.standing import status

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.runs.history import Reader
    from nbckpt.session import Session


def timeline(session: Session, words: list[str]) -> str | Shown:
    """Show who ran and who was skipped, over all attempts."""
    with calling(session, "timeline", words, "run") as call:
        data = timelines.timeline(call.reader, call.run())
        return _said(data, shown_timeline(data), as_json=call.told.json)


def graph(session: Session, words: list[str]) -> str | Shown:
    """Show the steps, and the values and files between them."""
    with calling(session, "graph", words, "run", "--mermaid") as call:
        data = graphs.graph(call.reader, call.run())
        if call.told.mermaid:
            return graphs.mermaid(data)
        return _said(data, shown_graph(data), as_json=call.told.json)


def size(session: Session, words: list[str]) -> str | Shown:
    """Show what a run keeps in the store, by step."""
    with calling(session, "size", words, "run") as call:
        data = sizes.size_of(call.reader, call.run())
        return _said(data, shown_size(data), as_json=call.told.json)


def runs(session: Session, words: list[str]) -> str | Shown:
    """Show the runs of the store, and how long each took."""
    with calling(session, "runs", words, "") as call:
        data = status.runs(call.reader)
        return _said(data, shown_runs(data), as_json=call.told.json)


def illustrations(reader: Reader, run: RunRecord) -> list[Section]:
    """Return what an audit shows besides: the graph of a run, and what it keeps.

    Parameters
    ----------
    reader : Reader
        Its store.
    run : RunRecord
        The run.

    Returns
    -------
    list of Section
        Each with its table.
    """
    found = {
        "What goes between the steps": shown_graph(graphs.graph(reader, run)),
        "What the store keeps": shown_size(sizes.size_of(reader, run)),
    }
    return [
        Section(title, shown.page, shown.picture.svg())
        for title, shown in found.items()
    ]


def _said(data: Any, shown: Shown, *, as_json: bool) -> str | Shown:
    """Return an answer as the user asked for it."""
    return pages.as_json(data) if as_json else shown


def shown_timeline(data: timelines.Timeline) -> Shown:
    """Return a timeline with its picture."""
    return Shown(timelines.timeline_picture(data), timelines.timeline_page(data))


def shown_graph(data: graphs.Graph) -> Shown:
    """Return a graph with its picture."""
    page, text = graphs.graph_page(data), graphs.mermaid(data)
    return Shown(graphs.graph_picture(data), page, text)


def shown_size(data: sizes.Size) -> Shown:
    """Return the sizes of a run with their picture."""
    return Shown(sizes.size_picture(data), sizes.size_page(data))


def shown_runs(data: list[status.RunLine]) -> Shown:
    """Return the runs of a store with their picture."""
    return Shown(overview.runs_picture(data), overview.runs_page(data))
