"""Values to bytes and back: one stream for all that belongs together, buffers apart.

The only package that pickles. A stream is decoded only after its record's seal and its
digests were verified.
"""

from __future__ import annotations

import copyreg
import functools
import gc
import io
import itertools
import pickle
import sys
import types
import typing
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cloudpickle
import xxhash

from nbckpt.blobs.packfile import glances
from nbckpt.codecs import arrays, definitions, handles, singletons, trace, windows
from nbckpt.codecs.figures import steady

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.codecs.definitions import Namespace

IN_BAND_BYTES = 4096
"""Buffers below this size stay in the stream."""
LRU = type(functools.lru_cache(int))

# Objects that are never changed in place: sharing them ties nothing together.
CONSTANT = (
    str, bytes, int, float, complex, type(None), type, types.ModuleType, types.FunctionType,
    types.BuiltinFunctionType, types.CodeType, types.MethodType, tuple, frozenset, range,
    slice, property, types.MappingProxyType,
)  # fmt: skip
CONSTANT_MODULES = {
    "datetime", "decimal", "fractions", "uuid", "pathlib", "re", "zoneinfo", "logging", "enum",
}  # fmt: skip

CONSTANT_NAMES = {"dtype", "generic", "Timestamp", "ExtensionDtype", "Enum", "Index"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value that can't be kept."""

    path: str
    """The variable and the way to the value, for example ``cfg['db'].conn``."""
    kind: str
    reason: str

    def __str__(self) -> str:
        """Return path, type and reason."""
        return f"{self.path}: {self.kind} ({self.reason})"


@dataclass(slots=True)
class Encoded:
    """Some names as bytes."""

    stream: memoryview
    buffers: list[memoryview]
    digest: str
    """Differs if a restore would give anything else; for use within one process."""
    rows: list[int]
    """Bytes of one row of each buffer; 0: it has none."""
    glances: list[list[bytes]]
    links: frozenset[Any]
    """What ties the names to others: ids of changeable objects, shared memory."""
    refers: frozenset[str]
    """Names whose definitions it takes from the notebook."""
    views: dict[int, set[int]]
    """Owner of memory → arrays that see it."""
    refusals: list[Refusal]
    files: set[str]
    types: set[type]
    held: list[Any] = field(default_factory=list)
    """Keeps the memory of buffers, and the ids in `links`, from being used again."""

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.stream.nbytes + sum(buffer.nbytes for buffer in self.buffers)


class Encoder(cloudpickle.Pickler):  # type: ignore[misc]
    """Encodes a dict of names; what can't be kept is noted, not raised.

    Parameters
    ----------
    namespace : dict
        The notebook's names, which definitions are looked up in.
    values : dict
        The names to encode.
    shared : frozenset of int
        Ids of arrays whose memory more than one array sees.
    """

    def __init__(
        self,
        namespace: Namespace,
        values: Namespace,
        shared: frozenset[int] = frozenset(),
    ) -> None:
        self._target = io.BytesIO()
        super().__init__(self._target, protocol=5, buffer_callback=self._buffer)
        self._namespace = namespace
        self._values = values
        self._roots = {
            name
            for name, value in values.items()
            if definitions.attribute_of(value, "__qualname__") == name
        }
        self.shared = shared
        self.owned: set[int] = set()
        self.links: set[Any] = set()
        self.files: set[str] = set()
        self.storages: dict[Any, Any] = {}
        self.types: set[type] = set()
        self._refers: set[str] = set()
        self._buffers: list[memoryview] = []
        self._rows: list[int] = []
        self._kept: list[Any] = []
        self._met: list[Any] = []
        self._views: dict[int, set[int]] = {}
        self._singletons: set[int] = set()
        self._refused: list[tuple[Any, str]] = []

    def encode(self) -> Encoded:
        """Return the names as bytes.

        Returns
        -------
        Encoded
            With refusals if something can't be kept.
        """
        self._note_objects()
        with collection_paused():
            try:
                self.dump(self._values)
            except (
                pickle.PicklingError,
                RecursionError,
                ValueError,
                TypeError,
            ) as error:
                self._refused.append((self._values, str(error)))
            links = self._find_links()
        stream = self._target.getbuffer()
        marks = list(map(glances, self._buffers, self._rows))
        refusals = [self._locate(value, reason) for value, reason in self._refused]
        encoded = Encoded(
            stream=stream,
            buffers=self._buffers,
            rows=self._rows,
            digest=_digest(stream, marks),
            glances=marks,
            links=links,
            refers=frozenset(self._refers),
            views=self._views,
            refusals=refusals,
            files=self.files,
            types=self.types,
            held=self._kept,
        )
        # The pickler holds itself: what the user deletes would live on until collected.
        self._note_objects()
        self.clear_memo()
        self.__dict__.clear()
        return encoded

    def _note_objects(self) -> None:
        """Let the pickler put each object that it meets into a list.

        It asks for a persistent id of each, and a list's ``append`` answers None: there
        is none. No Python code runs, and a copy of the memo costs three times as much.
        """
        self.persistent_id = self._met.append

    def _buffer(self, buffer: pickle.PickleBuffer) -> bool:
        """Take a buffer out of the stream; return whether it stays in."""
        raw = buffer.raw()
        if raw.nbytes < IN_BAND_BYTES:
            return True
        self._buffers.append(raw)
        self._rows.append(_row_bytes(memoryview(buffer)))
        return False

    def reducer_override(self, obj: Any) -> Any:
        """Return the reduction of a value that is no plain container."""
        kind: Any = type(obj)
        if isinstance(obj, type):
            return self._reduce_class(obj)
        if kind is types.FunctionType:
            return self._reduce_function(obj)
        if kind is types.CellType:
            return definitions.reduce_cell(obj)
        self.types.add(kind)
        found = _array_reducer(kind)
        if found is not None:
            return found(self, obj)
        return self._reduce_other(obj)

    def _reduce_class(self, definition: type) -> Any:
        """Reduce a class: by name, or by value where it is what is being kept."""
        if not definitions.is_notebook(definition, self._namespace):
            return super().reducer_override(definition)
        is_named = definitions.is_named(definition, self._namespace)
        if is_named and not self._is_root(definition):
            return self._by_name(definition)
        self.links.add(id(definition))
        return definitions.reduce_class(definition, is_kept=is_named)

    def _reduce_function(self, function: types.FunctionType) -> Any:
        """Reduce a function: by name, or by value where it is what is being kept."""
        if not definitions.is_notebook(function, self._namespace):
            return super().reducer_override(function)
        if self._is_kept(function):
            self.links.add(id(function))
            return definitions.reduce_function(self, function)
        return self._by_name(function)

    def _by_name(self, definition: Any) -> Any:
        """Reduce a definition to the name under which the notebook has it."""
        self._refers.add(definition.__qualname__.partition(".")[0])
        return definitions.reduce_named(definition)

    def _is_kept(self, definition: Any) -> bool:
        """Tell whether a definition travels by value: it is kept here, or has no name."""
        is_root = self._is_root(definition)
        return is_root or not definitions.is_named(definition, self._namespace)

    def _is_root(self, definition: Any) -> bool:
        """Tell whether a definition stands under one of the names that are kept here."""
        return definition.__qualname__.partition(".")[0] in self._roots

    def _reduce_other(self, obj: Any) -> Any:
        """Reduce a shared object, a handle, a cached function, or any other object."""
        kind: Any = type(obj)
        shared = singletons.reduction(obj)
        if shared is not None:
            return shared
        found = _handle_reducer(kind)
        if found is not None:
            reduced = found(obj)
            return self.refuse(obj, reduced) if isinstance(reduced, str) else reduced
        if kind is LRU and definitions.is_notebook(obj.__wrapped__, self._namespace):
            return definitions.reduce_cached(obj)
        return self.by_default(obj)

    def by_default(self, obj: Any) -> Any:
        """Return a value's own reduction, or note that it has none.

        Parameters
        ----------
        obj : object
            The value.

        Returns
        -------
        object
            What a pickler's ``reducer_override`` may return.
        """
        own = self.dispatch_table.get(type(obj))
        try:
            reduced = own(obj) if own else obj.__reduce_ex__(5)
        except Exception as error:
            return self.refuse(obj, str(error) or type(error).__name__)
        if isinstance(reduced, str):
            return self._by_global_name(obj, reduced)
        return steady(obj, reduced)

    def _by_global_name(self, obj: Any, name: str) -> Any:
        """Reduce a value that its module holds under a name."""
        self._singletons.add(id(obj))
        module = getattr(obj, "__module__", None) or _which_module(obj, name)
        if module == "__main__":
            if isinstance(obj, typing.NewType) and self._is_kept(obj):
                return definitions.reduce_new_type(obj)
            if definitions.resolve(self._namespace, name) is obj:
                return definitions.named, (name,)
            return self.refuse(obj, f"the notebook does not hold it under {name!r}")
        return name

    def refuse(self, obj: Any, reason: str) -> Any:
        """Note that a value can't be kept, and put a placeholder in its place.

        Parameters
        ----------
        obj : object
            The value.
        reason : str
            Why, and what to do instead.

        Returns
        -------
        tuple
            The placeholder's reduction; it makes changes of what is around visible.
        """
        self._refused.append((obj, reason))
        self.links.add(id(obj))
        return _placeholder, (id(obj),)

    def keep(self, obj: Any) -> Any:
        """Keep an object alive as long as its bytes are needed, and return it."""
        self._kept.append(obj)
        return obj

    def note_view(self, owner: Any, array: Any) -> None:
        """Note that an array sees an owner's memory."""
        self._views.setdefault(id(owner), set()).add(id(array))
        self.keep(owner)
        if id(owner) in self.shared:
            self.links.add(id(owner))

    def _find_links(self) -> frozenset[Any]:
        """Return the ids of the changeable objects that were met."""
        met, self._met = self._met, []
        # As long as these live, no id among them can be used again for another object.
        self._kept.append(met)
        kinds: list[Any] = list(map(type, met))
        changeable = {
            k for k in set(kinds) if not issubclass(k, CONSTANT) and _is_changeable(k)
        }
        found = itertools.compress(met, map(changeable.__contains__, kinds))
        links = self.links.union(map(id, found)) - singletons.of_classes(set(kinds))
        return frozenset(links - self._singletons - self.owned - {id(self._values)})

    def _locate(self, value: Any, reason: str) -> Refusal:
        """Return a refusal with the way to the value."""
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        return Refusal(trace.path_to(self._values, value), name, reason)


@functools.cache
def _array_reducer(kind: Any) -> Any:
    """Return the reducer of an array type, looked up once a type."""
    return arrays.reducer(kind)


@functools.cache
def _handle_reducer(kind: Any) -> Any:
    """Return the reducer of a handle type, looked up once a type."""
    return windows.reducer(kind) or handles.reducer(kind)


@functools.cache
def _is_changeable(kind: Any) -> bool:
    """Tell whether objects of a type can be changed in place."""
    module = kind.__module__.partition(".")[0]
    if module in CONSTANT_MODULES or kind in copyreg.dispatch_table:
        return False
    return not CONSTANT_NAMES & {base.__name__ for base in kind.__mro__}


def _which_module(obj: Any, name: str) -> str:
    """Return the module that holds an object under a name."""
    modules = list(sys.modules.items())
    return next((n for n, m in modules if getattr(m, name, None) is obj), "__main__")


def _placeholder(identity: int) -> Any:
    """Refuse to decode what was never encoded."""
    raise ValueError(f"value {identity} was not kept")


def _row_bytes(array: memoryview) -> int:
    """Return the bytes of what lies together under an array's first index."""
    if array.ndim < 2 or not array.c_contiguous or not array.nbytes:  # noqa: PLR2004
        return 0
    return array.nbytes // len(array)


def _digest(stream: memoryview, marks: list[list[bytes]]) -> str:
    """Return the digest of a stream and its buffers' chunks."""
    total = xxhash.xxh3_128(stream)
    for chunk in (mark for buffer in marks for mark in (*buffer, b"|")):
        total.update(chunk)
    return total.hexdigest()


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection: it would look at every new object again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
