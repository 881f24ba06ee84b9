"""Fields revive by their types, and give plain values that share nothing with them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import pytest

from nbckpt.records import Record


class Colour(enum.StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Inner(Record):
    number: int
    colour: Colour = Colour.RED


@dataclass(frozen=True, slots=True)
class Outer(Record):
    inner: Inner
    inners: tuple[Inner, ...] = ()
    by_name: dict[str, Inner] = field(default_factory=dict)
    maybe: Inner | None = None
    words: tuple[str, ...] = ()
    loose: dict[str, Any] = field(default_factory=dict)


WHOLE = Outer(
    Inner(1), (Inner(2), Inner(3)), {"a": Inner(4)}, Inner(5), ("x",), {"k": [1, {}]}
)


@pytest.mark.parametrize("record", [WHOLE, Outer(Inner(1))])
def test_record_comes_back_equal_with_its_types(record: Outer) -> None:
    found = Outer.from_json(record.to_json())
    assert found == record
    assert all(type(inner) is Inner for inner in (found.inner, *found.inners))
    assert type(found.inner.colour) is Colour


def test_json_values_share_no_container_with_the_record() -> None:
    data = WHOLE.to_json()
    data["loose"]["k"][1]["new"] = data["by_name"]["b"] = 1
    assert WHOLE.loose == {"k": [1, {}]}
    assert list(WHOLE.by_name) == ["a"]


@pytest.mark.parametrize(
    ("field_name", "value", "error"),
    [
        ("by_name", [], AttributeError),
        ("loose", [], AttributeError),
        ("inner", 7, AttributeError),
        ("inners", 7, TypeError),
        ("unknown", 7, TypeError),
        ("inner", {"number": 1, "colour": "blue"}, ValueError),
    ],
)
def test_value_of_another_shape_is_refused(
    field_name: str, value: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Outer.from_json({"inner": {"number": 1}, field_name: value})
