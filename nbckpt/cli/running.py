"""Commands that run a notebook, or say how it is to run next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbckpt.cli.options import run_option, store_option
from nbckpt.runs.history import Reader
from nbckpt.verbs.finding.opening import changing
from nbckpt.verbs.finding.targets import folder_of, run_named, store_folder
from nbckpt.verbs.forms.drawing import is_drawn
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.forms.pages import printable

if TYPE_CHECKING:
    from nbckpt import headless
    from nbckpt.cli import terminal
    from nbckpt.verbs.settle import branches, marks
else:
    headless, marks = late("nbckpt.headless"), late("nbckpt.verbs.settle.marks")
    branches, terminal = (
        late("nbckpt.verbs.settle.branches"),
        late("nbckpt.cli.terminal"),
    )


@click.command("run")
@click.argument("notebook")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a name after the cell tagged parameters; kept for the run.",
)
@click.option("--run-id", default="", metavar="ID", help="Begin or resume this run.")
@click.option("--fresh", is_flag=True, help="Begin a new run in any case.")
@click.option(
    "--overlap",
    type=click.Choice(["skip", "replace", "concurrent"]),
    default="skip",
    help="If another process holds the run (default: skip).",
)
@click.option("--version", default="", metavar="TEXT", help="Workflow version.")
@click.option("--stop-on-redo", is_flag=True, help="Stop rather than redo a step.")
@click.option("--output", default="", metavar="OUT", help="Default: NAME.out.ipynb.")
@click.option(
    "--ping",
    default="",
    envvar="NBCKPT_PING",
    metavar="URL",
    help="Tell URL/start, URL and URL/fail how it goes; better as NBCKPT_PING.",
)
@store_option
def run_command(notebook: str, **options: Any) -> int:
    """Execute a notebook; resumes its run, and restarts a dead kernel.

    The notebook itself is not changed: the executed copy is saved after each cell. Steps
    that are done and verified are skipped. A step that kills the kernel twice stops
    the run. Ctrl-C interrupts the running cell and saves.

    \b
    nbckpt run etl.ipynb
    nbckpt run etl.ipynb -p DAY 2026-11-29 --run-id etl-2026-11-29
    """
    store = options.pop("store")
    order = headless.Order(
        Path(notebook).absolute(),
        store=store_folder(store) if store else None,
        parameters=dict(options.pop("parameters")),
        **options,
    )
    return headless.run(order, **_listeners())


def _listeners() -> dict[str, Any]:
    """Return who is told how the run goes: a terminal, or whoever reads the lines."""
    if not is_drawn():
        return {"say": lambda line: click.echo(printable(line))}
    screen = terminal.Terminal()
    return {"say": screen.say, "watch": screen.watch}


@click.command("rerun")
@click.argument("step")
@click.option("--and-after", is_flag=True, help="All steps after it, too.")
@run_option
@store_option
def rerun_command(step: str, target: str, store: str, *, and_after: bool) -> None:
    """Have a step's body run again at the next run.

    For a world that changed unseen. The record stays until it is replaced, and later
    steps run again only if they get other values, or with --and-after.

    \b
    nbckpt rerun fetch
    nbckpt rerun fetch --and-after
    """
    with changing(folder_of(store, target)) as opened:
        run = run_named(Reader(opened), target)
        click.echo(marks.rerun(opened, run, step, and_after=and_after))


@click.command("fork")
@click.argument("target", metavar="RUN")
@click.option("--from", "step", required=True, metavar="STEP", help="Runs from here.")
@click.option("--run-id", default="", metavar="ID", help="Id of the new run.")
@click.option("--version", default="", metavar="TEXT", help="Its workflow version.")
@store_option
def fork_command(target: str, step: str, run_id: str, version: str, store: str) -> None:
    """Begin a new run with the records of the steps before STEP.

    The new run has new idempotency keys: effects of STEP and later steps happen once
    more. It becomes the notebook's current run; the old one stays as it is.

    \b
    nbckpt fork etl-1 --from fit --version 4
    """
    with changing(folder_of(store, target)) as opened:
        run = run_named(Reader(opened), target)
        click.echo(branches.fork(opened, run, step, run_id, version)[1])


@click.command("cancel")
@click.argument("target", metavar="RUN")
@store_option
def cancel_command(target: str, store: str) -> None:
    """Cancel a run; it is never resumed.

    A kernel that holds it can write nothing more, and says so at its next write. A run
    that is completed is refused: nbckpt finish archives it.

    \b
    nbckpt cancel etl-1
    """
    with changing(folder_of(store, target)) as opened:
        click.echo(branches.cancel(opened, run_named(Reader(opened), target)))


COMMANDS = (run_command, rerun_command, fork_command, cancel_command)
