"""Fixtures with a broker's transactions and with a producer that receives its check-backs."""

import pytest

from tests.unit.server.transaction_broker import Producer, TransactionBroker


@pytest.fixture
def broker() -> TransactionBroker:
    return TransactionBroker()


@pytest.fixture
def producer(broker: TransactionBroker) -> Producer:
    producer = Producer()
    broker.online(producer)
    return producer
