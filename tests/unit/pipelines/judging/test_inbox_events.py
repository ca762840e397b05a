"""Tests how the judge reads the rows of the credit service's inbox."""

import json
from typing import Any

import pyarrow
import pytest

from credit_service.adapters.ledger import CONSUMER, REFUSALS
from order_messages import order_cancelled, order_created
from pipelines.judging.events import inbox_event_table
from pipelines.judging.history import EVENT_COLUMNS
from pipelines.judging.inbox_events import INBOX_COLUMNS, STATUSES, inbox_events, order_id_of
from pipelines.judging.inbox_events import REFUSALS as END_OF_REFUSALS
from pipelines.judging.route import Route
from rocketmq_broker.databases.inbox import InboxStatus

ROUTE = Route()


def row(order_id: str = "o", **changed: Any) -> dict[str, Any]:
    """Returns a row as the credit service stores it."""
    return {
        "consumer": CONSUMER, "message_key": f"M-{order_id}", "topic": order_created.TOPIC,
        "body": json.dumps({"order_id": order_id}).encode(), "properties": "{}", "status": "NEW", "received_at_ms": 7,
        "last_error": None, **changed,
    }  # fmt: skip


def event(**changed: Any) -> dict[str, Any]:
    (only,) = inbox_events([row(**changed)], ROUTE)
    return only


def counted(found: dict[str, Any]) -> set[str]:
    return {name for name, value in found.items() if value == 1}


def test_the_judge_knows_the_statuses_and_the_consumers_of_the_credit_service() -> None:
    """The judge's statuses, groups and topics equal those of the credit service.

    The judge does not import the services or the client, so it has copies of these constants.
    """
    assert list(STATUSES) == [status.value for status in InboxStatus]
    assert (ROUTE.consumer_group, ROUTE.consumer_group + END_OF_REFUSALS) == (CONSUMER, REFUSALS)
    assert (ROUTE.topic, ROUTE.cancellation_topic) == (order_created.TOPIC, order_cancelled.TOPIC)


@pytest.mark.parametrize(
    ("changed", "column"),
    [
        ({}, "waiting_credits"),
        ({"status": "FAILED"}, "waiting_credits"),
        ({"status": "PARKED"}, "parked_credits"),
        ({"status": "DISMISSED"}, "dismissed_credits"),
        ({"topic": order_cancelled.TOPIC}, "waiting_reversals"),
        ({"topic": order_cancelled.TOPIC, "status": "PARKED"}, "parked_reversals"),
        ({"topic": order_cancelled.TOPIC, "status": "DISMISSED"}, "dismissed_reversals"),
        ({"consumer": REFUSALS, "topic": "credit_refusals"}, "waiting_refusals"),
        ({"consumer": REFUSALS, "topic": "credit_refusals", "status": "PARKED"}, "parked_refusals"),
        ({"status": "LOST"}, "unknown_rows"),
        ({"topic": "shipments"}, "unknown_rows"),
    ],
)
def test_a_row_is_counted_by_its_kind_and_its_status(changed: dict[str, Any], column: str) -> None:
    assert counted(event(**changed)) == {column}


def test_rows_of_other_consumers_and_dismissed_refusals_say_nothing() -> None:
    others = [row(consumer="inventory_service"), row(consumer=REFUSALS, status="DISMISSED")]
    assert list(inbox_events(others, ROUTE)) == []


def test_the_route_names_topics_and_consumer() -> None:
    route = Route("shop", "points", "shop_cancellations")
    found = inbox_events([row(consumer="points", topic="shop"), row(consumer="points.refusals"), row()], route)
    assert [counted(one) for one in found] == [{"waiting_credits"}, {"waiting_refusals"}]


def test_time_and_reason_are_those_of_the_row() -> None:
    found = event(status="FAILED", last_error="OperationalError: locked")
    assert (found["order_id"], found["unnamed"], found["received_at_ms"], found["latest_at_ms"]) == ("o", None, 7, 7)
    assert found["last_error"] == "OperationalError: locked"


def test_a_dismissed_message_is_not_on_its_way() -> None:
    found = event(status="DISMISSED", last_error="Error: no")
    assert (found["received_at_ms"], found["latest_at_ms"], found["last_error"]) == (None, None, "Error: no")


@pytest.mark.parametrize(
    ("body", "properties", "order_id"),
    [
        (b'{"order_id": "a"}', '{"KEYS": "b"}', "a"),
        (b'{"order_id": 7}', '{"KEYS": "b c"}', "b"),
        (b'{"order_id": ""}', "{}", None),
        (b"[]", '{"KEYS": ""}', None),
        (b"\xff", '{"KEYS": 5}', None),
        (b"", "(unreadable) in row 7", None),
    ],
)
def test_a_row_belongs_to_the_order_in_its_body_or_else_to_its_key(body: bytes, properties: str, order_id: str | None) -> None:
    assert order_id_of(body, properties) == order_id


def test_a_row_without_an_order_has_a_name() -> None:
    found = event(body=b"")
    assert (found["order_id"], found["unnamed"]) == (None, "inbox M-o")


def test_both_engines_get_the_same_events() -> None:
    rows = [row("a"), row("b", status="PARKED", last_error="Error: no"), row(consumer="another"), row("c", body=b"")]
    table = inbox_event_table([pyarrow.RecordBatch.from_pylist(rows[:2]), pyarrow.RecordBatch.from_pylist(rows[2:])], ROUTE)
    assert table.column_names == list(INBOX_COLUMNS)
    told = [{name: value for name, value in one.items() if value is not None} for one in table.to_pylist()]
    assert told == [{n: value for n, value in one.items() if value is not None} for one in inbox_events(rows, ROUTE)]
    assert set(INBOX_COLUMNS) <= set(EVENT_COLUMNS)
    assert inbox_event_table([], ROUTE).num_rows == 0
