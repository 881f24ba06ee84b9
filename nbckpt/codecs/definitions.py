"""Functions and classes that the notebook defines.

A definition that stands in the namespace under its own name is referred to by that name
wherever it occurs, so that restored objects are instances of the class that the notebook
has now, and restored functions see the live globals. The definition itself is kept by
value only where it is what a step made or changed.
"""

from __future__ import annotations

import enum
import functools
import types
import typing
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cloudpickle import cloudpickle

if TYPE_CHECKING:
    from collections.abc import Iterator

Namespace = dict[str, Any]
SLOTS = (
    "__name__", "__qualname__", "__annotations__", "__kwdefaults__", "__defaults__",
    "__module__", "__doc__",
)  # fmt: skip
"""What a function has apart from its code, its closure and attributes of its own."""


@dataclass(slots=True)
class Target:
    """What decoded definitions go into.

    Attributes
    ----------
    namespace : dict
        The notebook's names.
    restored : dict
        Names that were decoded and are not bound yet; they come first.
    binds : frozenset of str
        Names that the step's source binds: a class statement makes a class anew.
    trial : bool
        Whether the decoded values are thrown away: nothing that lives is changed.
    """

    namespace: Namespace
    restored: Namespace = field(default_factory=dict)
    binds: frozenset[str] = frozenset()
    trial: bool = False
    bystanders: set[int] = field(default_factory=set)
    """Ids of living classes whose attributes stay as they are."""


_targets: list[Target] = []


@contextmanager
def restoring(target: Target) -> Iterator[None]:
    """Make a target the one that decoded definitions go into.

    Parameters
    ----------
    target : Target
        The notebook's names, and what of them is being restored.

    Yields
    ------
    None
    """
    _targets.append(target)
    try:
        yield
    finally:
        _targets.pop()


def live_namespace() -> Namespace:
    """Return the namespace that is being restored into; called while decoding."""
    return _targets[-1].namespace


def named(qualname: str) -> Any:
    """Return the definition that a namespace holds under a name.

    Parameters
    ----------
    qualname : str
        Dotted for nested classes.

    Returns
    -------
    object
        The live definition.

    Raises
    ------
    LookupError
        If the notebook does not define it any more.
    """
    found = _live(qualname)
    if found is None:
        raise LookupError(f"the notebook does not define {qualname} any more")
    return found


def _live(qualname: str) -> Any:
    """Return a definition that was restored, or else the notebook's."""
    target = _targets[-1]
    return resolve(target.restored, qualname) or resolve(target.namespace, qualname)


def resolve(namespace: Namespace, qualname: str) -> Any:
    """Return what a dotted name means in a namespace, or None.

    Parameters
    ----------
    namespace : dict
        The notebook's names.
    qualname : str
        Dotted for nested classes.

    Returns
    -------
    object or None
        The definition.
    """
    first, *rest = qualname.split(".")
    found = namespace.get(first)
    for part in rest:
        found = attribute_of(found, "__dict__", {}).get(part)
    return found


def attribute_of(value: Any, attribute: str, default: Any = None) -> Any:
    """Return an attribute of a value of the user's, whose class may answer anyhow.

    Parameters
    ----------
    value : object
        Any value.
    attribute : str
        A name.
    default : object, optional
        What counts where there is no such attribute.

    Returns
    -------
    object
        The default too where asking raises: ``__getattr__ = dict.__getitem__`` does.
    """
    try:
        return getattr(value, attribute, default)
    except Exception:
        return default


def is_notebook(definition: Any, namespace: Namespace) -> bool:
    """Tell whether the notebook made a function or class.

    Parameters
    ----------
    definition : object
        A function or class.
    namespace : dict
        The notebook's names.

    Returns
    -------
    bool
        By its globals for functions, by its module for classes.
    """
    if isinstance(definition, types.FunctionType):
        return definition.__globals__ is namespace
    return getattr(definition, "__module__", None) == namespace.get("__name__")


def is_named(definition: Any, namespace: Namespace) -> bool:
    """Tell whether a definition can be referred to by its name.

    A function with a closure has state of its own and is kept by value.

    Parameters
    ----------
    definition : object
        A function or class.
    namespace : dict
        The notebook's names.

    Returns
    -------
    bool
        Whether the namespace holds it under its own name.
    """
    if getattr(definition, "__closure__", None):
        return False
    name = getattr(definition, "__qualname__", "")
    return "<" not in name and resolve(namespace, name) is definition


def reduce_named(definition: Any) -> tuple[Any, ...]:
    """Return the reduction of a definition to its name."""
    return named, (definition.__qualname__,)


class _LiveNamespace:
    """Stands for the notebook's namespace in a stream."""

    def __reduce__(self) -> tuple[Any, ...]:
        return live_namespace, ()


def reduce_function(pickler: cloudpickle.Pickler, function: types.FunctionType) -> Any:
    """Return the reduction of a notebook function by value, bound to live globals.

    Parameters
    ----------
    pickler : cloudpickle.Pickler
        Holds the new arguments' maker.
    function : types.FunctionType
        The function.

    Returns
    -------
    tuple
        Code, defaults and closure travel; globals don't.
    """
    code, _, name, defaults, _ = pickler._function_getnewargs(function)
    # cloudpickle would look through all loaded modules for those that the function may
    # use: an accident of the moment, which is no part of it, and slow.
    slots: dict[str, Any] = {slot: getattr(function, slot) for slot in SLOTS}
    # Strings of their own: whether equal ones are one object differs between processes.
    slots |= {slot: "".join(slots[slot]) for slot in ("__name__", "__qualname__")}
    slots |= {"__globals__": {}, "_cloudpickle_submodules": []}
    # The cells themselves travel, so that functions which share one share it again.
    slots["__closure__"] = None
    state = {"".join(key): value for key, value in vars(function).items()}
    arguments = (code, _LiveNamespace(), name, defaults, function.__closure__)
    return (
        cloudpickle._make_function,
        arguments,
        (state, slots),
        None,
        None,
        cloudpickle._function_setstate,
    )


def reduce_cell(cell: types.CellType) -> tuple[Any, ...]:
    """Return the reduction of a closure's cell, filled after it exists: it may hold itself."""
    try:
        contents = cell.cell_contents
    except ValueError:
        return types.CellType, ()
    return types.CellType, (), (contents,), None, None, fill_cell


def fill_cell(cell: types.CellType, contents: tuple[Any]) -> None:
    """Fill a restored cell; called while decoding."""
    cell.cell_contents = contents[0]


def reduce_class(definition: type, *, is_kept: bool) -> Any:
    """Return the reduction of a notebook class by value.

    Parameters
    ----------
    definition : type
        The class.
    is_kept : bool
        Whether it is what a step made or changed; else it only occurs in a value, as the
        class that an older instance has.

    Returns
    -------
    tuple
        What `revive_class` takes.
    """
    reduced = cloudpickle._class_reduce(definition)
    if not isinstance(reduced, tuple):
        return reduced
    make, arguments, state, *_ = reduced
    # Pickling an instance leaves this on its class; it is no change of the class.
    state[0].pop("__slotnames__", None)
    is_plain = make is cloudpickle._make_skeleton_class
    if is_plain and "__slots__" in state[0] and not issubclass(definition, tuple):
        # Set later, they would make no slots; a typed tuple brings its own.
        arguments[3]["__slots__"] = state[0]["__slots__"]
    place = (definition.__qualname__ if is_kept else "", make, arguments)
    return revive_class, place, state, None, None, fill_class


def revive_class(qualname: str, make: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the living class that was kept, or make it anew; called while decoding.

    Parameters
    ----------
    qualname : str
        Name of the class; empty if it only occurs in a value.
    make : callable
        Makes an empty class.
    arguments : tuple
        What `make` takes; the last but one is the id by which a process knows the class.

    Returns
    -------
    type
        To be filled with the stored attributes. A class of the same name that the
        notebook has now takes them if the step only changed it, so that its instances
        stay instances; one that a class statement made is another class.
    """
    target, number = _targets[-1], arguments[-2]
    known = cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID.get(number)
    if known is not None and (target.trial or not qualname):
        target.bystanders.add(id(known))
        return known
    found = make(*arguments) if known is None else known
    if not qualname or qualname.partition(".")[0] in target.binds:
        return found
    return _adopted(_live(qualname), found, number)


def _adopted(live: Any, found: type, number: str) -> type:
    """Return the class that is there in place of a decoded one, if it can take its place."""
    if live is found or not isinstance(live, type) or not _is_same_shape(live, found):
        return found
    # From now on it is the one that other records of the same class mean.
    cloudpickle._DYNAMIC_CLASS_TRACKER_BY_ID[number] = live
    cloudpickle._DYNAMIC_CLASS_TRACKER_BY_CLASS[live] = number
    return live


def fill_class(definition: type, state: Any) -> None:
    """Give a class its stored attributes; called while decoding."""
    if id(definition) not in _targets[-1].bystanders:
        cloudpickle._class_setstate(definition, state)


def _is_same_shape(live: type, fresh: type) -> bool:
    """Tell whether a live class can take the attributes of a stored one."""
    if type(live) is not type(fresh) or live.__bases__ != fresh.__bases__:
        return False
    if isinstance(live, enum.EnumMeta):
        mine: Any = live
        ours = {member.name: member.value for member in mine}
        theirs: Any = fresh
        return ours == {member.name: member.value for member in theirs}
    return not hasattr(live, "__slots__")


def reduce_new_type(made: Any) -> tuple[Any, ...]:
    """Return the reduction of a `typing.NewType` by value."""
    return revive_new_type, (made.__qualname__, made.__module__, made.__supertype__)


def revive_new_type(qualname: str, module: str, supertype: Any) -> Any:
    """Return a `typing.NewType`; called while decoding."""
    make: Any = typing.NewType
    made = make(qualname, supertype)
    made.__module__ = module
    return made


def reduce_cached(cached: Any) -> tuple[Any, ...]:
    """Return the reduction of an `functools.lru_cache` function; its cache is dropped."""
    return recache, (cached.__wrapped__, cached.cache_parameters())


def recache(function: Any, parameters: dict[str, Any]) -> Any:
    """Return a function with an empty cache; called while decoding."""
    return functools.lru_cache(**parameters)(function)
