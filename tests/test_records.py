"""Records and their text: what goes in comes out, and nothing else is let in."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from nbckpt.records import (
    Attempt,
    Contents,
    Event,
    Evidence,
    Fingerprint,
    Holder,
    Lease,
    Mark,
    PlannedStep,
    PlanRecord,
    Record,
    RunRecord,
    RunState,
    StepRecord,
    StepState,
    Stretch,
    Value,
    canonical,
    dumps,
    loads,
)

HOLDER = Holder("host", "boot", "pid:[1]", 7, 1.5, "n0")
FINGERPRINT = Fingerprint(
    code="c",
    options="o",
    inputs={"x": "1"},
    sharing={"x, y": "shared"},
    modules={"m": "2"},
    files={"f.csv": ""},
    environment={"HOME": "h"},
    versions={"python": "3.11"},
    random={"numpy": "unseeded", "random": "d"},
    unknown="why",
)
CONTENTS = Contents(
    Stretch("p", 1, 2, "ab"),
    ("p", "q"),
    ("x", "y"),
    ("z",),
    {"x": Value("d", "", ("g",), ("numpy",))},
    99,
)
STEP = StepRecord(
    "r-1", "clean", 2, 3, 4, FINGERPRINT, Evidence({"a": "b"}, ("x > 0",), "note"),
    CONTENTS, 1.0, 2.0, 0.5, "x: socket",
)  # fmt: skip

RECORDS: list[Record] = [
    HOLDER,
    Lease(3, HOLDER, 4, 5.0, 6.0, released=True, why="skip", taken_at=7.0),
    PlannedStep(1, "a", "c", ("x",), ("r",), ("w",), ("mail",), "b"),
    PlanRecord((PlannedStep(1, "a", "c"), PlannedStep(2, "b", "d")), "notebook", 3.0),
    PlanRecord(),
    RunRecord("r-1", "nb.ipynb", "v2", RunState.FROZEN, 1.0, 1, "why"),
    FINGERPRINT,
    Fingerprint(),
    Evidence({"f": ""}, ("c",), "n"),
    Stretch("p", 0, 1, "d"),
    Value("d", "u", ("a", "b"), ("m",)),
    CONTENTS,
    Contents(),
    STEP,
    Attempt("r", "s", 1, 2, 3, StepState.RUNNING, 1.0, 5, 2.0, "boom", ("f",)),
    Mark(("c1", "c2"), "me"),
    Event(1.0, "done", "s", "r", 0.5, 2, {"steps": ["a"], "n": {"k": [1]}}),
]
NAMES = [f"{type(record).__name__}-{n}" for n, record in enumerate(RECORDS)]


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_record_comes_back_equal_from_its_bytes(record: Record) -> None:
    again = type(record).from_json(loads(dumps(record.to_json())))
    assert again == record
    assert type(again) is type(record)


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_record_is_plain_json(record: Record) -> None:
    assert json.loads(json.dumps(record.to_json()))


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_record_can_not_be_changed(record: Record) -> None:
    field = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, field, None)


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_unknown_key_is_an_error(record: Record) -> None:
    with pytest.raises(TypeError, match="surprise"):
        type(record).from_json({**record.to_json(), "surprise": 1})


@pytest.mark.parametrize(
    ("kind", "data"),
    [(StepRecord, {}), (Lease, {"token": 1}), (RunRecord, {}), (Stretch, {"pack": ""})],
)
def test_missing_key_is_an_error(kind: type[Record], data: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="missing"):
        kind.from_json(data)


def test_nested_records_tuples_and_enums_regain_their_types() -> None:
    again = StepRecord.from_json(loads(dumps(STEP.to_json())))
    assert type(again.contents.manifest) is Stretch
    assert type(again.contents.values["x"]) is Value
    assert type(again.contents.packs) is tuple
    assert type(again.evidence) is Evidence
    attempt = Attempt("r", "s", 1, 2, 3, StepState.FAILED, 1.0)
    state = Attempt.from_json(loads(dumps(attempt.to_json()))).state
    assert state is StepState.FAILED


def test_state_that_nobody_knows_is_an_error() -> None:
    data = {**RunRecord("r").to_json(), "state": "dancing"}
    with pytest.raises(ValueError, match="dancing"):
        RunRecord.from_json(data)


def test_equal_values_have_equal_bytes_whatever_the_order_of_keys() -> None:
    assert canonical({"b": 1, "a": {"d": 2, "c": 3}}) == canonical(
        {"a": {"c": 3, "d": 2}, "b": 1}
    )


def test_keys_of_a_dict_keep_their_order() -> None:
    assert list(loads(dumps({"0": None, "": None}))) == ["0", ""]


@pytest.mark.parametrize(
    "value", ["grün", "\ud800", "\x1f\0", "'\"\\", [1, None, True], 1e300, -0.0, {}]
)
def test_json_values_survive_as_bytes(value: object) -> None:
    assert loads(dumps({"v": value})) == {"v": value}


def test_bytes_are_compact_utf8() -> None:
    assert dumps({"k": ["ü", 1]}) == '{"k":["ü",1]}'.encode()


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"nonsense"])
def test_bytes_that_are_no_json_are_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        loads(data)


def test_seeded_streams_of_a_step_are_those_whose_state_was_set() -> None:
    assert STEP.seeded == {"random"}


def test_states_are_their_text() -> None:
    assert str(StepState.INTERRUPTED) == "interrupted"
    assert str(RunState.OPEN) == "open"
    assert StepState("stale") is StepState.STALE
