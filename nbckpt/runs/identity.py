"""Which notebook a kernel runs, and what its user asked for."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from nbckpt.errors import BadStep
from nbckpt.runs import servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbckpt.records import Overlap

SESSION = "JPY_SESSION_NAME"
"""Where servers and runners tell a kernel its notebook."""
OWN = (
    "NBCKPT_NOTEBOOK", "NBCKPT_JOB", "NBCKPT_RUN_ID", "NBCKPT_VERSION",
    "NBCKPT_OVERLAP", "NBCKPT_STOP_ON_REDO", "NBCKPT_PARAMETERS",
)  # fmt: skip
PROGRAMS = {"jupyter-nbconvert", "nbconvert", "jupyter-execute"}
"""Execute the notebook that their command line names, and tell the kernel nothing."""
OUTPUTS = {"-o", "--output", "--output-dir", "--config"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for before the first step."""

    run_id: str = ""
    version: str = ""
    overlap: Overlap = "skip"
    fresh: bool = False
    store: str = ""
    stop_on_redo: bool = False
    given: dict[str, str] | None = None
    """Parameters that papermill gives; None: it is not papermill that runs this."""
    meant: str = ""
    """The run that the user named for them; a notebook's own start line says nothing."""


def wish_of_environment() -> Wish:
    """Return what the environment asks for, as ``nbckpt run`` sets it.

    Returns
    -------
    Wish
        Without a store: the notebook's folder counts for that.

    Raises
    ------
    BadStep
        If there is no such overlap policy.
    """
    told = told_to_this_kernel(starter())
    return Wish(
        run_id=told.get("NBCKPT_RUN_ID", ""),
        version=told.get("NBCKPT_VERSION", ""),
        overlap=read_overlap(told.get("NBCKPT_OVERLAP", "skip")),
        stop_on_redo=bool(told.get("NBCKPT_STOP_ON_REDO")),
        given=json.loads(told.get("NBCKPT_PARAMETERS") or "null"),
        meant=told.get("NBCKPT_RUN_ID", ""),
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Which notebook a kernel runs."""

    base: Path
    """Folder that relative paths are told from."""
    notebook: Path | None = None
    job: str = ""
    """What the notebook is run for; its runs are apart from those of other jobs."""

    @property
    def stem(self) -> str:
        """What its runs are named after: the job, or the notebook without its ending."""
        return self.job or (self.notebook.stem if self.notebook else "notebook")


@dataclass(frozen=True, slots=True)
class Starter:
    """The process that started this kernel."""

    environment: Mapping[str, str]
    """As it was when that process began."""
    command: tuple[str, ...] = ()
    folder: Path = Path()


def starter() -> Starter:
    """Return the process that started this kernel, as far as the system tells.

    Returns
    -------
    Starter
        Empty for a terminal, and where that process is gone or another user's.
    """
    try:
        process = psutil.Process(int(os.environ.get("JPY_PARENT_PID", "")))
        found = process.environ(), tuple(process.cmdline()), Path(process.cwd())
    except (ValueError, OSError, psutil.Error):
        return Starter({})
    return Starter(*found)


def told_to_this_kernel(by: Starter) -> dict[str, str]:
    """Return the environment without what was told to a kernel around this one.

    A notebook that executes another one hands its own environment on. What the process
    that started this kernel had been told itself was not meant for this kernel.

    Parameters
    ----------
    by : Starter
        The process that started this kernel.

    Returns
    -------
    dict
        Variables by name.
    """
    around = by.environment
    name = around.get(SESSION)
    if not name:
        return dict(os.environ)
    # A user who names the notebook by hand, for a program to start, sets not both.
    is_run = around.get("NBCKPT_NOTEBOOK") == name
    doubtful = {SESSION, *OWN} if is_run else {SESSION}
    return {
        key: text
        for key, text in os.environ.items()
        if key not in doubtful or around.get(key) != text
    }


def identify(namespace: dict[str, Any]) -> Identity:
    """Return which notebook this kernel runs.

    Parameters
    ----------
    namespace : dict
        The shell's names; VS Code leaves the path there.

    Returns
    -------
    Identity
        Without a notebook if nothing tells; the folder is then the kernel's.

    Notes
    -----
    In this order: ``NBCKPT_NOTEBOOK``, VS Code's ``__vsc_ipynb_file__``, the answer of the
    Jupyter server that started the kernel, ``JPY_SESSION_NAME``, the command line of
    ``jupyter nbconvert`` or ``jupyter execute``. The first one that is a file counts.
    Kernels of Colab are told nothing: ``%nbckpt start NAME`` names their run.
    """
    by = starter()
    told = told_to_this_kernel(by)
    job = told.get("NBCKPT_JOB", "")
    for name in _names(told, namespace, by):
        path = Path(str(name)).absolute() if name else None
        if path is not None and path.is_file():
            return Identity(path.parent, path, job)
    return Identity(Path.cwd(), job=job)


def _names(
    told: Mapping[str, str], namespace: dict[str, Any], by: Starter
) -> Iterator[object]:
    """Yield what may name the notebook; a server is asked only where nothing else did."""
    yield told.get("NBCKPT_NOTEBOOK")
    yield namespace.get("__vsc_ipynb_file__")
    yield servers.notebook_now()
    yield told.get(SESSION)
    yield _executed(by)


def _executed(by: Starter) -> str:
    """Return the one notebook that the starter's command line names, if it executes it."""
    if not PROGRAMS & {Path(word).name for word in by.command[:3]}:
        return ""
    found = {by.folder / word for word in _inputs(by.command)}
    return str(found.pop()) if len(found) == 1 else ""


def _inputs(command: tuple[str, ...]) -> Iterator[str]:
    """Yield the notebooks of a command line, without what it writes."""
    before = ""
    for word in command:
        is_value = before in OUTPUTS or word.startswith("-")
        if word.endswith(".ipynb") and not is_value:
            yield word
        before = word


def read_overlap(text: str) -> Overlap:
    """Return an overlap policy, or say which ones there are."""
    if text not in {"skip", "replace", "concurrent"}:
        raise BadStep(
            f"{text!r} is no overlap policy", "Choose skip, replace or concurrent"
        )
    return text  # type: ignore[return-value]


def cell_id(shell: Any) -> str:
    """Return the front end's id of the running cell; empty if it tells none."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    metadata = (parent or {}).get("metadata") or {}
    return str(metadata.get("cellId", ""))
