"""Tests the contract between producers and consumers over all versions: each version reads the messages of the others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from order_messages import credit_refused, order_cancelled, order_created, stock_short
from order_messages.body import MessageBody, UnreadableBody
from order_messages.credit_refused import CreditRefused
from order_messages.order_cancelled import OrderCancelled
from order_messages.order_created import OrderCreated, OrderedItem
from order_messages.stock_short import StockShort

CREATED_1 = {"order_id": "order-1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "created_at_ms": 1}
CREATED_2 = CREATED_1 | {"version": 2, "items": [{"name": "tea", "quantity": 2}]}
CANCELLED_1 = {
    "version": 1, "order_id": "order-1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "cancelled_at_ms": 2,
    "reason": "by the customer",
}  # fmt: skip
SHORT_1 = {"version": 1, "order_id": "order-1", "missing": "tea"}
REFUSED_1 = {"version": 1, "order_id": "order-1", "reason": "its task fails"}
"""Bodies as producers of each version write them. They are in stores and on their way: do not change them, add new ones."""

FIRST_VERSIONS = [(OrderCreated, CREATED_1), (OrderCancelled, CANCELLED_1), (StockShort, SHORT_1), (CreditRefused, REFUSED_1)]
EACH_VERSION = [*FIRST_VERSIONS, (OrderCreated, CREATED_2)]


class OrderCreatedOfVersion1(BaseModel):
    """The model with which consumers of the released version 1 read. Do not change it."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    order_id: str
    customer: str
    total_cents: int
    currency: str
    created_at_ms: int


def encoded(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()


@pytest.mark.parametrize(("kind", "body"), EACH_VERSION)
def test_a_consumer_reads_what_producers_of_each_version_wrote(kind: type[MessageBody], body: dict[str, Any]) -> None:
    read = kind.read(encoded(body)).model_dump(mode="json")
    assert {name: read[name] for name in body} == body


def test_a_message_of_version_1_has_no_items() -> None:
    order = OrderCreated.read(encoded(CREATED_1))
    assert (order.version, order.items) == (1, ())


@pytest.mark.parametrize(("kind", "body"), EACH_VERSION)
def test_fields_of_a_newer_producer_are_passed_over(kind: type[MessageBody], body: dict[str, Any]) -> None:
    assert kind.read(encoded(body | {"version": 9, "coupon": {"name": "spring"}})).order_id == "order-1"


def test_a_consumer_of_version_1_reads_what_the_producer_writes_today() -> None:
    today = OrderCreated.model_validate(
        {**CREATED_1, "version": order_created.VERSION, "items": (OrderedItem(name="tea", quantity=2),)}
    )
    assert OrderCreatedOfVersion1.model_validate_json(today.encode()).model_dump() == CREATED_1


@pytest.mark.parametrize(("kind", "body"), EACH_VERSION)
def test_what_is_written_is_read_again(kind: type[MessageBody], body: dict[str, Any]) -> None:
    message = kind.read(encoded(body))
    assert kind.read(message.encode()) == message


@pytest.mark.parametrize(("kind", "body"), FIRST_VERSIONS)
def test_a_missing_field_is_named(kind: type[MessageBody], body: dict[str, Any]) -> None:
    for field in body.keys() - {"version"}:
        with pytest.raises(UnreadableBody, match=field):
            kind.read(encoded({name: value for name, value in body.items() if name != field}))


@pytest.mark.parametrize(
    ("field", "value"),
    [("order_id", "x" * 37), ("order_id", 1), ("customer", ""), ("customer", "nul\x00"), ("total_cents", -1),
     ("total_cents", 1.5), ("total_cents", "100"), ("total_cents", True), ("total_cents", 10**16), ("currency", "euro"),
     ("version", 0), ("version", "2"), ("items", [{"name": "tea"}]), ("items", [{"name": "tea", "quantity": 0}])],
)  # fmt: skip
def test_a_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(UnreadableBody, match=field):
        OrderCreated.read(encoded(CREATED_2 | {field: value}))


@given(st.binary())
def test_any_other_bytes_are_no_message(body: bytes) -> None:
    for kind in (OrderCreated, OrderCancelled, StockShort, CreditRefused):
        with pytest.raises(UnreadableBody):
            kind.read(body)


def test_no_two_kinds_of_message_share_topic_and_tag() -> None:
    kinds = [(module.TOPIC, module.TAG) for module in (order_created, order_cancelled, stock_short, credit_refused)]
    assert len(set(kinds)) == 4
