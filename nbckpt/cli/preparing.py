"""Commands before a notebook is run in earnest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nbckpt.cli.options import json_option, store_option
from nbckpt.plan import read_duration
from nbckpt.verbs.forms.drawing import answer
from nbckpt.verbs.forms.late import late
from nbckpt.verbs.forms.pages import printable

if TYPE_CHECKING:
    from nbckpt import headless
    from nbckpt.verbs.prepare import annotation, doctor, linting
else:
    annotation = late("nbckpt.verbs.prepare.annotation")
    doctor = late("nbckpt.verbs.prepare.doctor")
    headless = late("nbckpt.headless")
    linting = late("nbckpt.verbs.prepare.linting")


@click.command("annotate")
@click.argument("notebook")
@click.option(
    "--by",
    type=click.Choice(["cell", "heading"]),
    default="cell",
    help="What becomes a step: each code cell (default), or all under one heading.",
)
@click.option("--write", is_flag=True, help="Change the notebook.")
@json_option
def annotate_command(notebook: str, by: Any, *, write: bool, as_json: bool) -> None:
    """Turn a plain notebook into steps: shown as a diff, written with --write.

    Names come from the headings; the files that the source writes out become --reads and
    --writes. Cells that only import, define, set or connect stay plain. What is
    annotated already stays as it is.

    \b
    nbckpt annotate etl.ipynb
    nbckpt annotate etl.ipynb --by heading --write
    """
    data = annotation.annotate(Path(notebook).absolute(), by, write=write)
    answer(data, annotation.annotation_page, as_json=as_json)


@click.command("lint")
@click.argument("notebook")
@json_option
def lint_command(notebook: str, *, as_json: bool) -> int:
    """Say what in a notebook would go wrong at a resume; nothing runs.

    Effects that nothing guards or declares, keys of a time or a random value, files that
    grow, names used above the cell that makes them, loops and retries that a resume
    knows nothing of. To silence one, on its line: # nbckpt: ok CODE reason. Exit code 1
    if there are findings.

    \b
    nbckpt lint etl.ipynb
    """
    data = linting.lint_notebook(Path(notebook).absolute())
    answer(data, linting.lint_page, as_json=as_json)
    return 0 if data["ok"] else 1


@click.command("rehearse")
@click.argument("notebook")
@click.option(
    "--timeout", default="", metavar="DURATION", help="Limit of one pass: 10m."
)
@click.option("--big", is_flag=True, help="Copy a folder of any size.")
@click.option("--keep", is_flag=True, help="Keep the scratch copy.")
@json_option
def rehearse_command(notebook: str, timeout: str, *, as_json: bool, **how: bool) -> int:
    """Crash-test a notebook in a scratch copy of its folder.

    Runs each step twice and reports every difference; then kills the kernel at every
    boundary of a step, resumes, and reports what was lost or doubled. What lies outside
    of the folder is real: the notebook finds NBCKPT_REHEARSAL=1 in its environment.
    Exit code 1 if there are findings.

    \b
    nbckpt rehearse etl.ipynb --timeout 10m
    """
    data = headless.rehearse(
        Path(notebook).absolute(),
        lambda line: click.echo(printable(line), err=True),
        timeout=read_duration(timeout) if timeout else 0.0,
        **how,
    )
    answer(data, headless.rehearsal_page, as_json=as_json)
    return 0 if data["ok"] else 1


@click.command("doctor")
@click.argument("target", metavar="[NOTEBOOK]", default="")
@json_option
@store_option
def doctor_command(target: str, store: str, *, as_json: bool) -> int:
    """Look whether everything that a run rests on is in order; nothing runs.

    Python and its packages, the kernel, the key that seals records, the store and its
    disk, the front ends that are installed; and the notebook, if one is named. Exit code
    1 if something is wrong.

    \b
    nbckpt doctor
    nbckpt doctor etl.ipynb --json
    """
    data = doctor.doctor(target, store)
    answer(data, doctor.doctor_page, as_json=as_json)
    return 0 if data["ok"] else 1


COMMANDS = (annotate_command, lint_command, rehearse_command, doctor_command)
