"""Commands before a notebook is run in earnest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nbckpt.cli.options import json_option
from nbckpt.verbs.drawing import answer
from nbckpt.verbs.late import late

if TYPE_CHECKING:
    from nbckpt.verbs import linting
else:
    linting = late("nbckpt.verbs.linting")


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


COMMANDS = (lint_command,)
