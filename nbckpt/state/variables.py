"""The user's variables: which they are, and how they are kept and come back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import Encoded, Refusal, SecretEncoder, Target, decode
from nbckpt.state.snapshots import Changes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.blobs.chunks import Manifest
    from nbckpt.blobs.packfile import PackReader, PackWriter
    from nbckpt.credentials import Secrets

Namespace = dict[str, Any]
INTERNAL = re.compile(r"_+(i+|\d+|i\d+|oh|ih|dh|sh|ii?i?)?|__\w+__|_exit_code")
TRUSTED_LIBRARIES = {
    "builtins", "numpy", "pandas", "pyarrow", "polars", "scipy", "sklearn", "torch",
    "datetime", "decimal", "fractions", "uuid", "collections", "pathlib", "types",
}  # fmt: skip
MISSING = object()


def user_names(namespace: Namespace, hidden: Iterable[str]) -> Namespace:
    """Return the variables of the user.

    Parameters
    ----------
    namespace : dict
        All names of the shell.
    hidden : iterable of str
        Names that the shell made.

    Returns
    -------
    dict
        Without the shell's own history and helpers.
    """
    left_out = set(hidden)
    return {
        name: value
        for name, value in namespace.items()
        if name not in left_out and not INTERNAL.fullmatch(name)
    }


def load_test(
    changed: Changes, namespace: Namespace, proven: set[type]
) -> list[Refusal]:
    """Return what can be encoded but not decoded.

    A type that nobody has seen coming back is decoded once, here, while its values are
    still at hand.

    Parameters
    ----------
    changed : Changes
        What is about to be saved.
    namespace : dict
        All names.
    proven : set of type
        Types that came back before; grows.

    Returns
    -------
    list of Refusal
        One for each component that does not come back.
    """
    found = []
    for names, encoded in changed.components.items():
        unseen = {t for t in encoded.types if not _is_proven(t, proven)}
        if not unseen or encoded.refusals:
            continue
        try:
            decode(
                encoded.stream,
                [b.toreadonly() for b in encoded.buffers],
                Target(namespace, trial=True),
            )
        except Exception as error:
            kinds = ", ".join(sorted(kind.__qualname__ for kind in unseen))
            reason = f"it does not come back: {type(error).__name__}: {error}"
            found.append(Refusal(", ".join(sorted(names)), kinds, reason))
        else:
            proven |= unseen
    return found


def _is_proven(kind: type, proven: set[type]) -> bool:
    """Tell whether values of a type are known to come back."""
    return kind in proven or kind.__module__.partition(".")[0] in TRUSTED_LIBRARIES


def hide(
    changed: Changes, values: Namespace, namespace: Namespace, hidden: Secrets
) -> Changes:
    """Return changes whose texts hold references in place of secrets.

    Parameters
    ----------
    changed : Changes
        What is about to be saved.
    values : dict
        The user's variables.
    namespace : dict
        All names.
    hidden : Secrets
        What must not reach the disk.

    Returns
    -------
    Changes
        With a refusal where a secret can't be taken out, as in an array.
    """
    found = dict(changed.components)
    for names, encoded in changed.components.items():
        if not _holds(encoded, hidden):
            continue
        together = {name: values[name] for name in sorted(names)}
        found[names] = SecretEncoder(namespace, together, hidden).encode()
        if _holds(found[names], hidden):
            reason = "it holds a credential of the environment; --drop it"
            found[names].refusals.append(
                Refusal(", ".join(sorted(names)), "secret", reason)
            )
    return Changes(found, changed.deleted)


def _holds(encoded: Encoded, hidden: Secrets) -> bool:
    """Tell whether a stream or one of its buffers holds a secret."""
    return any(hidden.are_in(part) for part in (encoded.stream, *encoded.buffers))


def save(changed: Changes, writer: PackWriter) -> list[dict[str, Any]]:
    """Add changed components to a pack.

    Parameters
    ----------
    changed : Changes
        Without refusals.
    writer : PackWriter
        The checkpoint's pack.

    Returns
    -------
    list of dict
        For the manifest's layout.
    """
    return [
        {"names": sorted(names), **save_encoded(encoded, writer)}
        for names, encoded in changed.components.items()
    ]


def save_encoded(encoded: Encoded, writer: PackWriter) -> dict[str, Any]:
    """Add one stream and its buffers to a pack."""
    buffers = zip(encoded.buffers, encoded.glances, encoded.rows, strict=True)
    return {
        "buffers": [writer.add(*buffer) for buffer in buffers],
        "stream": writer.add(encoded.stream.toreadonly()),
    }


def load_encoded(
    layout: dict[str, Any],
    manifest: Manifest,
    reader: PackReader,
    target: Target,
) -> Namespace:
    """Return the names in one stream of a pack."""
    buffers = [reader.blob(manifest, place) for place in layout["buffers"]]
    return decode(reader.blob(manifest, layout["stream"]), buffers, target)


def load(manifest: Manifest, reader: PackReader, namespace: Namespace) -> Namespace:
    """Return the names that a checkpoint holds, without binding them.

    Parameters
    ----------
    manifest : Manifest
        The checkpoint's table.
    reader : PackReader
        Reads its chunks.
    namespace : dict
        All names. Definitions among the restored names come before what refers to them.

    Returns
    -------
    dict
        Name → value.

    Raises
    ------
    StoreDamaged
        If bytes are not those written.
    Exception
        Whatever a type raises whose library changed since.
    """
    found: Namespace = {}
    binds: Any = manifest.layout.get("binds", ())
    target = Target(namespace, found, frozenset(binds))
    waiting: list[dict[str, Any]] = list(manifest.layout["components"])  # type: ignore[call-overload]
    while waiting:
        later, failure = [], None
        for layout in waiting:
            try:
                values = load_encoded(layout, manifest, reader, target)
            except LookupError as error:
                # It refers to a definition of the same step that is not there yet.
                later.append(layout)
                failure = error
                continue
            found.update(values)
        if failure is not None and len(later) == len(waiting):
            raise failure
        waiting = later
    return found


def load_again(
    manifest: Manifest, reader: PackReader, namespace: Namespace, name: str
) -> Any:
    """Return one value of a checkpoint once more, and change nothing that lives.

    Parameters
    ----------
    manifest : Manifest
        The checkpoint's table.
    reader : PackReader
        Reads its chunks.
    namespace : dict
        All names.
    name : str
        One of the checkpoint's.

    Returns
    -------
    object
        Only for comparison.

    Raises
    ------
    LookupError
        If a class that lives is part of it.
    Exception
        Whatever `load` raises.
    """
    components: Any = manifest.layout["components"]
    layout = next(found for found in components if name in found["names"])
    target = Target(namespace, trial=True)
    values = load_encoded(layout, manifest, reader, target)
    if target.bystanders:
        raise LookupError(f"a class is part of {name}")
    return values[name]
