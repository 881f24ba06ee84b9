"""Opening a store to look at it, and finding the run or step that is meant."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nbckpt.errors import NotFound, StoreDamaged
from nbckpt.runs.history import Reader
from nbckpt.store import Store, translated
from nbckpt.trust import SEAL_BYTES, Secret, load_secret, secret_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbckpt.records import RunRecord

START = "Begin one: nbckpt run NOTEBOOK.ipynb"
UNREADABLE = (TypeError, ValueError, KeyError, AttributeError)


@contextmanager
def looking(folder: Path) -> Iterator[Reader]:
    """Open a store to look at it; nothing is written, nothing is made.

    Parameters
    ----------
    folder : Path
        The store's folder.

    Yields
    ------
    Reader
        Of a store that may be another user's, or empty.

    Raises
    ------
    StoreRefused
        If the place is unsafe, or the schema newer.
    StoreDamaged
        If what is there can't be read.
    """
    # Without a secret of the user's own, no store can be theirs: none is made here.
    own = secret_path().exists()
    secret = load_secret() if own else Secret(secrets.token_bytes(SEAL_BYTES))
    store = Store(folder, secret)
    try:
        yield Reader(store)
    except sqlite3.Error as error:
        raise translated(error, folder) from None
    except UNREADABLE as error:
        if store.trusted:
            raise
        # Nobody vouches for the shape of another user's records.
        raise StoreDamaged(
            f"the store {folder} holds a record of unknown form ({error})",
            "Nothing of it was used",
        ) from None
    finally:
        store.close()


@contextmanager
def changing(folder: Path) -> Iterator[Store]:
    """Open a store that is there, to write to it.

    Parameters
    ----------
    folder : Path
        The store's folder.

    Yields
    ------
    Store
        The user's own store.

    Raises
    ------
    NotFound
        If there is no store; none is made.
    """
    store = Store(folder, load_secret())
    try:
        require(store)
        yield store
    finally:
        store.close()


def require(store: Store, begin: str = START) -> None:
    """Raise if nothing was ever written to a store.

    Parameters
    ----------
    store : Store
        Any store.
    begin : str, optional
        How a run is begun where the user is.

    Raises
    ------
    NotFound
        With the folder where it was sought.
    """
    if not store.exists:
        raise NotFound(
            f"there is no store {store.folder}",
            f"Name its folder with --store DIR. {begin}",
        )


def choose_run(
    reader: Reader, run_id: str = "", stem: str = "", *, begin: str = START
) -> RunRecord:
    """Return the run that is meant.

    Parameters
    ----------
    reader : Reader
        A store.
    run_id : str, optional
        Its id.
    stem : str, optional
        Name of the notebook without its ending, whose current run is meant.
    begin : str, optional
        How a run is begun where the user is.

    Returns
    -------
    RunRecord
        Without a name, the run that was begun last.

    Raises
    ------
    NotFound
        With what is known.
    """
    require(reader.store, begin)
    wanted = run_id or (reader.current(stem) if stem else "")
    if wanted:
        return reader.run(wanted)
    runs = reader.runs()
    if stem or not runs:
        known = ", ".join(run.run_id for run in runs) or "none"
        whose = f" of {stem}.ipynb" if stem else ""
        raise NotFound(
            f"there is no run{whose} in {reader.store.folder}",
            f"Known: {known}. {begin}",
        )
    return runs[-1]


def step_names(reader: Reader, run_id: str) -> list[str]:
    """Return the steps of a run that are known, those of the plan first.

    Parameters
    ----------
    reader : Reader
        A store.
    run_id : str
        The run.

    Returns
    -------
    list of str
        Steps that the notebook had once come last, in the order of their attempts.
    """
    planned = [step.name for step in reader.plan(run_id).steps]
    attempts = sorted(reader.attempts(run_id).values(), key=lambda a: a.order)
    return list(dict.fromkeys([*planned, *(attempt.step for attempt in attempts)]))


def require_step(reader: Reader, run_id: str, step: str) -> None:
    """Raise if a run has no such step.

    Parameters
    ----------
    reader : Reader
        A store.
    run_id, step : str
        The step.

    Raises
    ------
    NotFound
        With the names of its steps.
    """
    known = step_names(reader, run_id)
    if step not in known:
        raise NotFound(
            f"run {run_id} has no step {step!r}", f"Known: {', '.join(known) or 'none'}"
        )
