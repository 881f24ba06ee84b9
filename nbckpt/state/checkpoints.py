"""Checkpoints: what a completed step leaves, written before its record and read back."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nbckpt.blobs.chunks import ChunkIndex, Manifest
from nbckpt.blobs.packfile import PackReader, PackWriter
from nbckpt.codecs import Encoder, Target
from nbckpt.credentials import Secrets
from nbckpt.records import Contents, Stretch
from nbckpt.state import ambient, variables
from nbckpt.store.packs import Pack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nbckpt.outputs import Recording
    from nbckpt.state.snapshots import Changes
    from nbckpt.state.variables import Namespace
    from nbckpt.store import Store

RESULT_BYTES = 64 << 20
"""A cell's result above this size comes back as its picture only, not as ``Out``."""


@dataclass(slots=True)
class Work:
    """What a body did, ready to be written."""

    changes: Changes
    around: ambient.State
    """State around the variables that differs."""
    withheld: dict[str, str] = field(default_factory=dict)
    """Environment variables that an import has set; only digests are written."""
    outputs: Recording | None = None
    result: Any = variables.MISSING
    magics: list[tuple[str, str]] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)
    binds: frozenset[str] = frozenset()
    """Names that the source binds."""


@dataclass(slots=True)
class Restored:
    """What a checkpoint holds, decoded and not bound yet."""

    values: Namespace
    outputs: bytes
    around: ambient.State
    result: Any
    magics: list[tuple[str, str]]
    imports: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    """Keyed digests of the environment variables whose values are not stored."""


class Checkpoints:
    """Writes and reads the checkpoints of one run.

    Parameters
    ----------
    store : Store
        The user's own store.
    namespace : dict
        The notebook's names.
    """

    def __init__(self, store: Store, namespace: Namespace) -> None:
        self._store = store
        self._namespace = namespace
        self._index = ChunkIndex()
        self._indexed = False
        self._proven: set[type] = set()
        self._packs = store.folder / "packs"
        self._reader = PackReader(
            self._packs, lambda name: store.get_bytes(f"inline/{name}")
        )

    def refusals(self, work: Work) -> str:
        """Return why a step's work can't be kept whole; empty if it can.

        Parameters
        ----------
        work : Work
            What the body did.

        Returns
        -------
        str
            The path of each variable that can't be kept, and the reason.
        """
        found = [str(refusal) for refusal in work.changes.refusals]
        tested = variables.load_test(work.changes, self._namespace, self._proven)
        found += [str(refusal) for refusal in tested]
        return "; ".join(found[:3])

    def write(self, name: str, work: Work, hidden: Secrets) -> tuple[Contents, Pack]:
        """Write a step's values and outputs to a new pack and make it durable.

        Parameters
        ----------
        name : str
            The pack's name.
        work : Work
            What the body did; without refusals.
        hidden : Secrets
            What must not reach the disk.

        Returns
        -------
        tuple of Contents and Pack
            For the record, and for its transaction.

        Raises
        ------
        OSError
            If the disk is full or fails; nothing is left behind.
        """
        self._learn()
        writer = PackWriter(self._packs, name, self._index)
        try:
            layout = self._layout(work, writer, hidden)
            stretch, inline = writer.finish(layout)
        except BaseException:
            writer.abandon()
            raise
        packs = sorted({chunk.pack for chunk in writer.chunks} | {name})
        size = sum(chunk.length for chunk in writer.chunks)
        contents = Contents(
            stretch,
            tuple(packs),
            tuple(work.changes.names),
            work.changes.deleted,
            {},
            size,
        )
        return contents, Pack(name, inline)

    def _layout(
        self, work: Work, writer: PackWriter, hidden: Secrets
    ) -> dict[str, object]:
        """Add everything to the pack and return its layout."""
        outputs = work.outputs.data() if work.outputs is not None else b""
        outputs = hidden.hide_bytes(outputs)
        layout: dict[str, object] = {
            "components": variables.save(work.changes, writer),
            "outputs": writer.add(memoryview(outputs)),
            "magics": work.magics,
            "imports": work.imports,
            "binds": sorted(work.binds.intersection(work.changes.names)),
            "environment": self._keyed(work.withheld),
        }
        if work.around:
            encoded = Encoder(self._namespace, {"around": work.around}).encode()
            layout["around"] = variables.save_encoded(encoded, writer)
        layout |= self._result(work, writer)
        return layout

    def _keyed(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the keyed digests of environment variables."""
        keyed = self._store.secret.keyed_digest
        return {name: keyed(value) for name, value in values.items()}

    def missing(self, restored: Restored) -> str:
        """Return what loading did not bring back; empty if all is there.

        Parameters
        ----------
        restored : Restored
            Just loaded: the imports of the step were made again.

        Returns
        -------
        str
            The environment variables that are not as the step left them.
        """
        names = restored.environment.keys() & os.environ.keys()
        now = self._keyed({name: os.environ[name] for name in names})
        lost = [n for n, was in restored.environment.items() if now.get(n) != was]
        if not lost:
            return ""
        return (
            f"it set os.environ[{lost[0]!r}], whose value is not stored (it may be "
            "secret) and is another one here"
        )

    def _result(self, work: Work, writer: PackWriter) -> dict[str, object]:
        """Add the value that the cell showed as its result, if it can be kept."""
        if work.result is variables.MISSING:
            return {}
        for name in work.changes.names:
            if self._namespace.get(name, variables.MISSING) is work.result:
                return {"result_name": name}
        encoded = Encoder(self._namespace, {"_": work.result}).encode()
        if encoded.refusals or encoded.size > RESULT_BYTES:
            return {}
        return {"result": variables.save_encoded(encoded, writer)}

    def _learn(self) -> None:
        """Learn once which chunks the store holds already."""
        if self._indexed:
            return
        rows = [*self._store.scan("step/"), *self._store.scan("loop/")]
        for contents in [row["contents"] for _, row in rows if row["contents"]]:
            if contents["manifest"] is None:
                continue
            try:
                place = Stretch.from_json(contents["manifest"])
                manifest = self._reader.manifest(place)
            except Exception:  # noqa: S112 - a damaged pack only isn't reused
                continue
            self._index.learn(manifest.chunks)
        self._indexed = True

    def forget(self) -> None:
        """Forget which chunks the store holds; another process may have dropped some."""
        self._index.forget()
        self._indexed = False

    def load(self, contents: Contents) -> Restored:
        """Return what a checkpoint holds, decoded and not bound yet.

        Parameters
        ----------
        contents : Contents
            From an authentic record.

        Returns
        -------
        Restored
            Values share no memory with the store's files.

        Raises
        ------
        StoreDamaged
            If bytes are not those written.
        Exception
            Whatever a type raises whose library changed since.
        """
        if contents.manifest is None:
            return Restored({}, b"", {}, variables.MISSING, [], [])
        manifest = self._reader.manifest(contents.manifest)
        self._index.learn(manifest.chunks)
        layout: dict[str, Any] = manifest.layout
        ambient.import_all(layout["imports"])
        values = variables.load(manifest, self._reader, self._namespace)
        hidden = Secrets.of_environment()
        outputs = bytes(self._reader.blob(manifest, layout["outputs"]))
        return Restored(
            values=values,
            outputs=hidden.reveal_bytes(outputs),
            around=self._encoded(manifest, "around").get("around", {}),
            result=self._restored_result(manifest, values),
            magics=[(name, line) for name, line in layout["magics"]],
            imports=layout["imports"],
            environment=layout["environment"],
        )

    def load_again(self, contents: Contents, name: str) -> Any:
        """Return one value once more, to compare it with the one that lives.

        Parameters
        ----------
        contents : Contents
            From an authentic record.
        name : str
            One of its names.

        Returns
        -------
        object
            A value that shares nothing with the living one.

        Raises
        ------
        LookupError
            If classes that live are part of it: they can't be told apart.
        Exception
            Whatever `load` raises.
        """
        if contents.manifest is None:
            raise LookupError(name)
        manifest = self._reader.manifest(contents.manifest)
        return variables.load_again(manifest, self._reader, self._namespace, name)

    def _encoded(
        self, manifest: Manifest, key: str, restored: Namespace | None = None
    ) -> Namespace:
        """Return the names in one stream of a layout, if it is there."""
        layout: Any = manifest.layout.get(key)
        if layout is None:
            return {}
        target = Target(self._namespace, restored or {})
        return variables.load_encoded(layout, manifest, self._reader, target)

    def _restored_result(self, manifest: Manifest, values: Namespace) -> Any:
        """Return what the cell had shown, maybe of a class that the step made."""
        name: Any = manifest.layout.get("result_name")
        if name is not None:
            return values[name]
        return self._encoded(manifest, "result", values).get("_", variables.MISSING)

    def drop(self, packs: list[str]) -> None:
        """Remove packs that no record needs; what is mapped from them stays valid."""
        for name in packs:
            (self._packs / f"{name}.pack").unlink(missing_ok=True)
        self._index.drop(packs)

    @contextmanager
    def committing(self, packs: list[str]) -> Iterator[None]:
        """Guard the write of a record: if it fails, nothing may build on its packs.

        Parameters
        ----------
        packs : list of str
            Packs that are on disk and that only this record names.

        Yields
        ------
        None
            What is raised inside goes up.
        """
        try:
            yield
        except BaseException as error:
            # An interrupt can come with the record written: the packs stay.
            if isinstance(error, Exception):
                self.drop(packs)
            # Another process may have dropped what the record rests on.
            self.forget()
            raise


def pack_name(run_id: str, token: int, order: int) -> str:
    """Return a new pack's name, which tells whose it is while no record names it."""
    return f"{run_id}.{token}.{order}.{secrets.token_hex(4)}"
