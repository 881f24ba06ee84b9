"""The executed copy of a notebook: made, given parameters, saved whole."""

from __future__ import annotations

import ast
import copy
import json
import keyword
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadNotebook, BadStep
from nbckpt.places import sync_folder
from nbckpt.source.cells import read_notebook

if TYPE_CHECKING:
    from pathlib import Path

PARAMETERS, INJECTED = "parameters", "injected-parameters"
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
ARROW = re.compile(r"^-+> ?(\d+) (.{,200})", re.MULTILINE)
"""Marks the line of a cell in IPython's tracebacks."""


def parse_value(text: str) -> Any:
    """Return the value that a parameter's text means.

    Parameters
    ----------
    text : str
        From the command line.

    Returns
    -------
    object
        A Python literal or a JSON value, if its ``repr`` is a literal of it; any other
        text is itself.

    Examples
    --------
    >>> parse_value("3"), parse_value("true"), parse_value("2026-11-29")
    (3, True, '2026-11-29')
    """
    for read in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            # Infinity is spelled by a name, and huge integers are not spelled at all.
            return ast.literal_eval(repr(read(text)))
    return text


def parameter_source(parameters: dict[str, str]) -> str:
    """Return the code that sets parameters.

    Parameters
    ----------
    parameters : dict
        Name → text of the value.

    Returns
    -------
    str
        One assignment a line.

    Raises
    ------
    BadStep
        If a name is none that Python can assign to.
    """
    for name in parameters:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise BadStep(
                f"-p {name}: that is no name", "Write for example: -p DAY 2026-11-29"
            )
    lines = [f"{name} = {parse_value(text)!r}" for name, text in parameters.items()]
    return "\n".join(["# Parameters", *lines])


def failed_line(outputs: Any) -> str:
    """Return the line of a cell at which it raised, as its traceback shows it.

    Parameters
    ----------
    outputs : list
        Of the cell.

    Returns
    -------
    str
        Number and source; empty if no traceback tells.
    """
    shown = [text for output in outputs for text in output.get("traceback", ())]
    found = ARROW.search(COLOURS.sub("", "\n".join(shown)))
    return f"line {found[1]}: {found[2].strip()}" if found else ""


def make_copy(notebook: Path, parameters: dict[str, str]) -> Any:
    """Return a notebook to be executed: without outputs, with its parameters.

    Parameters
    ----------
    notebook : Path
        The file, which is only read.
    parameters : dict
        Name → text of the value.

    Returns
    -------
    nbformat.NotebookNode
        Parameters stand in a cell of their own after the one tagged ``parameters``, or
        on top.

    Raises
    ------
    BadNotebook
        If the file is missing, broken, or holds no code.
    """
    found = copy.deepcopy(read_notebook(notebook))
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    if not any(cell.source.strip() for cell in code):
        raise BadNotebook(f"{notebook} holds no code", "There is nothing to run")
    for cell in code:
        cell.outputs, cell.execution_count = [], None
    if parameters:
        _inject(found, parameter_source(parameters))
    return found


def _inject(document: Any, source: str) -> None:
    """Put the parameters' cell where the notebook wants it."""
    from nbformat.v4 import new_code_cell

    make: Any = new_code_cell
    cell = make(source, metadata={"tags": [INJECTED]})
    if document.nbformat_minor < 5:  # noqa: PLR2004 - cells have ids from 4.5 on
        cell.pop("id", None)
    document.cells = [c for c in document.cells if INJECTED not in _tags(c)]
    marked = [n for n, c in enumerate(document.cells) if PARAMETERS in _tags(c)]
    document.cells.insert(marked[0] + 1 if marked else 0, cell)


def _tags(cell: Any) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.metadata.get("tags") or ())


def save(document: Any, path: Path) -> None:
    """Write a notebook so that the file is always whole: the one before, or this one.

    Parameters
    ----------
    document : nbformat.NotebookNode
        The notebook.
    path : Path
        The file.

    Raises
    ------
    OSError
        If it can't be written; the file before stays.
    """
    import nbformat

    write: Any = nbformat.writes
    text = write(document)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # Half of a pair of surrogates, which only an escape of JSON can hold, stays one.
        with scratch.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    sync_folder(path.parent)
