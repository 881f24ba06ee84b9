"""What is kept of a result comes back equal, and of the same types."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from nbckpt.credentials import Secrets
from nbckpt.errors import ValueRefused
from nbckpt.loops import results
from nbckpt.records import dumps, loads


def kept(value: Any) -> Any:
    row, data = results.encode(value, {}, Secrets.of_environment())
    row = loads(dumps(row))
    return row[0] if data is None else results.restore(data, {})


@pytest.mark.parametrize(
    "value",
    [
        None, 0, True, 1.5, "text", [1, ["a", None]], {"a": {"b": [1]}}, (1, 2),
        {1: "a"}, {"a", "b"}, b"bytes", dt.date(2024, 1, 2), [(1,)], float("inf"),
    ],
)  # fmt: skip
def test_result_comes_back_equal_and_of_its_type(value: Any) -> None:
    found = kept(value)
    assert found == value
    assert type(found) is type(value)


def test_array_comes_back_and_can_be_changed() -> None:
    np = pytest.importorskip("numpy")
    found = kept({"a": np.arange(100_000)})
    found["a"][0] = 7
    assert found["a"][:3].tolist() == [7, 1, 2]


def test_result_that_can_not_be_kept_is_refused_with_its_path() -> None:
    value = [1, (n for n in ())]
    with pytest.raises(ValueRefused, match=r"result\[1\]"):
        results.encode(value, {}, Secrets.of_environment())


def test_secret_in_a_result_does_not_reach_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SERVICE_API_TOKEN", "s3cr3t-0123456789-abcdef")
    value = {"token": "s3cr3t-0123456789-abcdef"}
    row, data = results.encode(value, {}, Secrets.of_environment())
    assert data is not None
    assert b"s3cr3t-0123456789" not in dumps(row) + data
    assert results.restore(data, {}) == value
