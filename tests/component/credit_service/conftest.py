"""A ledger on a database of each kind; orders as messages."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import Credit
from order_messages.states import EntryKind
from rocketmq_broker.client import ConsumeContext
from rocketmq_broker.message import MessageExt, MessageQueue
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.world import World


@pytest.fixture
def migrations() -> str:
    return MIGRATIONS


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine, World())


@pytest.fixture
def sqlite_ledger(sqlite_engine: Engine) -> Ledger:
    return Ledger(sqlite_engine, World())


ORDER = {"order_id": "order-1", "customer": "ada", "total_cents": 2599, "currency": "EUR", "created_at_ms": 1}


def a_message(body: bytes, queue_offset: int = 0) -> MessageExt:
    properties = f"UNIQ_KEY\x01id-{queue_offset}".encode()
    return to_message(Record(0, 0, 0, 0, queue_offset, 0, 0, 0, bytes(8), 0, bytes(8), 0, 0, body, b"orders", properties))


def an_order(order_id: str, queue_offset: int = 0) -> MessageExt:
    return a_message(json.dumps(ORDER | {"order_id": order_id}).encode(), queue_offset)


def a_context() -> ConsumeContext:
    return ConsumeContext(MessageQueue("orders", "broker-a", 0))


def a_credit(order_id: str = "order-1", *, customer: str = "ada", amount_cents: int = 2599) -> Credit:
    return Credit(
        order_id=order_id, customer=customer, amount_cents=amount_cents, message_id="message", transaction_id="transaction"
    )


def a_reversal(order_id: str = "order-1", *, customer: str = "ada", amount_cents: int = 2599) -> Credit:
    return replace(a_credit(order_id, customer=customer, amount_cents=amount_cents), kind=EntryKind.REVERSAL)
