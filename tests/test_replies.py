"""What functions of an effect are called with, and which replies tell something."""

from __future__ import annotations

import io
from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import requests

from nbckpt.effects import replies
from nbckpt.errors import BadStep

if TYPE_CHECKING:
    from collections.abc import Callable


def a_response(status: int) -> requests.Response:
    found = requests.Response()
    found.status_code = status
    return found


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda key: key, "K"),
        (lambda: None, None),
        (lambda order=5: order, 5),
        (lambda order=5, key=None: (order, key), (5, "K")),
        (lambda order=5, *, idempotency_key: (order, idempotency_key), (5, "K")),
        (lambda *args: args, ("K",)),
        (lambda **options: options, {}),
        (str, "K"),
    ],
)
def test_perform_is_given_the_key_where_it_takes_one(
    function: Callable[..., Any], given: Any
) -> None:
    assert replies.call(function, "K") == given


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (None, "can't be called"),
        (lambda order, amount: (order, amount), "missing a required argument"),
        (lambda *, order: order, "argument: 'order'"),
    ],
)
def test_function_that_wants_more_than_a_key_is_refused(
    function: Any, part: str
) -> None:
    with pytest.raises(BadStep, match=part):
        replies.check_call("perform", function)


@pytest.mark.parametrize("function", [str, print, io.StringIO().write])
def test_function_that_tells_nothing_of_itself_is_called(function: Any) -> None:
    replies.check_call("perform", function)


async def later() -> int:
    return 1


def test_coroutine_was_not_begun() -> None:
    with pytest.raises(replies.NotBegun):
        replies.outcome("perform", later())


@pytest.mark.parametrize("reply", [Future(), (n for n in ()), a_response(503)])
def test_what_is_to_come_or_an_error_is_no_outcome(reply: Any) -> None:
    with pytest.raises(BadStep) as found:
        replies.outcome("perform", reply)
    assert not isinstance(found.value, replies.NotBegun)


@pytest.mark.parametrize(
    "reply",
    [None, 0, False, "", [], {"id": 1}, a_response(200), SimpleNamespace(status=500)],
)
def test_anything_else_is_an_outcome(reply: Any) -> None:
    assert replies.outcome("perform", reply) is reply


@pytest.mark.parametrize("reply", [False, 0, "", [], {}, a_response(404), later])
def test_lookup_finds_nothing_by_none_only(reply: Any) -> None:
    with pytest.raises(BadStep):
        replies.found("lookup", reply() if reply is later else reply)
    assert replies.found("lookup", None) is None


def test_tables_and_arrays_are_found_unless_they_are_empty() -> None:
    table = pd.DataFrame({"a": [1, 2]})
    assert replies.found("lookup", table) is table
    assert replies.found("lookup", np.array(3)) == 3
    for empty in (table[:0], np.arange(0)):
        with pytest.raises(BadStep, match="only None"):
            replies.found("lookup", empty)
