"""Arrays and frames by content: type, shape and values, whatever their layout."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import xxhash

if TYPE_CHECKING:
    from collections.abc import Callable


class Described:
    """Stands for a value in a canonical stream; never decoded."""

    __slots__ = ()


def described(*parts: Any) -> tuple[Any, ...]:
    """Return a reduction that is nothing but its parts."""
    return Described, (), parts


def _array(array: Any) -> Any:
    """Reduce an array to type, shape and content."""
    import numpy as np

    head = (
        type(array).__name__,
        array.dtype.descr if array.dtype.names else array.dtype.str,
    )
    if array.dtype.hasobject:
        return described("array", *head, array.shape, array.ravel().tolist())
    solid: Any = (
        np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else b""
    )
    return described("array", *head, array.shape, xxhash.xxh3_128_hexdigest(solid))


def _frame(frame: Any) -> Any:
    """Reduce a frame to its columns, so that the layout of its blocks is no matter."""
    columns = [(str(column.dtype), column.array) for _, column in frame.items()]
    return described(
        "frame", type(frame).__name__, frame.columns, frame.index, columns, frame.attrs
    )


def _series(series: Any) -> Any:
    """Reduce a series to index, name and values."""
    return described(
        "series", str(series.dtype), series.name, series.index, series.array
    )


def _numpy_extension(array: Any) -> Any:
    """Reduce pandas' wrapper of a numpy array."""
    return described("values", array.to_numpy())


def _arrow_extension(array: Any) -> Any:
    """Reduce pandas' wrapper of an Arrow array to its values."""
    combined = array.__arrow_array__()
    if hasattr(combined, "combine_chunks"):
        combined = combined.combine_chunks()
    return described("arrow", str(combined.type), _arrow_bytes(combined))


def _arrow_bytes(array: Any) -> Any:
    """Return the digest of an Arrow array without what lies outside its values."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    chunks = getattr(array, "chunks", [array])
    for chunk in chunks:
        batch = pa.record_batch([chunk], names=["x"])
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    return xxhash.xxh3_128_hexdigest(sink.getvalue())


def _polars(frame: Any) -> Any:
    """Reduce a polars frame or series to Arrow."""
    kind, name = type(frame).__name__, getattr(frame, "name", None)
    table = frame.to_arrow()
    columns = table.itercolumns() if kind == "DataFrame" else [table]
    names = table.column_names if kind == "DataFrame" else [name]
    return described(
        "polars", kind, list(names), [_arrow_bytes(column) for column in columns]
    )


def _tensor(tensor: Any) -> Any:
    """Reduce a tensor to type, shape and content."""
    plain = tensor.detach().cpu().contiguous()
    content = (
        plain.view(-1).numpy()
        if plain.dtype.is_floating_point or plain.numel()
        else b""
    )
    head = (
        str(tensor.dtype),
        tuple(tensor.shape),
        tensor.requires_grad,
        str(tensor.device),
    )
    return described("tensor", *head, content)


_BY_NAME: dict[str, Callable[[Any], Any]] = {
    "numpy.ndarray": _array,
    "numpy.memmap": _array,
    "pandas.DataFrame": _frame,
    "pandas.Series": _series,
    "pandas.NumpyExtensionArray": _numpy_extension,
    "pandas.ArrowExtensionArray": _arrow_extension,
    "pandas.ArrowStringArray": _arrow_extension,
    "polars.DataFrame": _polars,
    "polars.Series": _polars,
    "torch.Tensor": _tensor,
}


@functools.cache
def reducer(kind: Any) -> Callable[[Any], Any] | None:
    """Return the canonical reducer of a type; of its own name only."""
    return _BY_NAME.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}")
