"""Commands by which a person says what can't be known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbckpt.cli.options import run_option, store_option
from nbckpt.runs.history import Reader
from nbckpt.verbs.finding.opening import changing
from nbckpt.verbs.finding.targets import (
    folder_of,
    notebook_named,
    run_named,
    store_folder,
)
from nbckpt.verbs.forms.late import late

if TYPE_CHECKING:
    from nbckpt.verbs.settle import marks, resolving, words
else:
    marks, words = late("nbckpt.verbs.settle.marks"), late("nbckpt.verbs.settle.words")
    resolving = late("nbckpt.verbs.settle.resolving")


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


@click.command("answer")
@click.argument("target", metavar="RUN")
@click.argument("question")
@click.argument("value")
@click.option(
    "--step",
    default="",
    metavar="STEP",
    help="The step that asks; it need not have yet.",
)
@store_option
def answer_command(
    target: str, question: str, value: str, step: str, store: str
) -> None:
    """Answer a question that a run waits for, or with --step one that it will ask.

    The first answer stands: exit code 1 tells that somebody else was first. Afterwards
    run the notebook again; it goes on with the answer.

    \b
    nbckpt answer etl-1 delete yes
    nbckpt answer etl-1 delete yes --step clean
    """
    with changing(folder_of(store, target)) as opened:
        run = run_named(Reader(opened), target)
        if step:
            said = words.answer_in_advance(opened, run, step, question, value)
        else:
            said = words.answer(opened, run, question, value)
        click.echo(said)


@click.command("decide")
@click.argument("target", metavar="RUN")
@click.argument("name")
@click.argument("value")
@click.option("--reason", default="", metavar="TEXT", help="Why it is decided so.")
@store_option
def decide_command(target: str, name: str, value: str, reason: str, store: str) -> None:
    """Decide something for a run before its notebook does.

    VALUE is JSON if it is such (120, true, [1, 2]), else text. A decision stands for its
    whole run.

    \b
    nbckpt decide etl-1 cut-off 120 --reason "as in May"
    """
    with changing(folder_of(store, target)) as opened:
        run = run_named(Reader(opened), target)
        click.echo(words.decide(opened, run, name, value, reason))


@click.command("unknown")
@click.argument("target", metavar="RUN")
@click.argument("text", default="")
@click.option("--settle", type=int, default=0, metavar="N", help="Settle this point.")
@click.option("--why", default="", metavar="TEXT", help="What settles it.")
@store_option
def unknown_command(target: str, text: str, settle: int, why: str, store: str) -> None:
    """Record an open point of a run, or settle one.

    Open points are listed by status until they are settled; they stop nothing.

    \b
    nbckpt unknown etl-1 "is 9E the carrier that was EV?"
    nbckpt unknown etl-1 --settle 1 --why "yes, since 2013"
    """
    if bool(text) == bool(settle):
        raise click.UsageError("Give a text, or --settle N --why TEXT.")
    with changing(folder_of(store, target)) as opened:
        run = run_named(Reader(opened), target)
        if settle:
            click.echo(words.settle(opened, run, settle, why))
        else:
            click.echo(words.unknown(opened, run, text))


@click.command("note")
@click.argument("target", metavar="RUN")
@click.argument("text")
@store_option
def note_command(target: str, text: str, store: str) -> None:
    """Record a written note of a run.

    \b
    nbckpt note etl-1 "looked at 40 rows by hand; the outliers are real"
    """
    with changing(folder_of(store, target)) as opened:
        click.echo(words.note(opened, run_named(Reader(opened), target), text))


@click.command("resolve")
@click.argument("target", metavar="RUN")
@click.argument("effect")
@click.option(
    "--done",
    is_flag=False,
    flag_value="",
    metavar="VALUE",
    help="It happened; VALUE (JSON or text) is its outcome.",
)
@click.option("--not-done", is_flag=True, help="It did not happen: perform it.")
@click.option("--redo", is_flag=True, help="Perform it again although it may have.")
@click.option("--why", default="", metavar="TEXT", help="How you know; for the audit.")
@store_option
def resolve_command(
    target: str, effect: str, done: str | None, store: str, why: str, **flags: bool
) -> None:
    """Say whether an effect happened whose outcome is not known.

    RUN is a run id or a notebook, EFFECT the effect's name or key: the stop named both.
    Who says it, when and why is recorded; the next run follows it.

    \b
    nbckpt resolve orders-1 charge-4711 --done ch_8x1 --why "seen at the bank"
    nbckpt resolve orders-1 charge-4711 --not-done
    """
    said = resolving.read_said(done, why=why, **flags)
    with changing(folder_of(store, target)) as opened:
        run = run_named(Reader(opened), target)
        click.echo(resolving.resolve(opened, run, effect, said))


COMMANDS = (
    answer_command,
    resolve_command,
    accept_command,
    decide_command,
    unknown_command,
    note_command,
)
