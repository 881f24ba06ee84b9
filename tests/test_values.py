"""A value comes back from its row as it was, or is refused with its path."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbckpt.errors import ValueRefused
from nbckpt.state.values import is_json, keep, revive

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner)
    ),
    max_leaves=8,
)


def through(value: Any) -> Any:
    return revive(*keep("v", value, {}), {})


@given(PLAIN)
def test_plain_values_come_back_equal_and_of_their_types(value: Any) -> None:
    assert repr(through(value)) == repr(value)


def test_arrays_come_back_writable_and_aligned() -> None:
    one, two = through((np.arange(3, dtype="i1"), np.arange(5.0)))
    two[0] = 9
    assert one.tolist() == [0, 1, 2]
    assert two.tolist() == [9, 1, 2, 3, 4]
    assert two.flags.aligned


@pytest.mark.parametrize("value", [(1,), {1: 2}, math.nan, math.inf, {1}, 1j])
def test_what_json_would_change_is_no_json(value: object) -> None:
    assert not is_json(value)
    assert not is_json([value])
    assert not is_json({"a": value})


def test_integer_that_python_does_not_spell_comes_back() -> None:
    assert not is_json(9**9999)
    assert through([-(9**9999)]) == [-(9**9999)]


def test_revived_value_shares_nothing_with_the_record() -> None:
    data = [[1]]
    revive(data, None, {})[0].append(2)
    assert data == [[1]]


def test_refusal_names_what_and_where() -> None:
    with pytest.raises(ValueRefused, match=r"decision d can't be kept: .*generator"):
        keep("decision d", [iter(()), (n for n in ())], {})


def test_credential_is_in_no_form_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-9f8e7d")
    data, body = keep("v", {"k": ["s3cr3t-9f8e7d"]}, {})
    assert data is None
    assert body is not None
    assert b"s3cr3t-9f8e7d" not in body
    assert revive(data, body, {}) == {"k": ["s3cr3t-9f8e7d"]}
    with pytest.raises(ValueRefused, match="credential"):
        keep("v", b"s3cr3t-9f8e7d", {})
