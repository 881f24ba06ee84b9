"""What is stored: frozen records, and their text form.

Only shapes live here. Who writes them and in what order is `nbckpt.runs.journal`'s, where
they lie is `nbckpt.store`'s.
"""

from __future__ import annotations

from nbckpt.records.base import SCHEMA_VERSION, Record, canonical, dumps, loads
from nbckpt.records.effects import Answer, EffectRecord, EffectState, Word
from nbckpt.records.loops import ItemError, LoopRecord, NextInput
from nbckpt.records.people import Advance, DecisionRecord, Note, Question, Unknown
from nbckpt.records.runs import (
    Displaced,
    Event,
    Head,
    Holder,
    Lease,
    Mark,
    Overlap,
    Placement,
    PlannedStep,
    PlanRecord,
    RunRecord,
    RunState,
)
from nbckpt.records.steps import (
    SEEDED_BY_STEP,
    UNSEEDED,
    Attempt,
    Contents,
    Evidence,
    Fingerprint,
    StepRecord,
    StepState,
    Stretch,
    Value,
    Worktree,
)

__all__ = [
    "SCHEMA_VERSION",
    "SEEDED_BY_STEP",
    "UNSEEDED",
    "Advance",
    "Answer",
    "Attempt",
    "Contents",
    "DecisionRecord",
    "Displaced",
    "EffectRecord",
    "EffectState",
    "Event",
    "Evidence",
    "Fingerprint",
    "Head",
    "Holder",
    "ItemError",
    "Lease",
    "LoopRecord",
    "Mark",
    "NextInput",
    "Note",
    "Overlap",
    "Placement",
    "PlanRecord",
    "PlannedStep",
    "Question",
    "Record",
    "RunRecord",
    "RunState",
    "StepRecord",
    "StepState",
    "Stretch",
    "Unknown",
    "Value",
    "Word",
    "Worktree",
    "canonical",
    "dumps",
    "loads",
]
