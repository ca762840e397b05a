"""Tests the report to operators after a database was reset to an older state."""

from typing import Any, cast

from prometheus_client import CollectorRegistry
from sqlalchemy import MetaData

from rocketmq_broker.client import MessageQueue, Setback
from service_runtime.database.sessions import Sessions
from service_runtime.messaging.positions import Positions, PositionTables

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(2)]


def new_positions(metrics: CollectorRegistry | None = None) -> Positions[str]:
    """Returns positions that do not open the database."""
    return Positions(
        cast(Sessions, None),
        PositionTables.of(MetaData()),
        has_all=lambda session, results: True,
        service="credit",
        to_do="Look into it",
        metrics=metrics,
    )


def a_setback(queue: MessageQueue, position: int, consumed: int, **more: Any) -> Setback:
    return Setback(queue, position, consumed, **{"expired": 0, "is_new_database": False, **more})


def test_nothing_needs_attention_while_the_database_has_what_it_had() -> None:
    assert new_positions().attention() == []


def test_what_went_back_is_named_until_a_restart_with_what_comes_again_and_what_has_expired() -> None:
    registry = CollectorRegistry()
    positions = new_positions(registry)
    positions.went_back([a_setback(QUEUES[0], 3, 10), a_setback(QUEUES[1], 0, 5, expired=2)])
    (line,) = positions.attention()
    assert line.startswith(
        "the credit database was reset to an older state: it lacked 12 messages of 2 queues; 10 are redelivered"
    )
    assert "and 2 have expired at the broker; run `reconcile` to find their orders. Look into it." in line
    assert positions.attention() == [line]
    assert registry.get_sample_value("credit_messages_lacked_total") == 12


def test_a_database_without_any_result_is_named_as_one() -> None:
    positions = new_positions()
    positions.went_back([a_setback(QUEUES[0], 0, 4, is_new_database=True)])
    assert positions.attention()[0].startswith("the credit database has no results at all, and it lacked 4 messages of 1 queues")
