"""The whole namespace at one moment, and what differs between two.

The whole namespace is compared, never only what the source mentions: a stream and its
buffers are equal exactly if a restore would give the same. Names whose objects overlap
are one component and travel together, so that aliases and views survive.
"""

from __future__ import annotations

import graphlib
import types
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import xxhash

from nbckpt.codecs import Encoded, Encoder, Refusal
from nbckpt.keys import is_huge

if TYPE_CHECKING:
    from collections.abc import Iterable

Namespace = dict[str, Any]
Names = frozenset[str]
ATOMS = (int, float, complex, bool, type(None), str, bytes)
ATOM_BYTES = 4096


@dataclass(slots=True)
class Part:
    """One name in a snapshot."""

    digest: str
    links: frozenset[Any] = frozenset()
    refers: frozenset[str] = frozenset()
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


def without(
    snapshot: Snapshot, names: Iterable[str], values: Namespace, namespace: Namespace
) -> Snapshot:
    """Return a snapshot as if names had not been there.

    Parameters
    ----------
    snapshot : Snapshot
        Before a step's body.
    names : iterable of str
        Names that the body binds: they are its own, also where the value is equal.
    values, namespace : dict
        As for `take`, of which it is the snapshot.

    Returns
    -------
    Snapshot
        What is taken against it holds these names as new.
    """
    left_out = set(names)
    parts = {n: part for n, part in snapshot.parts.items() if n not in left_out}
    kept = {g: d for g, d in snapshot.components.items() if not g & left_out}
    rests = [g - left_out for g in snapshot.components.keys() - kept.keys()]
    if any(len(rest) > 1 for rest in rests):
        # What still belongs together, and was not digested so, need not change.
        return take({name: values[name] for name in parts}, namespace)
    alone = {rest: parts[next(iter(rest))].digest for rest in rests if rest}
    return replace(snapshot, parts=parts, components=kept | alone)


def cleared(ground: Snapshot, bare: Snapshot, names: set[str]) -> Snapshot:
    """Return a snapshot as if some names had not been there, told only afterwards.

    Parameters
    ----------
    ground : Snapshot
        With all names that a body may bind.
    bare : Snapshot
        The same without them.
    names : set of str
        Those that it bound.

    Returns
    -------
    Snapshot
        What is taken against it holds these names as new.
    """
    parts = {n: part for n, part in ground.parts.items() if n not in names}
    kept = {g: d for g, d in ground.components.items() if not g & names}
    return replace(ground, parts=parts, components=bare.components | kept)


def sharing(snapshot: Snapshot, names: Iterable[str], own: set[str]) -> dict[str, str]:
    """Return which variables share objects with some.

    Parameters
    ----------
    snapshot : Snapshot
        Before a step's body.
    names : iterable of str
        Names that the body changes in place: so does it what shares objects with them.
    own : set of str
        Names that the body binds, and may have left in this kernel before.

    Returns
    -------
    dict
        The names of each group, as a part of a fingerprint.
    """
    changed = set(names)
    own = own - changed
    groups = [group - own for group in snapshot.components if group & changed]
    named = [sorted(name for name in group if "." not in name) for group in groups]
    return {", ".join(group): "shared" for group in named if len(group) > 1}


def digests(values: Namespace, namespace: Namespace) -> dict[str, str]:
    """Return the digest of each value alone, to tell within one process what changed.

    Parameters
    ----------
    values, namespace : dict
        As for `take`.

    Returns
    -------
    dict
        Name → digest.
    """
    none: frozenset[int] = frozenset()
    return {n: _part(n, v, namespace, none, None).digest for n, v in values.items()}


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
    return Part(
        encoded.digest,
        encoded.links,
        encoded.refers,
        encoded.views,
        kept,
        encoded.held,
    )


def _is_atom(value: Any) -> bool:
    """Tell whether a value is small, constant and alone."""
    is_long = isinstance(value, (str, bytes)) and len(value) > ATOM_BYTES
    return type(value) in ATOMS and not (is_long or is_huge(value))


def _shared_memory(parts: dict[str, Part]) -> frozenset[int]:
    """Return the owners of memory that more than one array sees."""
    views: dict[int, set[int]] = {}
    for part in parts.values():
        for owner, arrays in part.views.items():
            views.setdefault(owner, set()).update(arrays)
    return frozenset(owner for owner, arrays in views.items() if len(arrays) > 1)


def _components(parts: dict[str, Part]) -> list[Names]:
    """Group the names whose objects overlap, or can only come back together."""
    groups = Groups(parts)
    first: dict[Any, str] = {}
    for name, part in parts.items():
        for link in part.links:
            groups.join(name, first.setdefault(link, name))
    while circle := _circle(parts, groups):
        for name in circle[1:]:
            groups.join(circle[0], name)
    return groups.all()


def _circle(parts: dict[str, Part], groups: Groups) -> list[str]:
    """Return groups whose definitions refer to each other; empty if there are none.

    A class that lists its subclasses can't come back before they do, nor they before it.
    """
    refers: dict[str, set[str]] = {}
    for name, part in parts.items():
        others = {groups.find(other) for other in part.refers & parts.keys()}
        if others:
            group = groups.find(name)
            refers.setdefault(group, set()).update(others - {group})
    try:
        graphlib.TopologicalSorter(refers).prepare()
    except graphlib.CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


class Groups:
    """Names in disjoint groups that can be joined.

    Parameters
    ----------
    names : iterable of str
        Each one is a group of its own at first.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._leader = {name: name for name in names}

    def find(self, name: str) -> str:
        """Return the name that stands for a name's group."""
        while self._leader[name] != name:
            self._leader[name] = self._leader[self._leader[name]]
            name = self._leader[name]
        return name

    def join(self, one: str, other: str) -> None:
        """Make one group of two."""
        self._leader[self.find(one)] = self.find(other)

    def all(self) -> list[Names]:
        """Return the groups."""
        found: dict[str, set[str]] = {}
        for name in self._leader:
            found.setdefault(self.find(name), set()).add(name)
        return [frozenset(group) for group in found.values()]


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
