"""The decision: skip only where everything says so, and every reason by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nbckpt.records import Contents, Evidence, Fingerprint, StepRecord, StepState
from nbckpt.resume import PARTS, Run, Situation, Skip, Stop, decide, differences

FULL = Fingerprint(
    code="c",
    options="o",
    inputs={"x": "1"},
    sharing={"x, y": "shared"},
    modules={"m": "1"},
    files={"f": "1"},
    folders={"d": ("a", "b")},
    globs={"*.csv": ("a.csv",)},
    environment={"E": "1"},
    versions={"numpy": "1"},
    random={"numpy": "1"},
)
RECORD = StepRecord(
    "r-1", "s", 1, 1, 1, FULL, Evidence(), Contents(), 1.0, 2.0, 1.0
)  # fmt: skip
DONE = Situation(RECORD, FULL)
UNFINISHED = [StepState.RUNNING, StepState.INTERRUPTED, StepState.FAILED]


def with_record(**changes: Any) -> Situation:
    return replace(DONE, record=replace(RECORD, **changes))


def reason(situation: Situation) -> str:
    decision = decide(situation)
    assert isinstance(decision, Run), decision
    return decision.reason


def test_step_is_skipped_if_nothing_differs() -> None:
    assert decide(DONE) == Skip("verified")


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        (replace(DONE, always=True), "it is marked --always"),
        (replace(DONE, record=None), "it has no record yet"),
        (replace(DONE, rerun="by me"), "asked for: by me"),
        (with_record(runs_again="x: socket"), "it can't be kept: x: socket"),
        (replace(DONE, max_age=10.0, age=10.1), "it is older than --max-age"),
        (replace(DONE, findings=("file 'a' is missing",)), "file 'a' is missing"),
        (replace(DONE, now=replace(FULL, code="d")), "its code changed"),
        (replace(DONE, now=replace(FULL, options="p")), "its --version changed"),
        (replace(DONE, now=replace(FULL, unknown="can't tell")), "can't tell"),
        (with_record(fingerprint=replace(FULL, unknown="hm")), "hm"),
        (
            replace(DONE, record=None, damaged="the record is damaged"),
            "the record is damaged",
        ),
        (
            replace(DONE, record=None, last_attempt=StepState.FAILED),
            "it failed before",
        ),
        (
            replace(DONE, record=None, last_attempt=StepState.RUNNING),
            "it was interrupted before",
        ),
        (
            replace(DONE, record=None, last_attempt=StepState.INTERRUPTED),
            "it was interrupted before",
        ),
        (
            replace(DONE, record=None, last_attempt=StepState.COMPLETED),
            "it has no record yet",
        ),
    ],
)
def test_body_runs_and_the_reason_is_told(situation: Situation, expected: str) -> None:
    assert reason(situation) == expected


@pytest.mark.parametrize(
    "situation",
    [
        replace(DONE, accepted=("c", "d")),
        replace(DONE, now=replace(FULL, code="d"), accepted=("d",)),
        replace(DONE, max_age=10.0, age=10.0),
        replace(DONE, max_age=0.0, age=1e9),
        replace(DONE, last_attempt=StepState.COMPLETED),
        replace(DONE, last_attempt=StepState.FAILED),
        replace(DONE, last_attempt=StepState.RUNNING),
        replace(DONE, stop_on_redo=True, last_attempt=StepState.INTERRUPTED),
        replace(DONE, stop_on_redo=True),
        replace(DONE, damaged="of no matter with a record"),
    ],
)
def test_verified_step_stays_skipped(situation: Situation) -> None:
    assert decide(situation) == Skip()


@pytest.mark.parametrize(("part", "label"), PARTS)
@pytest.mark.parametrize(
    ("now", "told"),
    [
        ({}, "gone"),
        ({"k": "2"}, "changed"),
        ({"k": "1", "l": "1"}, "new"),
        ({"l": "1"}, "gone"),
    ],
)
def test_every_part_of_the_fingerprint_counts(
    part: str, label: str, now: dict[str, str], told: str
) -> None:
    fields: dict[str, Any] = {part: {"k": "1"}}
    recorded = replace(FULL, **fields)
    situation = Situation(
        replace(RECORD, fingerprint=recorded), replace(FULL, **{**fields, part: now})
    )
    found = reason(situation)
    assert label in found
    assert "version of" in label or told in found


def test_change_of_a_version_says_from_what_to_what() -> None:
    now = replace(FULL, versions={"numpy": "2", "pandas": "3"})
    assert differences(FULL, now) == [
        "version of numpy changed (1 → 2)",
        "version of pandas changed (none → 3)",
    ]


def test_differences_are_sorted_and_name_each_part() -> None:
    now = replace(FULL, code="d", inputs={"a": "1", "x": "2"}, files={})
    assert differences(FULL, now) == [
        "its code changed",
        "input 'a' is new",
        "input 'x' changed",
        "file 'f' is gone",
    ]


def test_file_that_is_gone_or_came_is_called_so() -> None:
    """A file that is not there has an empty digest, and is no changed one."""
    there, gone = Fingerprint(files={"f": "1"}), Fingerprint(files={"f": ""})
    assert differences(there, gone) == ["file 'f' is gone"]
    assert differences(gone, there) == ["file 'f' is new"]


def test_equal_fingerprints_do_not_differ() -> None:
    assert differences(FULL, replace(FULL)) == []
    assert differences(Fingerprint(), Fingerprint()) == []


def test_code_is_accepted_only_if_it_is_the_one_that_was_looked_at() -> None:
    now = replace(FULL, code="e")
    assert differences(FULL, now, ("d",)) == ["its code changed"]
    assert differences(FULL, now, ("d", "e")) == []


def test_accepting_code_does_not_accept_inputs() -> None:
    now = replace(FULL, code="d", inputs={"x": "2"})
    assert differences(FULL, now, ("d",)) == ["input 'x' changed"]


def test_an_unknown_part_never_matches_not_even_itself() -> None:
    unknown = replace(FULL, unknown="socket")
    assert differences(unknown, unknown) == ["socket", "socket"]


def test_reason_names_three_changes_at_most() -> None:
    now = replace(FULL, inputs=dict.fromkeys("abcdefg", "2"))
    assert reason(replace(DONE, now=now)).count(";") == 2


def test_fingerprint_comes_before_findings_in_the_reason() -> None:
    situation = replace(DONE, now=replace(FULL, code="d"), findings=("file gone",))
    assert reason(situation) == "its code changed; file gone"


@pytest.mark.parametrize("state", UNFINISHED)
def test_stop_on_redo_stops_where_an_attempt_was_not_completed(
    state: StepState,
) -> None:
    for record in (None, replace(RECORD, fingerprint=Fingerprint())):
        decision = decide(
            replace(DONE, record=record, last_attempt=state, stop_on_redo=True)
        )
        assert isinstance(decision, Stop)
        assert str(state) in decision.reason
        assert "%nbckpt rerun" in decision.remedy


@pytest.mark.parametrize("state", [None, StepState.COMPLETED, StepState.VERIFIED])
def test_stop_on_redo_lets_a_first_attempt_run(state: StepState | None) -> None:
    situation = replace(DONE, record=None, last_attempt=state, stop_on_redo=True)
    assert isinstance(decide(situation), Run)


@pytest.mark.parametrize("state", UNFINISHED)
def test_the_remedy_of_stop_on_redo_helps(state: StepState) -> None:
    situation = replace(DONE, last_attempt=state, stop_on_redo=True, rerun="me")
    assert isinstance(decide(situation), Run)


@pytest.mark.parametrize("state", UNFINISHED)
def test_the_remedy_of_stop_on_redo_helps_without_a_record(state: StepState) -> None:
    situation = Situation(
        None, FULL, last_attempt=state, stop_on_redo=True, rerun="by me"
    )
    assert isinstance(decide(situation), Run)


@pytest.mark.parametrize("state", UNFINISHED)
def test_without_stop_on_redo_an_unfinished_step_runs_again(state: StepState) -> None:
    assert isinstance(decide(replace(DONE, record=None, last_attempt=state)), Run)


def test_always_wins_over_everything_else() -> None:
    situation = replace(
        DONE, always=True, rerun="me", findings=("gone",), record=None, damaged="d"
    )
    assert reason(situation) == "it is marked --always"


@pytest.mark.parametrize(
    ("now", "texts"),
    [
        ({"d": ("a", "b", "c")}, ["folder 'd': 'c' came"]),
        ({"d": ("a",)}, ["folder 'd': 'b' went"]),
        ({"d": ("a", "c")}, ["folder 'd': 'c' came, 'b' went"]),
        ({"d": ("a", "b", *"vwxyz")}, ["folder 'd': 'v' came, 'w' came, 'x' came, 2 more"]),
        ({"d": ()}, ["folder 'd': 'a' went, 'b' went"]),
    ],
)  # fmt: skip
def test_names_that_came_or_went_are_told(
    now: dict[str, tuple[str, ...]], texts: list[str]
) -> None:
    assert differences(FULL, replace(FULL, folders=now)) == texts
    assert reason(replace(DONE, now=replace(FULL, folders=now))) == texts[0]


def test_matches_that_came_or_went_are_told() -> None:
    now = replace(FULL, globs={"*.csv": ("b.csv",)})
    assert differences(FULL, now) == ["pattern '*.csv': 'b.csv' came, 'a.csv' went"]
