"""``papermill --engine nbckpt``: papermill as it is, with a kernel that knows its notebook.

papermill tells a kernel neither notebook nor output. Its jobs are told apart by where
they write, and so are their runs here: the same output resumes, another one begins anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine
from papermill.iorw import papermill_io
from papermill.log import logger

from nbckpt.credentials import masked
from nbckpt.keys import digest
from nbckpt.runs.identity import SESSION

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMED = {"start_timeout": "startup_timeout", "execution_timeout": "timeout"}
"""What papermill calls otherwise than nbclient."""
LETTERS = 500
"""Of a parameter's text that a kernel is told."""


class NbckptEngine(NBClientEngine):  # type: ignore[misc] # papermill has no types
    """papermill's own engine, whose kernel is told what it runs and for which output.

    Notes
    -----
    Parameters are inputs like every other value of a plain cell: with other ones the
    steps that read them run again, and a run that has effects stops for a person, since
    an effect happens once in a run. The run is named after the output, so that jobs with
    different outputs share no run, no lease and no idempotency key. ``NBCKPT_RUN_ID`` names
    it otherwise. A kernel that dies ends the job; the same command goes on with it.
    """

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, log_output: bool = False, **how: Any
    ) -> Any:
        """Execute a notebook that papermill has given its parameters.

        Parameters
        ----------
        nb_man : papermill.engines.NotebookExecutionManager
            Holds the notebook and saves it.
        kernel_name : str
            The kernel.
        log_output : bool, optional
            Whether outputs go to papermill's log.
        **how : object
            What papermill and its caller set besides.

        Returns
        -------
        nbformat.NotebookNode
            The notebook with its outputs.
        """
        said = nb_man.nb.metadata.papermill
        told = environment(said.get("input_path"), said.get("output_path"), _folder())
        told["NBCKPT_PARAMETERS"] = _given(said.get("parameters") or {})
        given = {NAMED.get(k, k): v for k, v in how.items() if k != "input_path"}
        client = PapermillNotebookClient(
            nb_man, kernel_name=kernel_name, log=logger, log_output=log_output, **given
        )
        return client.execute(env={**os.environ, **told})


def environment(source: str | None, output: str | None, folder: Path) -> dict[str, str]:
    """Return what a kernel is told of its notebook.

    Parameters
    ----------
    source, output : str or None
        As papermill was called with; may be addresses of other systems.
    folder : Path
        Where papermill was called.

    Returns
    -------
    dict
        Variables by name; nothing of a notebook that is no file here.
    """
    path = folder / source if source else folder
    is_here = path.is_file()
    beside = path.parent if is_here else folder
    told = {"NBCKPT_JOB": job_of(output, folder, beside) if output else ""}
    return (
        told | {"NBCKPT_NOTEBOOK": str(path), SESSION: str(path)} if is_here else told
    )


def job_of(output: str, folder: Path, beside: Path) -> str:
    """Return the name of the job that writes an output.

    Parameters
    ----------
    output : str
        A path or an address.
    folder : Path
        Where papermill was called.
    beside : Path
        The folder that names are told from, so that they outlive its moving.

    Returns
    -------
    str
        Without the ending.

    Examples
    --------
    >>> job_of("out/monday.ipynb", Path("/srv"), Path("/srv"))
    'out/monday'
    """
    name = output.removesuffix(".ipynb")
    return name if "://" in name else os.path.relpath(folder / name, beside)


def _folder() -> Path:
    """Return where papermill was called; ``--cwd`` moves the kernel only."""
    local = papermill_io.get_handler("local")
    before = local.cwd(None)
    local.cwd(before)
    return Path(before or Path.cwd())


def _given(parameters: Mapping[str, Any]) -> str:
    """Return the texts of all parameters as JSON, without credentials.

    Of a long one its digest: the kernel is told in its environment, which has limits.
    """
    texts = {name: masked(repr(value)) for name, value in parameters.items()}
    return json.dumps(
        {n: text if len(text) <= LETTERS else digest(text) for n, text in texts.items()}
    )
