import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit_service.domain.credit import points_for
from credit_service.domain.order_created import UnreadableOrder, read_order

ORDER = {"order_id": "order-1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "created_at_ms": 1}


@pytest.mark.parametrize(("total_cents", "points"), [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (10**15, 10**13)])
def test_a_credit_point_is_earned_for_each_full_unit_of_currency(total_cents: int, points: int) -> None:
    assert points_for(total_cents) == points


def test_an_order_is_read_from_its_message() -> None:
    order = read_order(json.dumps(ORDER).encode())
    assert (order.order_id, order.customer, order.total_cents, order.currency) == ("order-1", "ada", 2599, "EUR")


def test_fields_of_a_newer_sender_are_passed_over() -> None:
    assert read_order(json.dumps(ORDER | {"coupon": "x"}).encode()).order_id == "order-1"


@pytest.mark.parametrize("field", list(ORDER))
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(UnreadableOrder, match=field):
        read_order(json.dumps({name: value for name, value in ORDER.items() if name != field}).encode())


@pytest.mark.parametrize(
    ("field", "value"),
    [("order_id", "x" * 37), ("order_id", 1), ("customer", ""), ("customer", "nul\x00"), ("total_cents", -1),
     ("total_cents", 1.5), ("total_cents", "100"), ("total_cents", True), ("total_cents", 10**16), ("currency", "euro")],
)  # fmt: skip
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(UnreadableOrder, match=field):
        read_order(json.dumps(ORDER | {field: value}).encode())


@given(st.binary())
def test_any_other_bytes_are_no_order(body: bytes) -> None:
    with pytest.raises(UnreadableOrder):
        read_order(body)
