"""The command line: the same verbs as in a notebook, and ``nbckpt run``.

Answers go to standard output, everything else to standard error. Exit codes: 0 completed,
1 a step failed, 2 wrong usage, 3 stopped for a human, 4 another holder has the run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from nbckpt.cli import (
    archiving,
    completing,
    keeping,
    looking,
    picturing,
    preparing,
    running,
    serving,
    settling,
)
from nbckpt.errors import (
    AlreadySettled,
    CheckFailed,
    NbckptError,
    RunHeld,
    SaveFailed,
    StopForHuman,
)
from nbckpt.verbs.forms.pages import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILIES = {
    "prepare": preparing.COMMANDS,
    "run": (*running.COMMANDS, *archiving.RUN),
    "look": (*looking.COMMANDS, *picturing.COMMANDS, *archiving.LOOK),
    "settle": settling.COMMANDS,
    "store": (*keeping.COMMANDS, *archiving.STORE),
    "serve": serving.COMMANDS,
}
EXITS = (
    (RunHeld, 4),
    (StopForHuman, 3),
    ((AlreadySettled, CheckFailed, SaveFailed), 1),
)


class Families(click.Group):
    """A group of commands whose help shows them in families."""

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands, family by family."""
        del ctx
        for family, members in FAMILIES.items():
            rows = [(str(c.name), c.get_short_help_str(limit=100)) for c in members]
            with formatter.section(family):
                formatter.write_dl(rows)


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

    To complete verbs, run ids, steps, questions and effects, once, in bash, zsh or fish:

    \b
    _NBCKPT_COMPLETE=bash_source nbckpt >> ~/.bashrc
    _NBCKPT_COMPLETE=zsh_source nbckpt >> ~/.zshrc       # after compinit
    _NBCKPT_COMPLETE=fish_source nbckpt > ~/.config/fish/completions/nbckpt.fish
    """


for _family in FAMILIES.values():
    for _command in _family:
        completing.complete(_command)
        commands.add_command(_command)


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
        click.echo(f"nbckpt: {printable(_told(error))}", err=True)
        code = exit_code(error)
    sys.exit(code or 0)


def _told(error: NbckptError | OSError) -> str:
    """Return an error in one line; the system's own says neither what to do nor a path."""
    if isinstance(error, NbckptError) or not error.filename:
        return str(error)
    return f"{error.filename}: {error.strerror}. Check the path, its owner and its disk"


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
