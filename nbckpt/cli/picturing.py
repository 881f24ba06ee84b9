"""Commands whose answer has a picture: tables on the terminal, the picture in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbckpt.cli.options import json_option, output_option, store_option
from nbckpt.verbs.finding.opening import looking
from nbckpt.verbs.finding.targets import folder_of, run_named, store_folder
from nbckpt.verbs.forms.drawing import answer
from nbckpt.verbs.forms.late import late

if TYPE_CHECKING:
    from nbckpt.verbs.forms.showing import Shown
    from nbckpt.verbs.look import graph, picturing, sizes, timeline
    from nbckpt.verbs.standing import status
else:
    graph, sizes = late("nbckpt.verbs.look.graph"), late("nbckpt.verbs.look.sizes")
    timeline, status = (
        late("nbckpt.verbs.look.timeline"),
        late("nbckpt.verbs.standing.status"),
    )
    picturing = late("nbckpt.verbs.look.picturing")


@click.command("timeline")
@click.argument("target", metavar="[RUN]", default="")
@output_option
@json_option
@store_option
def timeline_command(target: str, output: str, store: str, *, as_json: bool) -> None:
    """Show who ran and who was skipped, over all attempts of a run.

    Times between sessions, and other long pauses, are left out of the picture.

    \b
    nbckpt timeline etl-1
    nbckpt timeline etl-1 --output timeline.svg
    """
    with looking(folder_of(store, target)) as reader:
        data = timeline.timeline(reader, run_named(reader, target))
    _tell(data, picturing.shown_timeline(data), output, as_json=as_json)


@click.command("graph")
@click.argument("target", metavar="[RUN]", default="")
@click.option("--mermaid", is_flag=True, help="Print Mermaid text, for Markdown.")
@output_option
@json_option
@store_option
def graph_command(
    target: str, output: str, store: str, *, mermaid: bool, as_json: bool
) -> None:
    """Show the steps of a run, and the values and files between them.

    From the records: of a step that was never completed, only the files in its line are
    known.

    \b
    nbckpt graph etl-1 --output graph.html
    nbckpt graph etl-1 --mermaid > graph.mmd
    """
    with looking(folder_of(store, target)) as reader:
        data = graph.graph(reader, run_named(reader, target))
    if mermaid:
        click.echo(graph.mermaid(data), nl=False)
        return
    _tell(data, picturing.shown_graph(data), output, as_json=as_json)


@click.command("size")
@click.argument("target", metavar="[RUN]", default="")
@output_option
@json_option
@store_option
def size_command(target: str, output: str, store: str, *, as_json: bool) -> None:
    """Show what a run keeps in its store, by step.

    \b
    nbckpt size etl-1
    nbckpt size etl-1 --output size.svg
    """
    with looking(folder_of(store, target)) as reader:
        data = sizes.size_of(reader, run_named(reader, target))
    _tell(data, picturing.shown_size(data), output, as_json=as_json)


@click.command("runs")
@output_option
@json_option
@store_option
def runs_command(output: str, store: str, *, as_json: bool) -> None:
    """List all runs of a store, and how long each took.

    \b
    nbckpt runs --store work/.nbckpt
    nbckpt runs --output runs.svg
    """
    with looking(store_folder(store)) as reader:
        data = status.runs(reader)
    _tell(data, picturing.shown_runs(data), output, as_json=as_json)


def _tell(data: Any, shown: Shown, output: str, *, as_json: bool) -> None:
    """Write the picture if a file is named; else print the tables, or JSON."""
    if output:
        shown.write(Path(output))
    if as_json or not output:
        answer(data, lambda _: shown.page, as_json=as_json)


COMMANDS = (runs_command, timeline_command, graph_command, size_command)
