"""How far the loops over items of a run are, for ``status`` and ``show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from nbckpt.verbs.forms.pages import Part, Table, Tree, listed

if TYPE_CHECKING:
    from nbckpt.records import LoopRecord
    from nbckpt.runs.history import Reader

FEW = 5
"""Failed items that ``status`` names."""
LETTERS = 100


class NextItem(TypedDict):
    """The item that is worked on, or comes next."""

    item: str
    text: str


class FailedItem(TypedDict):
    """An item that failed, and was not done since."""

    item: str
    error: str
    attempt: int


class LoopStatus(TypedDict):
    """How far a loop over items is, as it was written last."""

    step: str
    loop: str
    """Its name in the step, or its number among the step's loops."""
    attempt: int
    done: int
    failed: int
    total: int | None
    """None: the number of items is not known."""
    next_input: NextItem | None
    errors: list[FailedItem]
    """The last of those that failed; `failed` counts all."""
    ended: bool
    """Whether it came to its end."""
    kept: list[str]
    """Names that are checkpointed with the items."""
    updated_at: float
    """Seconds since the epoch."""


def loops(reader: Reader, run_id: str, step: str = "") -> list[LoopStatus]:
    """Return how far the loops of a run are, or those of one of its steps.

    Parameters
    ----------
    reader : Reader
        The run's store.
    run_id : str
        The run.
    step : str, optional
        Only this one's.

    Returns
    -------
    list of LoopStatus
        JSON values, in order of steps and of loops in a step.
    """
    return [_loop(record) for record in reader.loops(run_id, step)]


def _loop(record: LoopRecord) -> LoopStatus:
    """Return how far a loop is."""
    following = record.next_input
    return LoopStatus(
        step=record.step,
        loop=record.loop,
        attempt=record.attempt,
        done=record.done,
        failed=record.failed,
        total=record.total,
        next_input=NextItem(item=following.item, text=following.text)
        if following
        else None,
        errors=[
            FailedItem(item=each.item, error=each.error, attempt=each.attempt)
            for each in record.errors
        ],
        ended=record.ended,
        kept=list(record.kept),
        updated_at=record.updated_at,
    )


def open_trees(found: list[LoopStatus]) -> list[Tree]:
    """Return the loops that did not end or have failed items, for ``status``.

    Parameters
    ----------
    found : list of LoopStatus
        From `loops`.

    Returns
    -------
    list of Tree
        Empty if there are none.
    """
    return [
        Tree(f"items     {loop['step']}/{loop['loop']}: {_progress(loop)}", _few(loop))
        for loop in found
        if not loop["ended"] or loop["errors"]
    ]


def _few(loop: LoopStatus) -> list[str]:
    """Return the failed items of a loop, a few of many."""
    lines = [
        f"failed: {each['item']} (attempt {each['attempt']}): {_short(each['error'])}"
        for each in loop["errors"][-FEW:]
    ]
    if loop["failed"] > FEW:
        lines.append(f"all of them: nbckpt show {loop['step']}")
    return lines


def loop_tree(loop: LoopStatus) -> Tree:
    """Return a loop of a step for ``show``, with all failed items that are kept.

    Parameters
    ----------
    loop : LoopStatus
        From `loops`.
    """
    branches: list[Part] = []
    if loop["kept"]:
        branches.append(f"keeps: {listed(loop['kept'], 12)}")
    rows = [
        (each["item"], str(each["attempt"]), each["error"].replace("\n", " "))
        for each in loop["errors"]
    ]
    if rows:
        branches.append(Table(("failed item", "attempt", "error"), rows))
    if len(rows) < loop["failed"]:
        branches.append(f"and {loop['failed'] - len(rows)} that failed before these")
    return Tree(f"loop {loop['loop']}: {_progress(loop)}", branches)


def _progress(loop: LoopStatus) -> str:
    """Return how far a loop is, in one line."""
    total = "" if loop["total"] is None else f" of {loop['total']}"
    parts = [f"{loop['done']}{total} done"]
    if loop["failed"]:
        parts.append(f"{loop['failed']} failed")
    if loop["ended"]:
        parts.append("ended")
    elif loop["next_input"]:
        following = loop["next_input"]
        parts.append(f"next {following['item']}: {_short(following['text'])}")
    return ", ".join(parts)


def _short(text: str) -> str:
    """Return the first line of a text, as far as it fits."""
    line = text.partition("\n")[0]
    return (
        line
        if len(line) <= LETTERS
        else f"{line[: LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    )
