"""Fixtures for a broker's transactions and for a producer that it can check back with."""

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
