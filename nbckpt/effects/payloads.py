"""What a call sends, told from the function that makes it: the request of an effect."""

from __future__ import annotations

import dataclasses
import datetime as dt
import dis
import enum
import functools
import numbers
import pathlib
import sys
import types
import uuid
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import Canonical
from nbckpt.credentials import Secrets
from nbckpt.errors import BadStep
from nbckpt.keys import digest, is_huge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SPELLED = (
    bytes, type(None), numbers.Number, dt.date, dt.time, dt.timedelta,
    dt.tzinfo, uuid.UUID, pathlib.PurePath,
)  # fmt: skip
DEFINITIONS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
NAMES = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"}
ADDING = {
    "add", "append", "appendleft", "extend", "insert", "put", "setdefault", "update",
}  # fmt: skip
DEEPEST = 30


class NotPlain(Exception):
    """A value is more than data: a client, a socket, a function."""


def request_given(value: Any, namespace: dict[str, Any]) -> dict[str, str]:
    """Return the fingerprint of a request that the user names.

    Parameters
    ----------
    value : object
        From ``request=``.
    namespace : dict
        The notebook's names.

    Returns
    -------
    dict
        One part.

    Raises
    ------
    BadStep
        If its value can't be told.
    """
    found = Canonical(value, namespace)
    if found.unknown:
        raise BadStep(
            f"request= holds a {found.unknown}, whose value can't be compared",
            "Give plain data: texts, numbers, lists, dicts",
        )
    return {"request": found.digest}


def request_read(
    perform: Callable[..., Any], namespace: dict[str, Any]
) -> dict[str, str]:
    """Return the fingerprint of the plain data that a function reads.

    Parameters
    ----------
    perform : callable
        What makes the call; it is not called.
    namespace : dict
        The notebook's names.

    Returns
    -------
    dict
        Name → digest of its value. Live objects (clients, sockets), objects whose
        methods the function calls, and containers that it only adds to are left out.

    Notes
    -----
    Only the function itself is looked at, not what it calls: a value that a helper reads
    is no part of the request unless it is passed to it. Credentials of the environment
    count by the names of their variables, so that a renewed token is no other request.

    Examples
    --------
    >>> amount = 5
    >>> sorted(request_read(lambda key: print(amount, key), globals()))
    ['amount']
    """
    hidden = Secrets.of_environment()
    parts = {}
    for name, value in _parts(perform, namespace):
        try:
            parts[name] = digest(spelled(value, hidden))
        except (NotPlain, RecursionError):
            continue
    return parts


def differing(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the parts in which two requests differ.

    Parameters
    ----------
    recorded, now : mapping
        Fingerprints.

    Returns
    -------
    list of str
        Empty for equal requests.
    """
    names = sorted(recorded.keys() | now.keys())
    return [name for name in names if recorded.get(name) != now.get(name)]


def _parts(
    perform: Any, namespace: dict[str, Any], before: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield all that a callable reads, with names."""
    if isinstance(perform, functools.partial):
        for number, value in enumerate(perform.args, 1):
            yield f"{before}argument {number}", value
        for name, value in perform.keywords.items():
            yield f"{before}argument {name}", value
        yield from _parts(perform.func, namespace, before)
    elif isinstance(perform, types.FunctionType):
        yield from _read_by(perform, namespace, before)
    elif _is_frozen(self := getattr(perform, "__self__", perform)):
        yield f"{before}self", self


def _read_by(
    function: types.FunctionType, namespace: dict[str, Any], before: str
) -> Iterator[tuple[str, Any]]:
    """Yield what a function holds, and what it names in the notebook."""
    code = function.__code__
    own = function.__globals__ is namespace
    for name, value in sorted(_held(function, namespace if own else {}).items()):
        if _is_data(value, _uses(code).get(name, set())):
            yield before + name, value
    defaults = [
        *(function.__defaults__ or ()),
        *(function.__kwdefaults__ or {}).values(),
    ]
    for number, value in enumerate(defaults, 1):
        yield f"{before}default {number}", value
    yield f"{before}constants", list(_constants(code))


def _held(function: types.FunctionType, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return what a function names in the notebook, and what its closure holds."""
    code = function.__code__
    found = {n: namespace[n] for n in _uses(code) if n in namespace}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    found |= {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    return found


def _is_filled(cell: types.CellType) -> bool:
    """Tell whether a closure's variable has a value yet."""
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _is_data(value: Any, uses: set[str]) -> bool:
    """Tell whether a value is sent, rather than called or added to.

    An object of which only methods are called is what receives the request; of a text or
    a frozen dataclass they are how its data is read.
    """
    if "" in uses or not uses:
        return True
    if isinstance(value, (list, dict, set)):
        return not uses <= ADDING
    return _is_frozen(value) or isinstance(value, (str, tuple, *SPELLED))


def _is_frozen(value: Any) -> bool:
    """Tell whether a value is of a dataclass that is never changed."""
    parameters = getattr(value, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def _uses(code: types.CodeType) -> dict[str, set[str]]:
    """Return how code uses each name: methods that it calls; empty text for all else."""
    found: dict[str, set[str]] = {}
    steps = [s for s in dis.get_instructions(code) if s.opname != "EXTENDED_ARG"]
    for number, step in enumerate(steps):
        if step.opname in NAMES:
            found.setdefault(str(step.argval), set()).add(_method(steps, number + 1))
    for inner in _nested(code):
        for name, uses in _uses(inner).items():
            found.setdefault(name, set()).update(uses)
    return found


def _method(steps: list[dis.Instruction], number: int) -> str:
    """Return the method that is loaded from what was loaded last, if one is."""
    while number < len(steps) and steps[number].opname in {"LOAD_ATTR", "LOAD_METHOD"}:
        if _is_method(steps[number]):
            return str(steps[number].argval)
        number += 1
    return ""


def _is_method(step: dis.Instruction) -> bool:
    """Tell whether an instruction loads an attribute in order to call it."""
    if step.opname == "LOAD_METHOD":
        return True
    return sys.version_info >= (3, 12) and bool((step.arg or 0) & 1)


def _constants(code: types.CodeType) -> Iterator[Any]:
    """Yield the constants that code loads, and those of the code inside it."""
    for step in dis.get_instructions(code):
        loads = step.opname.endswith("_CONST") or step.opname == "LOAD_SMALL_INT"
        if loads and step.argval is not None:
            if isinstance(step.argval, types.CodeType):
                yield from _constants(step.argval)
            else:
                yield step.argval


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code directly inside other code."""
    return (part for part in code.co_consts if isinstance(part, types.CodeType))


def spelled(value: Any, hidden: Secrets, depth: int = 0) -> str:
    """Return a text that is equal for equal plain values, in every process.

    Parameters
    ----------
    value : object
        Any value.
    hidden : Secrets
        Credentials; they count by their names.
    depth : int, optional
        How deep inside another value it lies.

    Returns
    -------
    str
        Types count too.

    Raises
    ------
    NotPlain
        If a part of it is more than data.
    """
    if depth > DEEPEST:
        raise NotPlain
    kind = type(value).__name__
    if isinstance(value, enum.Enum):
        return f"{kind}.{value.name}"
    if isinstance(value, str):
        return repr(hidden.split(value) or str(value))
    if isinstance(value, SPELLED):
        return f"{kind} {hex(value)}" if is_huge(value) else f"{kind} {value!r}"
    return f"{kind} {_spelled_parts(value, hidden, depth + 1)}"


def _spelled_parts(value: Any, hidden: Secrets, depth: int) -> list[str]:
    """Return the parts of a container or a simple object as texts."""
    inner = functools.partial(spelled, hidden=hidden, depth=depth)
    if isinstance(value, (list, tuple)):
        return [inner(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return sorted(inner(part) for part in value)
    fields = value if isinstance(value, dict) else _fields(value)
    return sorted(f"{inner(key)}: {inner(part)}" for key, part in fields.items())


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a simple object."""
    if isinstance(value, DEFINITIONS) or callable(value):
        raise NotPlain
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    fields = getattr(value, "__dict__", None)
    if not fields:
        raise NotPlain
    return dict(fields)
