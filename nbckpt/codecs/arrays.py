"""Arrays and frames: bytes out of band, views of one memory as views, no copies.

Each reducer is looked up by the name of a type, so that no library is imported for it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import windows

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbckpt.codecs.encoder import Encoder

ARROW_ITEMS = 1024
"""Object arrays of strings from this length on travel as Arrow."""


def reducer(kind: type) -> Callable[[Encoder, Any], Any] | None:
    """Return the reducer of an array type.

    Parameters
    ----------
    kind : type
        Type of a value.

    Returns
    -------
    callable or None
        Takes the encoder and the value; None if the type is no array.
    """
    for base in kind.__mro__:
        found = _BY_NAME.get(f"{base.__module__.partition('.')[0]}.{base.__name__}")
        if found is not None:
            return found if base is kind or base.__name__ in _INHERITED else None
    return None


def root(array: Any) -> Any:
    """Return the array that owns the memory of a view."""
    import numpy as np

    while True:
        # What as_strided made stands on a holder of no type of its own.
        below = (
            getattr(array.base, "base", None) if _is_dummy(array.base) else array.base
        )
        if not isinstance(below, np.ndarray):
            return array
        array = below


def _is_dummy(base: Any) -> bool:
    """Tell whether an array's base is what ``numpy.lib.stride_tricks`` puts there."""
    return type(base).__name__ == "DummyArray"


def _reduce_array(encoder: Encoder, array: Any) -> Any:
    """Reduce a numpy array; a view of memory that others see too stays a view."""
    owner = root(array)
    if id(array) not in encoder.owned:
        encoder.note_view(owner, array)
        if owner is not array and _is_solid(owner) and _is_view(encoder, owner, array):
            return _reduce_view(owner, array)
    if (elsewhere := _elsewhere(encoder, owner, array)) is not None:
        return elsewhere
    if array.dtype.hasobject:
        return _reduce_objects(array)
    if not _is_solid(array):
        array = encoder.keep(array.copy(order="C"))
    return array.__reduce_ex__(5)


def _elsewhere(encoder: Encoder, owner: Any, array: Any) -> Any:
    """Reduce an array on memory that something else than an array holds; None for others."""
    if (memory := windows.owner(owner)) is not None:
        return _reduce_on(memory, array)
    if "torch" not in sys.modules or id(array) in encoder.owned or owner is not array:
        return None
    if not array.nbytes or not array.flags.c_contiguous:
        return None
    key = ("storage", array.__array_interface__["data"][0])
    encoder.links.add(key)
    first = encoder.storages.setdefault(key, array)
    return None if first is array else _reduce_view(first, array)


def _reduce_on(memory: Any, array: Any) -> Any:
    """Reduce an array on the memory of a bytearray or such to its place in it."""
    import numpy as np

    _, (_, *place) = _reduce_view(np.frombuffer(memory, np.uint8), array)
    return revive_on, (memory, *place)


def revive_on(memory: Any, place: tuple[Any, ...], writeable: bool) -> Any:
    """Return an array on the memory of another object; called while decoding."""
    import numpy as np

    return revive_view(np.frombuffer(memory, np.uint8), place, writeable)


def _is_view(encoder: Encoder, owner: Any, array: Any) -> bool:
    """Tell whether others see a view's memory too, or it shows more than there is."""
    return id(owner) in encoder.shared or array.nbytes > owner.nbytes


def _is_solid(array: Any) -> bool:
    """Tell whether an array has no gaps: a view's offset in it can be told."""
    return bool(array.flags.c_contiguous or array.flags.f_contiguous)


def _reduce_view(owner: Any, array: Any) -> Any:
    """Reduce a view to its owner and its place in it."""
    start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    place = (start, array.shape, array.strides, array.dtype)
    return revive_view, (owner, place, array.flags.writeable)


def revive_view(owner: Any, place: tuple[Any, ...], writeable: bool) -> Any:
    """Return a view of an array's memory; called while decoding."""
    import numpy as np

    start, shape, strides, dtype = place
    flat = owner.reshape(-1, order="A")
    if dtype.hasobject:
        rest = flat[start // flat.itemsize :]
        view = np.lib.stride_tricks.as_strided(rest, shape, strides)
    else:
        view = np.ndarray(
            shape, dtype, buffer=flat.view(np.uint8), offset=start, strides=strides
        )
    if not writeable:
        view.flags.writeable = False
    return view


def _reduce_objects(array: Any) -> Any:
    """Reduce an array of objects; one of strings alone travels as Arrow."""
    pyarrow, pandas = sys.modules.get("pyarrow"), sys.modules.get("pandas")
    long = (
        array.size > ARROW_ITEMS and array.dtype == object and array.flags.c_contiguous
    )
    if long and pyarrow and pandas and _is_text(pandas, array):
        strings = pyarrow.array(array.ravel(), type=pyarrow.large_string())
        return revive_strings, (strings, array.shape)
    return array.__reduce__()


def _is_text(pandas: Any, array: Any) -> bool:
    """Tell whether an array of objects holds strings alone."""
    return bool(pandas.api.types.infer_dtype(array.ravel(), skipna=False) == "string")


def revive_strings(strings: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of str objects; called while decoding."""
    return strings.to_numpy(zero_copy_only=False).reshape(shape)


def _reduce_memmap(encoder: Encoder, array: Any) -> Any:
    """Reduce a mapped file to its path; its bytes are the file's, which is evidence."""
    if array.filename is None or type(array.base).__name__ != "mmap":
        return encoder.refuse(array, "a part of a mapped file")
    encoder.files.add(str(array.filename))
    mode = "r+" if array.mode == "w+" else array.mode
    if hasattr(array, "flush"):
        array.flush()
    place = (str(array.filename), array.dtype, mode, array.offset, array.shape)
    return revive_memmap, place


def revive_memmap(
    path: str, dtype: Any, mode: Any, offset: int, shape: tuple[int, ...]
) -> Any:
    """Map a file again; called while decoding."""
    import numpy as np

    return np.memmap(path, dtype, mode, offset, shape)


def _own_blocks(encoder: Encoder, frame: Any) -> Any:
    """Mark a pandas object's arrays as its own.

    Under copy-on-write a column that shares memory with its frame is no alias: restored
    as one, a change of the column would reach the frame.
    """
    for block in getattr(getattr(frame, "_mgr", None), "blocks", ()):
        _own(encoder, block.values)
    for name in ("_data", "_ndarray", "_codes"):
        if name in getattr(frame, "__dict__", {}) or name == "_ndarray":
            _own(encoder, getattr(frame, name, None))
    return encoder.by_default(frame)


def _own(encoder: Encoder, values: Any) -> None:
    """Mark one array, or the array inside an extension array."""
    inner = getattr(values, "_ndarray", values)
    encoder.owned.add(id(inner))
    encoder.keep(inner)


def _reduce_polars(_: Encoder, frame: Any) -> Any:
    """Reduce a polars frame to Arrow, which shares its memory."""
    import polars as pl

    table = frame.to_arrow(compat_level=pl.CompatLevel.newest())
    return revive_polars, (table, type(frame).__name__, getattr(frame, "name", None))


def revive_polars(table: Any, kind: str, name: str | None) -> Any:
    """Return a polars frame or series; called while decoding."""
    import polars as pl

    found: Any = pl.from_arrow(table)
    return found.alias(name) if kind == "Series" and name is not None else found


def _reduce_tensor(encoder: Encoder, tensor: Any) -> Any:
    """Reduce a tensor to its storage; tensors of one storage share it again."""
    if not tensor.is_leaf:
        return encoder.refuse(
            tensor, "a tensor inside a gradient graph; keep x.detach() instead"
        )
    plain = tensor.device.type == "cpu" and str(tensor.layout) == "torch.strided"
    if not plain or tensor.is_quantized or tensor.__dict__:
        return encoder.by_default(tensor)
    place = (tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride()))
    gradient = (tensor.requires_grad, tensor.grad)
    return revive_tensor, (_storage(encoder, tensor), tensor.dtype, place, gradient)


def _storage(encoder: Encoder, tensor: Any) -> Any:
    """Return a storage's bytes as one array, the same for each tensor on it."""
    import torch

    storage = tensor.untyped_storage()
    key = ("storage", storage.data_ptr())
    first = encoder.storages.get(key)
    if first is None or first.nbytes < storage.nbytes():
        encoder.keep(storage)
        whole = torch.empty(0, dtype=torch.uint8).set_(
            storage, 0, (storage.nbytes(),), (1,)
        )
        array = encoder.keep(whole.numpy())
        encoder.owned.add(id(array))
        encoder.storages[key] = array
        if storage.nbytes():
            encoder.links.add(key)
    return encoder.storages[key]


def revive_tensor(
    memory: Any, dtype: Any, place: tuple[Any, ...], gradient: tuple[bool, Any]
) -> Any:
    """Return a tensor over restored memory; called while decoding."""
    import torch

    storage = torch.from_numpy(memory).untyped_storage()
    tensor = torch.empty(0, dtype=dtype).set_(storage, *place)
    tensor.requires_grad_(gradient[0])
    tensor.grad = gradient[1]
    return tensor


_BY_NAME: dict[str, Callable[[Encoder, Any], Any]] = {
    "numpy.ndarray": _reduce_array,
    "numpy.memmap": _reduce_memmap,
    "pandas.NDFrame": _own_blocks,
    "pandas.Index": _own_blocks,
    "pandas.ExtensionArray": _own_blocks,
    "polars.DataFrame": _reduce_polars,
    "polars.Series": _reduce_polars,
    "torch.Tensor": _reduce_tensor,
}
_INHERITED = {"NDFrame", "Index", "ExtensionArray", "memmap"}
