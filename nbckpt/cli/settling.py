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
@click.argument("name", metavar="STEP|RUN", default="")
@click.option("--notebook", metavar="NOTEBOOK", help="Where the step's code is now.")
@click.option("--worktree", is_flag=True, help="RUN goes on in this Git worktree.")
@run_option
@store_option
def accept_command(
    name: str, notebook: str | None, target: str, store: str, *, worktree: bool
) -> None:
    """Record that a step's code change does not matter.

    The code in the notebook file counts as unchanged from now on, so that the step is
    skipped. A later change counts again. With --worktree: the run goes on in the Git
    worktree and branch that the store (or NOTEBOOK) lies in.

    \b
    nbckpt accept clean
    nbckpt accept etl-1 --worktree
    """
    path = Path(notebook).absolute() if notebook else None
    if worktree:
        click.echo(_accept_worktree(target or name, path, store))
        return
    if not name:
        raise click.UsageError("Say which step: nbckpt accept STEP")
    with changing(store_folder(store, path or notebook_named(target))) as opened:
        run = run_named(Reader(opened), target or notebook or "")
        click.echo(marks.accept(opened, run, name, path))


def _accept_worktree(target: str, notebook: Path | None, store: str) -> str:
    """Accept the Git worktree of a notebook for its run."""
    with changing(store_folder(store, notebook or notebook_named(target))) as opened:
        run = run_named(Reader(opened), target or str(notebook or ""))
        return marks.accept_worktree(opened, run, (notebook or opened.folder).parent)


COMMANDS = (accept_command,)
