"""What counts as the request of an effect, and what does not."""

from __future__ import annotations

import datetime as dt
import enum
import functools
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbckpt.credentials import Secrets
from nbckpt.effects.payloads import differing, request_given, request_read, spelled
from nbckpt.errors import BadStep

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary() | st.decimals(allow_nan=False) | st.datetimes(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    | st.frozensets(st.integers()) | st.tuples(inner, inner),
    max_leaves=12,
)  # fmt: skip
NOTHING = Secrets({})


class Client:
    def __init__(self) -> None:
        self.url = "https://shop.test"
        self.calls = 0

    def charge(self, *given: Any, **named: Any) -> str:
        self.calls += 1
        return f"{given}{named}"


@dataclass
class Order:
    id: int
    amount: Decimal


@dataclass
class Unset:
    id: int = field(init=False)


class Colour(enum.Enum):
    RED = 1


def in_notebook(source: str, **names: Any) -> tuple[Any, dict[str, Any]]:
    """Return a function as a notebook's cell makes it, and the names of the notebook."""
    exec(f"perform = {source}", names)  # noqa: S102 - the cell of a notebook
    return names["perform"], names


def read(source: str, **names: Any) -> dict[str, str]:
    return request_read(*in_notebook(source, **names))


CHARGE = "lambda key: api.charge(order, idempotency_key=key)"


def test_data_that_is_sent_counts_and_the_client_does_not() -> None:
    order = Order(1, Decimal(5))
    found = read(CHARGE, api=Client(), order=order)
    assert "order" in found
    assert "api" not in found
    used = Client()
    used.charge()
    assert read(CHARGE, api=used, order=Order(1, Decimal(5))) == found
    other = read(CHARGE, api=Client(), order=Order(1, Decimal(6)))
    assert differing(found, other) == ["order"]


def test_data_of_closures_defaults_and_partials_counts() -> None:
    def made(amount: int) -> Any:
        return lambda key: (amount, key)

    for one, two in (
        (made(1), made(2)),
        (lambda key, amount=1: (key, amount), lambda key, amount=2: (key, amount)),
        (functools.partial(max, 1), functools.partial(max, 2)),
        (functools.partial(max, default=1), functools.partial(max, default=2)),
        (functools.partial(made(1), 3), functools.partial(made(2), 3)),
    ):
        assert differing(request_read(one, {}), request_read(two, {}))
        assert not differing(request_read(one, {}), request_read(one, {}))


def test_constants_count_also_inside_inner_functions() -> None:
    one = read("lambda key: [send(key, 5) for _ in ids]", send=print, ids=[1])
    two = read("lambda key: [send(key, 600) for _ in ids]", send=print, ids=[1])
    assert differing(one, two) == ["constants"]


def test_name_of_an_attribute_is_no_name_of_the_notebook() -> None:
    found = read("lambda key: api.charge(key)", api=Client(), charge=[1])
    assert sorted(found) == ["constants"]


def test_container_that_is_only_added_to_does_not_count() -> None:
    source = "lambda key: results.append(api.charge(key))"
    assert "results" not in read(source, api=Client(), results=[1])
    assert "results" in read("lambda key: send(results)", send=print, results=[1])


def test_methods_of_plain_data_read_it() -> None:
    found = read("lambda key: send(text.strip(), day.isoformat())", send=print,
                 text=" a ", day=dt.date(2026, 1, 2))  # fmt: skip
    assert {"text", "day"} <= set(found)


def test_attribute_of_a_client_chain_is_the_client() -> None:
    api = SimpleNamespace(url="x", customers=SimpleNamespace(create=print))
    assert "api" not in read("lambda key: api.customers.create(key)", api=api)


def test_bound_method_of_a_client_has_no_request() -> None:
    assert request_read(Client().charge, {}) == {}


def test_credential_counts_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was renewed makes no other request, and its digest is not stored."""
    source = "lambda key: send({'auth': token}, key)"
    monkeypatch.setenv("SHOP_TOKEN", "first-token")
    first = read(source, send=print, token="first-token")  # noqa: S106
    monkeypatch.setenv("SHOP_TOKEN", "second-token")
    second = read(source, send=print, token="second-token")  # noqa: S106
    assert first == second
    assert "token" in first


def test_request_that_is_given_is_compared_by_value() -> None:
    assert request_given({"a": [1]}, {}) == request_given({"a": [1]}, {})
    assert request_given({"a": [1]}, {}) != request_given({"a": [2]}, {})
    with pytest.raises(BadStep, match="can't be compared"):
        request_given((n for n in ()), {})


@given(PLAIN, PLAIN)
def test_texts_are_equal_where_values_and_types_are(one: Any, two: Any) -> None:
    alike = repr(one) == repr(two)
    same = spelled(one, NOTHING) == spelled(two, NOTHING)
    if alike:
        assert same
    if same:
        assert one == two


@given(st.dictionaries(st.text(), st.integers()), st.sets(st.text()))
def test_order_of_dicts_and_sets_changes_nothing(
    pairs: dict[str, int], members: set[str]
) -> None:
    turned = dict(reversed(pairs.items()))
    assert spelled(pairs, NOTHING) == spelled(turned, NOTHING)
    grown: set[str] = set()
    for member in sorted(members, reverse=True):
        grown.add(member)
    assert spelled(members, NOTHING) == spelled(grown, NOTHING)


@pytest.mark.parametrize(
    ("one", "two"),
    [(1, True), (1, 1.0), ("1", 1), (b"a", "a"), ([1], (1,)), (0.0, -0.0),
     (Order(1, Decimal(1)), Order(1, Decimal("1.0"))), (Colour.RED, 1),
     (SimpleNamespace(a=1), {"a": 1}), (Path("a"), "a"),
     (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1))],  # noqa: DTZ001
)  # fmt: skip
def test_types_count(one: Any, two: Any) -> None:
    assert spelled(one, NOTHING) != spelled(two, NOTHING)


def test_integer_that_python_does_not_spell_counts() -> None:
    one, two = (read("lambda key: send(n)", n=9**power) for power in (9998, 9999))
    assert differing(one, two) == ["n"]


def test_field_that_was_never_set_is_no_data() -> None:
    assert spelled(Unset(), NOTHING) == "Unset []"


def test_value_inside_itself_is_not_read() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert "ring" not in read("lambda key: send(ring)", send=print, ring=ring)
