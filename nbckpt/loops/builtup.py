"""What a loop over items builds up, told where it begins: what can be kept, and what can't.

Items that are done are passed over, so that what they left in a name must come back, or
they must be worked on again: a result that lacks them would be taken for whole.
"""

from __future__ import annotations

import ast
import linecache
import types
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from nbckpt.loops import begun
from nbckpt.source.carried import Carried, carried_at

if TYPE_CHECKING:
    from nbckpt.current import Place

PLAIN = {
    "builtins", "collections", "datetime", "decimal", "fractions", "numpy", "pandas",
    "polars",
}  # fmt: skip
"""Where the types of values come from that are kept without being named."""
NO_DATA = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.GeneratorType,
)
GATHERED = "what an expression gathers"


@dataclass(frozen=True, slots=True)
class BuiltUp:
    """What a loop builds up from one item to the next."""

    asked: tuple[str, ...] = ()
    """Names that the user wants kept."""
    names: tuple[str, ...] = ()
    """Other names of the notebook."""
    lost: tuple[str, ...] = ()
    """What nothing can bring back: it belongs to a function, or to an expression."""

    @property
    def kept(self) -> tuple[str, ...]:
        """Names that are checkpointed with the items, if they can be."""
        return self.asked + self.names


def built_up(
    frame: types.FrameType, place: Place, asked: tuple[str, ...] = ()
) -> BuiltUp:
    """Return what the loop builds up that a call begins.

    Parameters
    ----------
    frame : FrameType
        Where ``items(…)`` is called.
    place : Place
        The body that runs.
    asked : tuple of str
        Names that the user wants kept.

    Returns
    -------
    BuiltUp
        Of a loop inside an item nothing is kept but what the user names: the item that
        is in flight runs again whole.
    """
    found = _carried(frame.f_code, frame.f_lasti)
    local = frame.f_locals if found.is_local else {}
    names = sorted(found.names - {*asked, *place.step.ignore})
    own = [name for name in names if name not in local]
    lost = [name for name in names if is_plain(local.get(name, NO_DATA[0]))]
    if begun.inside.get() is not None:
        values = place.session.namespace
        lost += [name for name in own if is_plain(values.get(name, NO_DATA[0]))]
        own = []
    lost += [GATHERED] if found.is_gathered else []
    return BuiltUp(asked, tuple(own), tuple(lost))


def is_plain(value: Any) -> bool:
    """Tell whether a value is data that can be kept without being asked for.

    Parameters
    ----------
    value : object
        What a name holds.

    Returns
    -------
    bool
        False for handles and for objects of the user's own types.
    """
    root = type(value).__module__.partition(".")[0]
    return root in PLAIN and not isinstance(value, NO_DATA)


@lru_cache(maxsize=256)
def _carried(code: types.CodeType, instruction: int) -> Carried:
    """Return what the loop carries that a call in some code begins."""
    place = next(islice(code.co_positions(), instruction // 2, None), None)
    if place is None or None in place:
        return Carried()
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return Carried()
    first, last, begin, end = (part or 0 for part in place)
    return carried_at(tree, (first, last, begin, end))
