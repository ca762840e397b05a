"""Fixtures for the credit service: a ledger on a database of each kind, and messages about orders."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS, CreditRow
from credit_service.domain.credit import Credit, CreditOutcome
from order_messages import order_cancelled, order_created
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.message.record import Record, to_message
from tests.passing_time import Clock


@pytest.fixture
def migrations() -> str:
    return MIGRATIONS


@pytest.fixture
def ledger(engine: Engine, clock: Clock) -> Ledger:
    return Ledger(engine, clock.world())


@pytest.fixture
def sqlite_ledger(sqlite_engine: Engine, clock: Clock) -> Ledger:
    return Ledger(sqlite_engine, clock.world())


ORDER = {"order_id": "order-1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "created_at_ms": 1}
CANCELLATION = {"cancelled_at_ms": 1, "reason": "by the customer", "version": 1}


def a_message(body: bytes, queue_offset: int = 0, topic: str = order_created.TOPIC, **properties: str) -> MessageExt:
    """Returns a message as a consumer receives it. `queue_offset` also determines its ids."""
    encoded = "".join(f"{name}\x01{value}\x02" for name, value in {"UNIQ_KEY": f"id-{queue_offset}", **properties}.items())
    place = (queue_offset, queue_offset, 0, 0, bytes(8), 0, bytes(8), 0, 0)
    return to_message(Record(0, 0, 0, 0, *place, body, topic.encode(), encoded.encode()))


def an_order(order_id: str, queue_offset: int = 0, *, amount_cents: int = 2599, **properties: str) -> MessageExt:
    body = ORDER | {"order_id": order_id, "total_cents": amount_cents}
    return a_message(json.dumps(body).encode(), queue_offset, **properties)


def a_cancellation(order_id: str, queue_offset: int = 0, *, amount_cents: int = 2599) -> MessageExt:
    body = ORDER | CANCELLATION | {"order_id": order_id, "total_cents": amount_cents}
    return a_message(json.dumps(body).encode(), queue_offset, order_cancelled.TOPIC)


def orders(count: int, first: int = 0, *, amount_cents: int = 100) -> list[MessageExt]:
    """Returns messages about `count` orders of the customer `ada`, each worth one point."""
    return [an_order(f"order-{number}", number, amount_cents=amount_cents) for number in range(first, first + count)]


def credit(ledger: Ledger, credits: Sequence[Credit]) -> list[CreditOutcome]:
    """Writes the entries in a separate database transaction."""
    with ledger.inbox._transaction() as session:
        return ledger.write(session, credits)


def points(ledger: Ledger, customer: str = "ada") -> int:
    """Returns the customer's balance. Checks that it is the sum of the entries."""
    found = ledger.find_customer(customer, max_entries=100_000)
    if found is None:
        return 0
    assert found.points == sum(entry.points for entry in found.entries)
    return found.points


def entries(ledger: Ledger, customer: str = "ada") -> Sequence[CreditRow]:
    """Returns the entries of a customer who has some, the latest first."""
    found = ledger.find_customer(customer, max_entries=1_000)
    assert found is not None
    return found.entries


def credited(ledger: Ledger, messages: Sequence[MessageExt]) -> list[bool]:
    """Returns True for each message whose order has an entry in the ledger."""
    return [bool(ledger.find_order(json.loads(message.body)["order_id"])) for message in messages]


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


def a_credit(order_id: str = "order-1", *, customer: str = "ada", amount_cents: int = 2599) -> Credit:
    return Credit(
        order_id=order_id, customer=customer, amount_cents=amount_cents, message_id="message", transaction_id="transaction"
    )


def a_reversal(order_id: str = "order-1", *, customer: str = "ada", amount_cents: int = 2599) -> Credit:
    return replace(a_credit(order_id, customer=customer, amount_cents=amount_cents), kind=EntryKind.REVERSAL)
