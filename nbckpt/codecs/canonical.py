"""Digests of values that are equal in every process: what decisions go by.

A stream of `nbckpt.codecs.encoder` shows sharing and the accidents of one process (string
identity, order of sets, tracker ids). Here only the value counts: sets are ordered,
definitions count by their code, arrays by type, shape and content.
"""

from __future__ import annotations

import io
import pickle
import sys
import types
from typing import TYPE_CHECKING, Any

import cloudpickle
import xxhash

from nbckpt.codecs import handles, singletons
from nbckpt.codecs.code import code_digest, global_names
from nbckpt.codecs.contents import Described, described, reducer
from nbckpt.codecs.definitions import Namespace, is_notebook
from nbckpt.codecs.encoder import LRU, collection_paused
from nbckpt.codecs.figures import ADDRESSES, steady

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT_BYTES = 256 << 20
"""Above this a stream without a memo is given up: shared parts multiply in it."""
SIMPLE = {str, bytes, int, float, bool, type(None), complex}
HIDDEN = {
    "__dict__", "__weakref__", "__doc__", "__slotnames__", "__firstlineno__", "__module__",
    "__static_attributes__", "_abc_impl", "__parameters__", "__annotate__", "__annotate_func__",
    "__annotations_cache__",
}  # fmt: skip

Classes = dict[int, tuple[type, Any, "Canon"]]
"""Id of a class → the class, which so keeps its id; its reduction; what that rests on."""


class TooLarge(Exception):
    """A stream passed its limit."""


class _Hash(io.RawIOBase):
    """A file that hashes what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.total = xxhash.xxh3_128()
        self._size = 0

    def write(self, data: Any) -> int:
        """Hash some bytes."""
        self.total.update(data)
        size = memoryview(data).nbytes
        self._size += size
        if self._size > LIMIT_BYTES:
            raise TooLarge
        return size


class Canon(cloudpickle.Pickler):  # type: ignore[misc]
    """Digests one value.

    Parameters
    ----------
    namespace : dict
        The notebook's names.
    memo : bool
        Whether to remember what was met; needed for values that hold themselves.
    classes : dict, optional
        As of `Canonical`.

    Attributes
    ----------
    reached : set of str
        Global names that functions and classes inside the value use.
    modules : set of str
        Modules that functions, classes and types inside the value come from.
    unknown : str
        Type of a part whose value can't be told; empty if there is none.
    """

    def __init__(
        self,
        namespace: Namespace,
        *,
        memo: bool = False,
        classes: Classes | None = None,
    ) -> None:
        self._hash = _Hash()
        super().__init__(self._hash, protocol=5, buffer_callback=self._buffer)
        self.fast = not memo
        self._namespace = namespace
        self._classes: Classes = {} if classes is None else classes
        self.reached: set[str] = set()
        self.modules: set[str] = set()
        self.unknown = ""
        self._open: set[int] = set()

    def digest(self, value: Any) -> str:
        """Return the digest of a value."""
        with collection_paused():
            self.dump(value)
        return str(self._hash.total.hexdigest())

    def _buffer(self, buffer: pickle.PickleBuffer) -> bool:
        """Hash a buffer."""
        self._hash.total.update(buffer.raw())
        return False

    def persistent_id(self, obj: Any) -> Any:
        """Return the ordered form of a set; None for everything else."""
        kind = type(obj)
        if kind is set or kind is frozenset:
            return (kind.__name__, self._ordered(obj))
        return None

    def _ordered(self, items: Iterable[Any]) -> list[Any]:
        """Return the members of a set in an order that hashing has no part in."""
        members = list(items)
        if len({type(item) for item in members}) == 1 and type(members[0]) in {
            str,
            int,
            bytes,
        }:
            return sorted(members)
        return sorted(self._sub(item) for item in members)

    def _sub(self, value: Any) -> str:
        """Return the digest of a part of its own."""
        inner = Canon(self._namespace, classes=self._classes)
        inner._open = self._open
        found = inner.digest(value)
        self._take(inner)
        return found

    def _take(self, inner: Canon) -> None:
        """Take over what a part rests on."""
        self.reached |= inner.reached
        self.modules |= inner.modules
        self.unknown = self.unknown or inner.unknown

    def reducer_override(self, obj: Any) -> Any:
        """Return the canonical reduction of a value that is no plain container."""
        kind: Any = type(obj)
        if obj is Described:
            return NotImplemented
        if isinstance(obj, type):
            return self._class(obj)
        if kind is types.FunctionType:
            return self._function(obj)
        if kind is types.ModuleType:
            self.modules.add(obj.__name__)
            return described("module", obj.__name__)
        if kind is LRU:
            return described("cached", obj.__wrapped__)
        self.modules.add(kind.__module__)
        found = reducer(kind)
        return found(obj) if found else self._other(obj)

    def _class(self, definition: type) -> Any:
        """Reduce a class to its name, or to its definition if the notebook made it."""
        name = definition.__qualname__
        if not is_notebook(definition, self._namespace):
            self.modules.add(definition.__module__)
            return described("class", definition.__module__, name)
        if id(definition) in self._open:
            return described("class", name)
        if self._open:
            return self._walk(definition)
        known = self._classes.get(id(definition))
        if known is None:
            inner = Canon(self._namespace, classes=self._classes)
            known = (definition, inner._walk(definition), inner)
            self._classes[id(definition)] = known
        self._take(known[2])
        return known[1]

    def _walk(self, definition: type) -> Any:
        """Reduce a class of the notebook to its definition."""
        self._open.add(id(definition))
        try:
            parts = [
                (key, self._sub(_plain(value)))
                for key, value in sorted(vars(definition).items())
                if key not in HIDDEN
            ]
            bases = [
                self._sub(base) for base in (*definition.__bases__, type(definition))
            ]
        finally:
            self._open.discard(id(definition))
        return described("class", definition.__qualname__, bases, parts)

    def _function(self, function: types.FunctionType) -> Any:
        """Reduce a function to its name, or to its code if no module keeps that."""
        name = function.__qualname__
        if self._has_module(function) and "<" not in name:
            # None of what ``functools.wraps`` has put around a method of a C type.
            self.modules.add(function.__module__ or "builtins")
            return described("function", function.__module__, name)
        if id(function) in self._open:
            return described("function", name)
        self._open.add(id(function))
        try:
            cells = [self._cell(cell) for cell in function.__closure__ or ()]
            rest = (function.__defaults__, function.__kwdefaults__, function.__dict__)
            state = [self._sub(part) for part in rest]
            state += self._surroundings(function)
        finally:
            self._open.discard(id(function))
        return described("function", name, code_digest(function.__code__), cells, state)

    def _has_module(self, function: types.FunctionType) -> bool:
        """Tell whether a function is a module's, not the notebook's or what ``%run`` made."""
        around = function.__globals__
        module = sys.modules.get(str(around.get("__name__")))
        is_module = getattr(module, "__dict__", None) is around
        return is_module and around is not self._namespace

    def _surroundings(self, function: types.FunctionType) -> list[str]:
        """Take note of the notebook's names that a function uses; digest all others."""
        around, used = function.__globals__, global_names(function.__code__)
        if around is self._namespace:
            self.reached |= used
        if around is self._namespace or self._has_module(function):
            return []
        names = sorted(used & around.keys())
        return [self._sub((name, around[name])) for name in names]

    def _cell(self, cell: types.CellType) -> str:
        """Return the digest of what a closure holds."""
        try:
            return self._sub(cell.cell_contents)
        except ValueError:
            return "empty"

    def _other(self, obj: Any) -> Any:
        """Reduce a handle or any other object."""
        kind = type(obj)
        shared = singletons.reduction(obj)
        if shared is not None:
            return described("shared", *shared[1])
        handle = handles.reducer(kind)
        if handle is not None:
            reduced = handle(obj)
            return self._unknown(kind) if isinstance(reduced, str) else reduced
        own = self.dispatch_table.get(kind)
        try:
            reduced = own(obj) if own else obj.__reduce_ex__(5)
        except Exception:
            return self._unknown(kind)
        if isinstance(reduced, str):
            return described("global", kind.__module__, reduced)
        return steady(obj, reduced, ADDRESSES)

    def _unknown(self, kind: type) -> Any:
        """Note that a part's value can't be told."""
        self.unknown = self.unknown or f"{kind.__module__}.{kind.__qualname__}"
        return described("unknown", self.unknown)


def _plain(value: Any) -> Any:
    """Return what a descriptor wraps, so that it counts by its code."""
    if isinstance(value, (staticmethod, classmethod)):
        return (type(value).__name__, value.__func__)
    if isinstance(value, property):
        return ("property", value.fget, value.fset, value.fdel)
    if isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
        return type(value).__name__
    return value


class Canonical:
    """The digest of a value, and what the value rests on.

    Parameters
    ----------
    value : object
        Any value.
    namespace : dict
        The notebook's names.
    classes : dict, optional
        Remembers the notebook's classes over many values: each counts as it was when it
        was met first, whatever becomes of it meanwhile.
    """

    def __init__(
        self, value: Any, namespace: Namespace, classes: Classes | None = None
    ) -> None:
        canon = Canon(namespace, classes=classes)
        try:
            self.digest = canon.digest(value)
        except (ValueError, RecursionError, pickle.PicklingError, TooLarge):
            canon = Canon(namespace, memo=True, classes=classes)
            self.digest = self._with_memo(canon, value)
        self.unknown = canon.unknown
        self.reached = frozenset(canon.reached)
        self.modules = frozenset(canon.modules - {"builtins"})

    @staticmethod
    def _with_memo(canon: Canon, value: Any) -> str:
        """Digest a value that holds itself."""
        try:
            return canon.digest(value)
        except Exception as error:
            canon.unknown = canon.unknown or f"{type(value).__name__} ({error})"
            return "unknown"
