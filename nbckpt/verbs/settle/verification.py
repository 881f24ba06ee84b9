"""``nbckpt verify``: all evidence of a run is looked at again; nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from nbckpt.blobs.packfile import PackReader
from nbckpt.errors import StoreDamaged
from nbckpt.inputs import proofs
from nbckpt.inputs.proofs import Paths, Writers
from nbckpt.verbs.finding.opening import step_names
from nbckpt.verbs.forms.pages import Page, Part, Table, Tree, listed, size
from nbckpt.verbs.prepare.planning import notebook_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from nbckpt.records import RunRecord, StepRecord
    from nbckpt.runs.history import Reader

WAITS = "needs the kernel"


class CheckLine(TypedDict):
    """One completion check."""

    check: str
    state: str
    """``true``, what is wrong, or ``needs the kernel``."""


class VerifiedStep(TypedDict):
    """What the evidence of a step is worth now."""

    step: str
    ok: bool
    files: int
    """Files whose content was compared."""
    findings: list[str]
    """What is not as the record says."""
    checks: list[CheckLine]
    bytes: int
    """Bytes of values and outputs that were read back."""


class Verification(TypedDict):
    """What ``nbckpt verify --json`` prints."""

    run: str
    ok: bool
    folder: str
    """Folder that the files were sought in."""
    files: int
    bytes: int
    steps: list[VerifiedStep]


def verify(
    reader: Reader,
    run: RunRecord,
    namespace: dict[str, Any] | None = None,
    follow: Callable[[Sequence[StepRecord]], Iterable[StepRecord]] = iter,
) -> Verification:
    """Look at all evidence of a run again.

    Parameters
    ----------
    reader : Reader
        The store.
    run : RunRecord
        The run.
    namespace : dict, optional
        The notebook's names; with them the checks are evaluated, if the store is the
        user's own.
    follow : callable, optional
        Yields the steps' records, as `tracked` does, which tells how far it is.

    Returns
    -------
    Verification
        JSON values.
    """
    records = reader.steps(run.run_id)
    order = step_names(reader, run.run_id)
    paths = Paths(_folder(reader, run))
    writers = Writers(paths, order, records, reader.attempts(run.run_id))
    # A check of a foreign store is code of somebody else.
    names = namespace if reader.store.trusted else None
    steps = []
    for record in follow([records[name] for name in order if name in records]):
        findings = writers.verify(record)
        steps.append(_verified(reader, record, findings, names))
    return Verification(
        run=run.run_id,
        ok=all(step["ok"] for step in steps),
        folder=str(paths.base),
        files=sum(step["files"] for step in steps),
        bytes=sum(step["bytes"] for step in steps),
        steps=steps,
    )


def _folder(reader: Reader, run: RunRecord) -> Path:
    """Return the folder that a run's files are told from."""
    notebook = notebook_of(reader, run)
    if notebook is not None:
        return notebook.absolute().parent
    return reader.store.folder.absolute().parent


def _verified(
    reader: Reader,
    record: StepRecord,
    findings: list[str],
    names: dict[str, Any] | None,
) -> VerifiedStep:
    """Look at the rest of a step's evidence."""
    count, damage = read_back(reader, record)
    checks = [_check(text, names) for text in record.evidence.checks]
    failed = [c["state"] for c in checks if c["state"] not in {"true", WAITS}]
    findings = [*findings, *damage, *failed]
    return VerifiedStep(
        step=record.step,
        ok=not findings,
        files=len(record.evidence.files),
        findings=findings,
        checks=checks,
        bytes=count,
    )


def _check(text: str, names: dict[str, Any] | None) -> CheckLine:
    """Evaluate a check where there is a kernel."""
    if names is None:
        return CheckLine(check=text, state=WAITS)
    failed = proofs.evaluate_checks([text], names)
    return CheckLine(check=text, state=failed[0] if failed else "true")


def read_back(reader: Reader, record: StepRecord) -> tuple[int, list[str]]:
    """Read every byte that a record names, and compare it with its digest.

    Nothing is decoded: no value comes to life.

    Parameters
    ----------
    reader : Reader
        The store.
    record : StepRecord
        The step.

    Returns
    -------
    tuple of int and list of str
        Bytes that were read, and what is wrong.
    """
    place = record.contents.manifest
    if place is None:
        return 0, []
    packs = PackReader(
        reader.store.folder / "packs",
        lambda name: reader.store.get_bytes(f"inline/{name}"),
    )
    count = place.length
    try:
        manifest = packs.manifest(place)
        for number, chunk in enumerate(manifest.chunks):
            packs.blob(manifest, [number, 1, chunk.length, 1])
            count += chunk.length
    except StoreDamaged as error:
        return count, [error.what]
    return count, []


def verify_page(data: Verification) -> Page:
    """Return a verification for people.

    Parameters
    ----------
    data : Verification
        From `verify`.

    Returns
    -------
    Page
        One line for each step.
    """
    rows = [
        (
            step["step"],
            "ok" if step["ok"] else "not ok",
            str(step["files"]),
            size(step["bytes"]),
            listed(sorted({check["state"] for check in step["checks"]}), 3),
            str(len(step["findings"]) or "-"),
        )
        for step in data["steps"]
    ]
    bad = [Tree(s["step"], s["findings"]) for s in data["steps"] if not s["ok"]]
    names = listed([tree.text for tree in bad], 12)
    result = f"not ok: {names}" if bad else "all of it is as recorded"
    head = ("step", "evidence", "files", "values", "checks", "findings")
    files = "1 file" if data["files"] == 1 else f"{data['files']} files"
    seen = f"{files} and {size(data['bytes'])} looked at"
    page: list[Part] = [
        f"run {data['run']}: {seen}, {result}",
        f"folder {data['folder']}",
        "",
        Table(head, rows) if rows else "no step is completed yet",
    ]
    if bad:
        page += ["", Tree("what is not as recorded", bad)]
    return page
