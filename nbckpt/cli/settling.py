"""Commands by which a person says what can't be known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbckpt.cli.options import run_option, store_option
from nbckpt.history import Reader
from nbckpt.verbs.late import late
from nbckpt.verbs.opening import changing
from nbckpt.verbs.targets import notebook_named, run_named, store_folder

if TYPE_CHECKING:
    from nbckpt.verbs import marks
else:
    marks = late("nbckpt.verbs.marks")


@click.command("accept")
@click.argument("step")
@click.option("--notebook", metavar="NOTEBOOK", help="Where the step's code is now.")
@run_option
@store_option
def accept_command(step: str, notebook: str | None, target: str, store: str) -> None:
    """Record that a step's code change does not matter.

    The code in the notebook file counts as unchanged from now on, so that the step is
    skipped. A later change counts again.

    \b
    nbckpt accept clean
    """
    path = Path(notebook).absolute() if notebook else None
    with changing(store_folder(store, path or notebook_named(target))) as opened:
        run = run_named(Reader(opened), target or notebook or "")
        click.echo(marks.accept(opened, run, step, path))


COMMANDS = (accept_command,)
