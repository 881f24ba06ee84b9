"""Which variables a step made or changed, and how they come back.

The whole namespace is compared, never only what the source mentions: a stream and its
buffers are equal exactly if a restore would give the same. Names whose objects overlap
are one component and travel together, so that aliases and views survive.
"""

from __future__ import annotations

import re
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import xxhash

from nbckpt.codecs import Encoded, Encoder, Refusal, SecretEncoder, Secrets, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbckpt.blobs import Manifest, PackReader, PackWriter

Namespace = dict[str, Any]
Names = frozenset[str]
INTERNAL = re.compile(r"_+(i+|\d+|i\d+|oh|ih|dh|sh|ii?i?)?|__\w+__|_exit_code")
ATOMS = (int, float, complex, bool, type(None), str, bytes)
ATOM_BYTES = 4096
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


@dataclass(slots=True)
class Part:
    """One name in a snapshot."""

    digest: str
    links: frozenset[Any] = frozenset()
    views: dict[int, set[int]] = field(default_factory=dict)
    encoded: Encoded | None = None
    """Only while the name differs from the snapshot before."""
    held: list[Any] = field(default_factory=list)
    """Only while links are compared: keeps their ids from being used again."""


@dataclass(slots=True)
class Snapshot:
    """The whole namespace at one moment."""

    parts: dict[str, Part]
    components: dict[Names, str]
    """Names that overlap → digest of all of them together."""
    shared: frozenset[int]
    """Arrays whose memory more than one array sees."""
    encoded: dict[Names, Encoded] = field(default_factory=dict)


@dataclass(slots=True)
class Changes:
    """What a step did to the namespace."""

    components: dict[Names, Encoded]
    deleted: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names that were made or changed."""
        return sorted(set().union(*self.components))

    @property
    def refusals(self) -> list[Refusal]:
        """What can't be kept."""
        return [
            refusal
            for encoded in self.components.values()
            for refusal in encoded.refusals
        ]


def take(
    values: Namespace, namespace: Namespace, before: Snapshot | None = None
) -> Snapshot:
    """Return a snapshot of the variables.

    Parameters
    ----------
    values : dict
        The user's variables.
    namespace : dict
        All names, which definitions are looked up in.
    before : Snapshot, optional
        Bytes are kept only of what differs from it.

    Returns
    -------
    Snapshot
        Holds no reference to a value that did not change.
    """
    shared = before.shared if before else frozenset()
    known = before.parts if before else {}
    parts = {n: _part(n, v, namespace, shared, known.get(n)) for n, v in values.items()}
    seen = _shared_memory(parts)
    if seen != shared:
        for name in [
            n for n, part in parts.items() if part.views.keys() & (seen ^ shared)
        ]:
            parts[name] = _part(name, values[name], namespace, seen, known.get(name))
    snapshot = Snapshot(parts, {}, seen)
    groups = _components(parts)
    for names in groups:
        _add_component(snapshot, names, values, namespace, before)
    return snapshot


def _part(
    name: str,
    value: Any,
    namespace: Namespace,
    shared: frozenset[int],
    before: Part | None,
) -> Part:
    """Return one name's part of a snapshot."""
    if _is_atom(value):
        return Part(
            xxhash.xxh3_128_hexdigest(
                f"{type(value).__name__} {value!r}".encode("utf-8", "surrogatepass")
            )
        )
    if isinstance(value, types.ModuleType):
        return Part(f"module {value.__name__}")
    encoded = Encoder(namespace, {name: value}, shared).encode()
    same = before is not None and before.digest == encoded.digest
    kept = None if same else encoded
    return Part(encoded.digest, encoded.links, encoded.views, kept, encoded.held)


def _is_atom(value: Any) -> bool:
    """Tell whether a value is small, constant and alone."""
    return type(value) in ATOMS and not (
        isinstance(value, (str, bytes)) and len(value) > ATOM_BYTES
    )


def _shared_memory(parts: dict[str, Part]) -> frozenset[int]:
    """Return the owners of memory that more than one array sees."""
    views: dict[int, set[int]] = {}
    for part in parts.values():
        for owner, arrays in part.views.items():
            views.setdefault(owner, set()).update(arrays)
    return frozenset(owner for owner, arrays in views.items() if len(arrays) > 1)


def _components(parts: dict[str, Part]) -> list[Names]:
    """Group the names whose objects overlap."""
    leader = {name: name for name in parts}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    first: dict[Any, str] = {}
    for name, part in parts.items():
        for link in part.links:
            other = first.setdefault(link, name)
            if other != name:
                leader[find(name)] = find(other)
    groups: dict[str, set[str]] = {}
    for name in parts:
        groups.setdefault(find(name), set()).add(name)
    return [frozenset(group) for group in groups.values()]


def _add_component(
    snapshot: Snapshot,
    names: Names,
    values: Namespace,
    namespace: Namespace,
    before: Snapshot | None,
) -> None:
    """Put a component into a snapshot, with its bytes if it differs from before."""
    ordered = sorted(names)
    part = snapshot.parts[ordered[0]]
    encoded, digest = part.encoded, part.digest
    if len(names) > 1:
        together = {name: values[name] for name in ordered}
        encoded = Encoder(namespace, together, snapshot.shared).encode()
        digest = encoded.digest
    snapshot.components[names] = digest
    if before is not None and before.components.get(names) != digest:
        if encoded is None:
            alone = {name: values[name] for name in ordered}
            encoded = Encoder(namespace, alone, snapshot.shared).encode()
        snapshot.encoded[names] = encoded
    for name in names:
        snapshot.parts[name].encoded, snapshot.parts[name].held = None, []


def changes(before: Snapshot, after: Snapshot) -> Changes:
    """Return what changed between two snapshots, the second taken against the first.

    Parameters
    ----------
    before, after : Snapshot
        Around a step's body.

    Returns
    -------
    Changes
        Components that are new or differ, and names that are gone.
    """
    gone = before.parts.keys() - after.parts.keys()
    return Changes(dict(after.encoded), tuple(sorted(gone)))


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
            decode(encoded.stream, [b.toreadonly() for b in encoded.buffers], namespace)
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
    buffers = zip(encoded.buffers, encoded.glances, strict=True)
    return {
        "buffers": [writer.add(buffer, marks) for buffer, marks in buffers],
        "stream": writer.add(encoded.stream.toreadonly()),
    }


def load_encoded(
    layout: dict[str, Any],
    manifest: Manifest,
    reader: PackReader,
    namespace: Namespace,
    restored: Namespace | None = None,
) -> Namespace:
    """Return the names in one stream of a pack."""
    buffers = [reader.blob(manifest, place) for place in layout["buffers"]]
    return decode(reader.blob(manifest, layout["stream"]), buffers, namespace, restored)


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
    waiting: list[dict[str, Any]] = list(manifest.layout["components"])  # type: ignore[call-overload]
    while waiting:
        later, failure = [], None
        for layout in waiting:
            try:
                values = load_encoded(layout, manifest, reader, namespace, found)
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
