"""Commands that look: nothing runs and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nbckpt.cli.options import json_option, run_option, store_option
from nbckpt.verbs.finding.opening import choose_run, looking
from nbckpt.verbs.finding.targets import folder_of, notebook_named, run_named
from nbckpt.verbs.forms.drawing import answer
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.look import overview
from nbckpt.verbs.standing import status

if TYPE_CHECKING:
    from nbckpt.verbs.look import explaining, steps
    from nbckpt.verbs.prepare import planning
else:
    planning, steps = (
        late("nbckpt.verbs.prepare.planning"),
        late("nbckpt.verbs.look.steps"),
    )
    explaining = late("nbckpt.verbs.look.explaining")


@click.command("status")
@click.argument("target", metavar="[RUN]", default="")
@json_option
@store_option
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


@click.command("plan")
@click.argument("target", metavar="[NOTEBOOK|RUN]", default="")
@json_option
@store_option
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


@click.command("show")
@click.argument("step")
@run_option
@json_option
@store_option
def show_command(step: str, target: str, store: str, *, as_json: bool) -> None:
    """Show what is recorded of a step.

    Its values and what they rest on, evidence, loops, effects, decisions and history.

    \b
    nbckpt show clean
    nbckpt show clean --run etl-1 --json
    """
    with looking(folder_of(store, target)) as reader:
        data = steps.show(reader, run_named(reader, target), step)
        answer(data, steps.show_page, as_json=as_json)


@click.command("explain")
@click.argument("step")
@run_option
@json_option
@store_option
def explain_command(step: str, target: str, store: str, *, as_json: bool) -> None:
    """Say why a step ran last, and what would happen to it now.

    Names the input, file, module or version that differs.

    \b
    nbckpt explain fit
    """
    with looking(folder_of(store, target)) as reader:
        data = explaining.explain(reader, run_named(reader, target), step)
        answer(data, explaining.explain_page, as_json=as_json)


COMMANDS = (status_command, plan_command, show_command, explain_command)
