"""What a store knows of a run, as predictions need it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nbckpt.answers import resolving
from nbckpt.records import Attempt, Event, Mark, PlanRecord, StepRecord
from nbckpt.runs.history import readable
from nbckpt.verbs.standing.waiting import store_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbckpt.runs.history import Reader

NAMES_TOLD = 3


@dataclass(slots=True)
class Known:
    """What a store knows of a run, read once."""

    records: dict[str, StepRecord] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, Attempt] = field(default_factory=dict)
    marks: dict[str, Mark] = field(default_factory=dict)
    plan: PlanRecord = field(default_factory=PlanRecord)
    confirmed: dict[str, float] = field(default_factory=dict)
    """Step → when it was last completed or verified."""
    has_pack: Callable[[str], bool] = lambda _: True
    environment: Callable[[str], str] = lambda _: ""
    """Variable → keyed digest of its value here; ``unset`` without one."""
    formers: dict[str, str] = field(default_factory=dict)
    """Code → why a step that has it stops: under another name it made effects."""


def known_of(reader: Reader, run_id: str, names: Sequence[str]) -> Known:
    """Read what a store knows of a run.

    Parameters
    ----------
    reader : Reader
        The store.
    run_id : str
        The run; empty if there is none yet.
    names : sequence of str
        Its steps.

    Returns
    -------
    Known
        Empty without a run.
    """
    if not run_id:
        return Known()
    known = Known(
        attempts=reader.attempts(run_id),
        marks={name: reader.mark(run_id, name) for name in names},
        plan=reader.plan(run_id),
        has_pack=lambda name: _has_pack(reader, name),
        environment=lambda name: _environment_digest(reader, name),
    )
    known.formers = _formers(reader, run_id, known, names)
    for name in names:
        found, why = readable(reader.store, f"step/{run_id}/{name}")
        if found is not None:
            known.records[name] = StepRecord.from_json(found)
        elif why:
            known.damaged[name] = why
    for _, event in reader.history(run_id):
        _confirm(known, event)
    return known


def _confirm(known: Known, event: Event) -> None:
    """Note when a step was last found to be as its record says."""
    if event.kind in {"completed", "skipped"}:
        known.confirmed[event.step] = event.at


def _has_pack(reader: Reader, name: str) -> bool:
    """Tell whether a pack is there, as a file or in the records."""
    path = reader.store.folder / "packs" / f"{name}.pack"
    return path.exists() or reader.store.get_bytes(f"inline/{name}") is not None


def _environment_digest(reader: Reader, name: str) -> str:
    """Return the digest of an environment variable's value in this process."""
    text = os.environ.get(name)
    return "unset" if text is None else reader.store.secret.keyed_digest(text)


def _formers(
    reader: Reader, run_id: str, known: Known, names: Sequence[str]
) -> dict[str, str]:
    """Return what steps that the notebook has no more made, by their code."""
    gone, found = known.attempts.keys() - names, {}
    store = store_named(reader, reader.run(run_id))
    codes = {step.name: step.code for step in known.plan.steps}
    for step in sorted(gone if known.plan.source == "notebook" else ()):
        effects = [e for e in reader.effects(run_id, step) if e.is_in_doubt]
        record, _ = readable(reader.store, f"step/{run_id}/{step}")
        code = record["fingerprint"]["code"] if record else codes.get(step, "")
        if effects and code:
            told = ", ".join(effect.name for effect in effects[:NAMES_TOLD])
            more = " and more" if len(effects) > NAMES_TOLD else ""
            found[code] = (
                f"step {step}, which the notebook has no more, made its effects: {told}"
                f"{more}; name it {step} again, or let each count: "
                f"{resolving(run_id, effects[0].key, store, '--done')}"
            )
    return found
