"""What a word on the command line means: a run, or the notebook of one."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from nbckpt.places import STORE_OF, wanted
from nbckpt.source.cells import ENDINGS
from nbckpt.verbs.finding.opening import choose_run

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.runs.history import Reader


def store_folder(store: str, notebook: Path | None = None) -> Path:
    """Return the folder of the store that is meant.

    Parameters
    ----------
    store : str
        From ``--store``; empty if not given.
    notebook : Path, optional
        The notebook that is named.

    Returns
    -------
    Path
        Absolute.
    """
    if store:
        return Path(store).absolute()
    beside = notebook.absolute().parent if notebook else Path.cwd()
    meant = str(notebook.absolute()) if notebook else os.environ.get(STORE_OF, "")
    return wanted(beside, meant)


def notebook_named(target: str) -> Path | None:
    """Return the notebook that a target names; other targets are run ids.

    Parameters
    ----------
    target : str
        From the command line.

    Returns
    -------
    Path or None
        As it was written.
    """
    return Path(target) if target.endswith(ENDINGS) else None


def folder_of(store: str, target: str) -> Path:
    """Return the store's folder for a target.

    Parameters
    ----------
    store : str
        From ``--store``; empty if not given.
    target : str
        A run id or a notebook.

    Returns
    -------
    Path
        Absolute.
    """
    return store_folder(store, notebook_named(target))


def run_named(reader: Reader, target: str) -> RunRecord:
    """Return the run that a target means.

    Parameters
    ----------
    reader : Reader
        The store.
    target : str
        A run id or a notebook; empty: the run begun last.

    Returns
    -------
    RunRecord
        The run.
    """
    notebook = notebook_named(target)
    if notebook is None:
        return choose_run(reader, target)
    begin = f"Begin one: nbckpt run {shlex.quote(str(notebook))}"
    return choose_run(reader, stem=notebook.stem, begin=begin)
