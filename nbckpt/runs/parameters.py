"""The parameters of a run: they are its own, and other ones want another run."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from nbckpt.credentials import masked
from nbckpt.errors import BadStep, StopForHuman
from nbckpt.records import Event
from nbckpt.runs.lines import add_line

if TYPE_CHECKING:
    from nbckpt.records import RunRecord
    from nbckpt.runs.history import Reader
    from nbckpt.runs.identity import Wish

OTHER_RUN = (
    "Begin a run of its own: --run-id NEW, or --fresh; or go on with this one all the "
    "same: --run-id {}; or with its last parameters: without -p"
)
OTHER_JOB = (
    "Begin a run of its own: another output, or NBCKPT_RUN_ID=NEW papermill …; or go on "
    "with this one all the same: NBCKPT_RUN_ID={} papermill …"
)


def settled(
    reader: Reader, run_id: str, given: dict[str, str], *, named: bool
) -> dict[str, str]:
    """Return the parameters that a start of a run goes by.

    Parameters
    ----------
    reader : Reader
        Of the user's own store.
    run_id : str
        The run.
    given : dict
        Name → text of the value; empty: those that the run was started with last.
    named : bool
        Whether the user says that it is this run.

    Returns
    -------
    dict
        Name → text of the value.

    Raises
    ------
    StopForHuman
        If they are others than last, and the run has effects: one under the same name
        would count as done for these parameters, too. Nothing was started.
    BadStep
        If one of the last ones holds a credential, which is not stored.
    """
    last = reader.placement(run_id)
    known = last.parameters if last else {}
    if not given:
        _refuse_withheld(run_id, last.withheld if last else ())
        return known
    others = {name: masked(text) for name, text in given.items()}
    if not named:
        ways = OTHER_RUN.format(shlex.quote(run_id))
        _refuse_others(reader, run_id, _changed(known, others), ways)
    return given


def check_given(reader: Reader, run: RunRecord, wish: Wish) -> None:
    """Stop if papermill gives a run that has effects other parameters than last."""
    if wish.given is not None and wish.meant != run.run_id:
        ways = OTHER_JOB.format(shlex.quote(run.run_id))
        _refuse_others(reader, run.run_id, _changed(run.given, wish.given), ways)


def _changed(last: dict[str, str], given: dict[str, str]) -> list[str]:
    """Return the names of parameters that are others than last."""
    return sorted({name for name, _ in given.items() ^ last.items()})


def _refuse_withheld(run_id: str, withheld: tuple[str, ...]) -> None:
    """Refuse to go on with parameters that were not stored."""
    if withheld:
        raise BadStep(
            f"parameter {withheld[0]} of run {run_id} holds a credential, which is not "
            "stored",
            f"Give the run its parameters again: -p {withheld[0]} VALUE",
        )


def _refuse_others(reader: Reader, run_id: str, changed: list[str], ways: str) -> None:
    """Stop at changed parameters of a run that has effects."""
    effects = [e.name for e in reader.effects(run_id) if e.stands]
    if changed and effects:
        why = f"other parameters than last: {', '.join(changed)}"
        _note_stop(reader, run_id, why)
        more = f" and {len(effects) - 1} more" if len(effects) > 1 else ""
        raise StopForHuman(
            f"run {run_id} has {why}; effects that it has made ({effects[0]}{more}) "
            "would count as done for these, too",
            ways,
        )


def _note_stop(reader: Reader, run_id: str, why: str) -> None:
    """Add the stop to the history of a run."""
    line = Event(time.time(), "stopped", "", why)
    reader.store.transact(lambda tx: add_line(tx, run_id, line))
