"""A notebook cold, then warm in a new kernel: nothing runs again, nothing looks different."""

from __future__ import annotations

import difflib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nbckpt.errors import BadStep
from nbckpt.headless.document import make_copy, save
from nbckpt.headless.loop import kernel_name
from nbckpt.headless.passes import End, Pass
from nbckpt.places import STORE_OF
from nbckpt.plan import read_step, step_line
from nbckpt.runs.history import Reader
from nbckpt.source.cells import read_sources
from nbckpt.store import Store
from nbckpt.trust import load_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbckpt.records import Event

IGNORED = "nbval-ignore-output"
IGNORED_WORD = "NBVAL_IGNORE_OUTPUT"
VIEW = "application/vnd.jupyter.widget-view+json"
"""Names a live model, another one in each kernel."""
LINES = 20


def cold_and_warm(notebook: Path, store: Path, keep: Path | None = None) -> list[str]:
    """Execute a notebook with an empty store, then again in a new kernel.

    The notebook works in its own folder, so that its relative files are found; only the
    store is another one.

    Parameters
    ----------
    notebook : Path
        The file, which is only read.
    store : Path
        Folder of a store that does not exist yet; the one above it must.
    keep : Path, optional
        Where the notebook is written as the warm pass left it.

    Returns
    -------
    list of str
        What is wrong: a pass that did not complete, a step that ran again, an output
        that differs. Steps marked ``--always`` may run, and cells whose output nbval is
        told to ignore may differ.
    """
    first, end = _execute(notebook, store)
    if end.kind != "completed":
        return [_incomplete("cold", first, end)]
    seen = _history(store)
    second, end = _execute(notebook, store)
    if end.kind != "completed":
        return [_incomplete("warm", second, end)]
    if keep is not None:
        keep.parent.mkdir(parents=True, exist_ok=True)
        save(second, keep)
    new = [event for key, event in _history(store).items() if key not in seen]
    return [*_ran_again(new, read_sources(notebook)), *_differences(first, second)]


def _execute(notebook: Path, store: Path) -> tuple[Any, End]:
    """Let one kernel go through a notebook."""
    document = make_copy(notebook, {})
    # ipykernel captures no output of child processes while this one is set.
    hidden = {
        "PYTEST_CURRENT_TEST",
        "NBCKPT_RUN_ID",
        "NBCKPT_OVERLAP",
        "NBCKPT_VERSION",
        "NBCKPT_STOP_ON_REDO",
        STORE_OF,
    }
    environment = {
        name: text for name, text in os.environ.items() if name not in hidden
    }
    environment |= {"NBCKPT_NOTEBOOK": str(notebook), "NBCKPT_STORE": str(store)}
    kernel = kernel_name(document, lambda _: None)
    through = Pass(document, notebook.parent, environment, kernel, lambda: None)
    return document, through.run()


def _incomplete(word: str, document: Any, end: End) -> str:
    """Return how a pass ended early."""
    source = document.cells[end.cell].source if end.cell >= 0 else ""
    where = f"the {word} pass {end.kind} in cell {end.cell + 1}"
    return f"{where}: {end.name}: {end.text}\n{source}"


def _history(folder: Path) -> dict[str, Event]:
    """Return the history of all runs of a store."""
    store = Store(folder, load_secret())
    try:
        reader = Reader(store)
        lines = [line for run in reader.runs() for line in reader.history(run.run_id)]
        return dict(lines)
    finally:
        store.close()


def _ran_again(events: list[Event], sources: list[str]) -> list[str]:
    """Return the steps whose bodies ran in the warm pass."""
    always = set(_always(sources))
    return [
        f"step {event.step} ran again in the warm pass: {event.reason}"
        for event in events
        if event.kind == "completed" and event.step not in always
    ]


def _always(sources: list[str]) -> Iterator[str]:
    """Yield the names of the steps that are never skipped."""
    for line in map(step_line, sources):
        with suppress(BadStep):  # such a cell says so itself
            if line is not None and read_step(line).always:
                yield read_step(line).name


def _differences(first: Any, second: Any) -> list[str]:
    """Return the outputs that differ between two passes."""
    found = []
    for number, (a, b) in enumerate(zip(first.cells, second.cells, strict=True), 1):
        if a.cell_type != "code" or is_ignored(a):
            continue
        before, after = comparable(a.outputs), comparable(b.outputs)
        if before != after:
            diff = difflib.unified_diff(before, after, "cold", "warm", lineterm="", n=1)
            shown = "\n".join(list(diff)[:LINES])
            found.append(f"cell {number}: its output differs in the warm pass\n{shown}")
    return found


def is_ignored(cell: Any) -> bool:
    """Tell whether nbval is told to ignore a cell's output."""
    return IGNORED in (cell.metadata.get("tags") or ()) or IGNORED_WORD in cell.source


def comparable(outputs: list[Any]) -> list[str]:
    """Return outputs as lines of text, without what is another in each kernel."""
    kept = []
    for output in outputs:
        plain = json.loads(json.dumps(output))
        plain.get("data", {}).pop(VIEW, None)
        plain.pop("traceback", None)
        kept.append(plain)
    return json.dumps(kept, indent=1, sort_keys=True).splitlines()
