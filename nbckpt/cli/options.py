"""Options that several commands share: decorators, as click makes them."""

from __future__ import annotations

import click

store_option = click.option(
    "--store",
    metavar="DIR",
    default="",
    help="Folder of the store (default: .nbckpt beside the notebook).",
)
json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON, of a shape that stays the same.",
)
output_option = click.option(
    "--output",
    metavar="FILE",
    default="",
    help="Write the picture there: .svg, .html with the tables, .mmd of a graph.",
)
run_option = click.option(
    "--run",
    "target",
    metavar="RUN",
    default="",
    help="The run, or its notebook (default: the run begun last).",
)
