"""The command line: the same verbs as in a notebook, and ``nbckpt run``.

Answers go to standard output, everything else to standard error. Exit codes: 0 completed,
1 a step failed, 2 wrong usage, 3 stopped for a human, 4 another holder has the run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbckpt.errors import CheckFailed, NbckptError, RunHeld, SaveFailed, StopForHuman
from nbckpt.history import Reader
from nbckpt.trust import load_secret
from nbckpt.trusting import adopt, trusted_text
from nbckpt.verbs import overview, status
from nbckpt.verbs.drawing import answer
from nbckpt.verbs.late import late
from nbckpt.verbs.opening import changing, choose_run, looking
from nbckpt.verbs.pages import printable, size
from nbckpt.verbs.targets import folder_of, notebook_named, run_named, store_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbckpt import checkpoints, headless
    from nbckpt.verbs import marks, planning, steps, verification
else:
    checkpoints, headless = late("nbckpt.checkpoints"), late("nbckpt.headless")
    marks, planning = late("nbckpt.verbs.marks"), late("nbckpt.verbs.planning")
    steps, verification = late("nbckpt.verbs.steps"), late("nbckpt.verbs.verification")


FAMILIES = {
    "run": ("run", "rerun"),
    "look": ("status", "plan", "show", "explain", "runs"),
    "settle": ("accept",),
    "store": ("verify", "gc", "trust"),
}
EXITS = ((RunHeld, 4), (StopForHuman, 3), ((CheckFailed, SaveFailed), 1))


class Families(click.Group):
    """A group of commands whose help shows them in families."""

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands, family by family."""
        for family, names in FAMILIES.items():
            rows = [(name, self._summary(ctx, name)) for name in names]
            with formatter.section(family):
                formatter.write_dl(rows)

    def _summary(self, ctx: click.Context, name: str) -> str:
        """Return the first line of a command's help."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit=72) if command else ""


@click.group(cls=Families, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="nbckpt", prog_name="nbckpt")
def commands() -> None:
    """Run notebooks that survive any interruption, and look at their runs.

    \b
    nbckpt run etl.ipynb       execute it; resumes by itself after a crash
    nbckpt status              where it is, or what it died in
    nbckpt plan etl.ipynb      what a run would do, without doing it

    The store is .nbckpt beside the notebook that is named, else in the current folder;
    --store or NBCKPT_STORE name another one. Exit codes: 0 completed, 1 a step failed, 2
    wrong usage, 3 stopped for a human, 4 not started since another holder has the run.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without it, those of the process.
    """
    try:
        code = commands.main(arguments, prog_name="nbckpt", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except click.Abort:
        code = 1
    except (NbckptError, OSError) as error:
        click.echo(f"nbckpt: {printable(str(error))}", err=True)
        code = exit_code(error)
    sys.exit(code or 0)


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    int
        2 for what is wrong before anything runs.
    """
    return next((code for kinds, code in EXITS if isinstance(error, kinds)), 2)


def _store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--store``."""
    text = "Folder of the store (default: .nbckpt beside the notebook)."
    return click.option("--store", metavar="DIR", default="", help=text)(command)


def _json_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--json``."""
    text = "Print JSON, of a shape that stays the same."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def _run_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option ``--run``."""
    text = "The run, or its notebook (default: the run begun last)."
    return click.option("--run", "target", metavar="RUN", default="", help=text)(
        command
    )


@commands.command("status")
@click.argument("target", metavar="[RUN]", default="")
@_json_option
@_store_option
def status_command(target: str, store: str, *, as_json: bool) -> None:
    """Say where a run stands, and who holds it.

    RUN is a run id or a notebook; without it, the run begun last. Nothing is written
    and nothing slows the run down.

    \b
    nbckpt status
    nbckpt status etl-1 --json
    """
    with looking(folder_of(store, target)) as reader:
        data = status.status(reader, run_named(reader, target))
        answer(data, overview.status_page, as_json=as_json)


@commands.command("plan")
@click.argument("target", metavar="[NOTEBOOK|RUN]", default="")
@_json_option
@_store_option
def plan_command(target: str, store: str, *, as_json: bool) -> None:
    """Say what a run would do to each step, and why.

    Each step would run, be skipped, or can't be told without a kernel (unknown).
    Nothing runs and nothing is written.

    \b
    nbckpt plan etl.ipynb
    """
    notebook = notebook_named(target)
    with looking(folder_of(store, target)) as reader:
        if notebook is not None:
            data = planning.plan_notebook(reader, notebook.absolute())
        else:
            data = planning.plan_run(reader, choose_run(reader, target))
        answer(data, planning.plan_page, as_json=as_json)


@commands.command("show")
@click.argument("step")
@_run_option
@_json_option
@_store_option
def show_command(step: str, target: str, store: str, *, as_json: bool) -> None:
    """Show what is recorded of a step.

    Its evidence, inputs, names, sizes, versions and every attempt.

    \b
    nbckpt show clean
    nbckpt show clean --run etl-1 --json
    """
    with looking(folder_of(store, target)) as reader:
        data = steps.show(reader, run_named(reader, target), step)
        answer(data, steps.show_page, as_json=as_json)


@commands.command("explain")
@click.argument("step")
@_run_option
@_json_option
@_store_option
def explain_command(step: str, target: str, store: str, *, as_json: bool) -> None:
    """Say why a step ran last, and what would happen to it now.

    Names the input, file, module or version that differs.

    \b
    nbckpt explain fit
    """
    with looking(folder_of(store, target)) as reader:
        data = steps.explain(reader, run_named(reader, target), step)
        answer(data, steps.explain_page, as_json=as_json)


@commands.command("runs")
@_json_option
@_store_option
def runs_command(store: str, *, as_json: bool) -> None:
    """List all runs of a store.

    \b
    nbckpt runs --store work/.nbckpt
    """
    with looking(store_folder(store)) as reader:
        answer(status.runs(reader), overview.runs_page, as_json=as_json)


@commands.command("verify")
@click.argument("target", metavar="[RUN]", default="")
@_json_option
@_store_option
def verify_command(target: str, store: str, *, as_json: bool) -> int:
    """Look at all evidence of a run again; nothing runs.

    Every file is compared with its digest and every stored byte is read back. Checks
    need the notebook's names: %nbckpt verify evaluates them in its kernel. Exit code 1
    if anything is not as recorded.

    \b
    nbckpt verify
    """
    with looking(folder_of(store, target)) as reader:
        data = verification.verify(reader, run_named(reader, target))
        answer(data, verification.verify_page, as_json=as_json)
    return 0 if data["ok"] else 1


@commands.command("rerun")
@click.argument("step")
@_run_option
@_store_option
def rerun_command(step: str, target: str, store: str) -> None:
    """Have a step's body run again at the next run.

    For a world that changed unseen. The record stays until it is replaced, and later
    steps run again only if they get other values.

    \b
    nbckpt rerun fetch
    nbckpt run etl.ipynb
    """
    with changing(folder_of(store, target)) as opened:
        click.echo(marks.rerun(opened, run_named(Reader(opened), target), step))


@commands.command("accept")
@click.argument("step")
@click.option("--notebook", metavar="NOTEBOOK", help="Where the step's code is now.")
@_run_option
@_store_option
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


@commands.command("gc")
@_store_option
def gc_command(store: str) -> None:
    """Remove what no record needs from a store.

    Nothing that a record names is ever removed, nor what a living run is writing.

    \b
    nbckpt gc
    """
    with changing(store_folder(store)) as opened:
        swept = checkpoints.collect(opened)
        click.echo(f"removed {swept.files} files, {size(swept.bytes)}")


@commands.command("trust")
@click.argument("folder", metavar="[STORE]", default="")
@_store_option
def trust_command(folder: str, store: str) -> None:
    """Make another user's store your own.

    Until then it is read-only and nothing of it is loaded. Afterwards its values are
    unpickled when its notebook runs, which can execute anything: trust only what you
    would run.

    \b
    nbckpt trust colleague/.nbckpt
    """
    path = store_folder(folder or store)
    click.echo(trusted_text(adopt(path, load_secret()), path))


@commands.command("run")
@click.argument("notebook")
@click.option(
    "-p",
    "--parameter",
    "parameters",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set a name after the cell tagged parameters.",
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
@click.option(
    "--output",
    default="",
    metavar="OUT",
    help="The executed notebook (default: NAME.out.ipynb beside it).",
)
@_store_option
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
    return headless.run(order, lambda line: click.echo(printable(line)))
