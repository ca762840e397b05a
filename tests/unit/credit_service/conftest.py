"""A ledger on a database of each kind."""

import pytest
from sqlalchemy import Engine

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import Credit


@pytest.fixture
def migrations() -> str:
    return MIGRATIONS


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine)


@pytest.fixture
def sqlite_ledger(sqlite_engine: Engine) -> Ledger:
    return Ledger(sqlite_engine)


def a_credit(order_id: str = "order-1", *, customer: str = "ada", amount_cents: int = 2599) -> Credit:
    return Credit(
        order_id=order_id, customer=customer, amount_cents=amount_cents, message_id="message", transaction_id="transaction"
    )
