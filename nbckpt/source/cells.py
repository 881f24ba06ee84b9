"""The cells of a notebook file: their text, and their statements.

A Python script with ``# %%`` cells is a notebook, too; jupytext reads it.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadNotebook

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = ".py"
ENDINGS = (".ipynb", SCRIPT)
CURRENT = 4
"""The format of notebooks since 2014: the text of cells stands in it as it is."""
ASKING = re.compile(r"(?P<indent>\s*)%nbckpt\s+(?P<words>[^\s?].*\?)\s*")


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell."""

    source: str
    tags: tuple[str, ...] = ()


def read_notebook(path: Path) -> Any:
    """Return a notebook as nbformat reads it, in its newest form.

    Parameters
    ----------
    path : Path
        An ``.ipynb`` file, or a ``.py`` one with ``# %%`` cells.

    Returns
    -------
    nbformat.NotebookNode
        The notebook.

    Raises
    ------
    BadNotebook
        If the file is missing, empty or no notebook.
    """
    read = _read_script if path.suffix == SCRIPT else _read_file
    try:
        with warnings.catch_warnings():
            # Old notebooks lack the ids of cells; they are added, that is all.
            warnings.simplefilter("ignore")
            return read(path)
    except BadNotebook:
        raise
    except FileNotFoundError:
        raise BadNotebook(f"there is no notebook {path}", "Check the path") from None
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise BadNotebook(
            f"{path} is no readable notebook ({reason[0] if reason else 'empty'})",
            "Open it in Jupyter and save it again",
        ) from None


def _read_file(path: Path) -> Any:
    """Return what an ``.ipynb`` file holds."""
    import nbformat

    read: Any = nbformat.read
    return read(path, 4)


def _read_script(path: Path) -> Any:
    """Return the cells of a script."""
    try:
        import jupytext
    except ImportError:
        raise BadNotebook(
            f"{path} is a script, and jupytext, which reads its cells, is not installed",
            "Install it: pip install 'nbckpt[jupytext]'",
        ) from None
    read: Any = jupytext.read
    return read(path)


def read_cells(path: Path) -> list[Cell]:
    """Return the code cells of a notebook, in order.

    Parameters
    ----------
    path : Path
        An ``.ipynb`` file.

    Returns
    -------
    list of Cell
        Text and tags of each.

    Raises
    ------
    BadNotebook
        If the file is missing, empty or no notebook.
    """
    cells = _cells_of_today(path)
    return _code(read_notebook(path).cells) if cells is None else cells


def _cells_of_today(path: Path) -> list[Cell] | None:
    """Return the code cells of a file in the format of today; None of any other.

    A kernel reads its notebook while the user waits, and beside JupyterLab the import
    of nbformat takes seconds: jsonschema then compiles a grammar of 38 rules.
    """
    try:
        document = json.loads(path.read_bytes())
        return _code(document["cells"]) if document["nbformat"] == CURRENT else None
    except (
        OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError,
    ):  # fmt: skip
        return None  # nbformat says what is wrong with it


def _code(cells: list[Any]) -> list[Cell]:
    """Return the code cells among the cells of a notebook."""
    return [
        Cell("".join(cell["source"]), tuple(cell["metadata"].get("tags") or ()))
        for cell in cells
        if cell["cell_type"] == "code"
    ]


def read_sources(path: Path) -> list[str]:
    """Return the text of each code cell of a notebook; see `read_cells`."""
    return [cell.source for cell in read_cells(path)]


def with_questions(lines: list[str]) -> list[str]:
    """Return a cell whose ``%nbckpt VERB … text?`` lines call the magic.

    Parameters
    ----------
    lines : list of str
        The cell, as the user wrote it.

    Returns
    -------
    list of str
        As many lines. IPython takes every line that ends with a bare ``?`` for a
        request for help, and would never run the verb; ``%nbckpt?`` stays one.
    """
    if not any(map(ASKING.fullmatch, lines)) or lines[0].startswith("%%"):
        return lines
    from IPython.core.inputtransformer2 import make_tokens_by_line

    found = list(lines)
    for tokens in make_tokens_by_line(lines):
        # By tokens, since such a line can stand in a text of several lines.
        first = next((token for token in tokens if token.string.strip()), None)
        if first is None or first.string != "%":
            continue
        number = first.start[0] - 1
        if asking := ASKING.fullmatch(lines[number]):
            call = f"get_ipython().run_line_magic('nbckpt', {asking['words']!r})"
            found[number] = f"{asking['indent']}{call}\n"
    return found


def parse_body(source: str) -> list[ast.stmt]:
    """Return the statements of a cell's body as IPython's own transformations make them.

    Parameters
    ----------
    source : str
        The cell without its ``%%step`` line.

    Returns
    -------
    list of ast.stmt
        What the shell would run.

    Raises
    ------
    SyntaxError
        If it is no Python.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    manager: Any = TransformerManager  # it has no types
    lines = with_questions(source.splitlines(keepends=True))
    text = manager().transform_cell("".join(lines))
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    tree: Any = compile(text, "<cell>", "exec", flags=flags, dont_inherit=True)
    return list(tree.body)
