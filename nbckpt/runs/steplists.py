"""How the list of steps of a notebook differs from the one before: text in, text out."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nbckpt.records import PlannedStep


def renamed(
    before: Sequence[PlannedStep], now: Sequence[PlannedStep]
) -> dict[str, str]:
    """Return the steps that bear another name now.

    Parameters
    ----------
    before, now : sequence of PlannedStep
        The steps in order.

    Returns
    -------
    dict
        Old name → new name. A step is the same if its code is, and no other step that
        came or went has that code.
    """
    gone, come = _without(before, now), _without(now, before)
    found: dict[str, str] = {}
    for step in gone:
        same = [other.name for other in come if other.code == step.code]
        twins = [other for other in gone if other.code == step.code]
        if len(same) == len(twins) == 1:
            found[step.name] = same[0]
    return found


def changes(before: Sequence[PlannedStep], now: Sequence[PlannedStep]) -> list[str]:
    """Say how a list of steps differs from the one before.

    Parameters
    ----------
    before, now : sequence of PlannedStep
        The steps in order.

    Returns
    -------
    list of str
        Which steps were renamed, added, removed and moved; empty if only the content of
        steps changed, or nothing.

    Examples
    --------
    >>> changes([load, fit], [load, clean, fit])
    ['added clean']
    """
    others = renamed(before, now)
    gone = [step.name for step in _without(before, now) if step.name not in others]
    come = [s.name for s in _without(now, before) if s.name not in others.values()]
    there = {step.name for step in now}
    old = [others.get(step.name, step.name) for step in before]
    stayed = [name for name in old if name in there]
    moved = _moved(stayed, [step.name for step in now if step.name in stayed])
    found = [f"renamed {name} to {new}" for name, new in others.items()]
    parts = (("added", come), ("removed", gone), ("moved", moved))
    return [*found, *(f"{word} {', '.join(names)}" for word, names in parts if names)]


def _without(
    steps: Iterable[PlannedStep], others: Iterable[PlannedStep]
) -> list[PlannedStep]:
    """Return the steps whose names others don't have."""
    known = {step.name for step in others}
    return [step for step in steps if step.name not in known]


def _moved(before: list[str], now: list[str]) -> list[str]:
    """Return the names that left their place among the others."""
    matcher = SequenceMatcher(None, before, now, autojunk=False)
    kept: set[str] = set()
    for block in matcher.get_matching_blocks():
        kept |= {*before[block.a : block.a + block.size]}
    return [name for name in now if name not in kept]
