"""A credit database of each kind."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.domain.credit import Credit
from service_runtime.database import open_database
from tests.postgresql_server import new_database


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/credits.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A database of each kind."""
    if request.param == "sqlite":
        return sqlite_url
    url = new_database()
    if url is None:
        pytest.skip("no PostgreSQL here: apt-get install postgresql")
    return url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=10)
    yield engine
    engine.dispose()


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    return Ledger(engine)


@pytest.fixture
def sqlite_ledger(sqlite_url: str) -> Iterator[Ledger]:
    engine = open_database(sqlite_url, migrations=MIGRATIONS, start_timeout_s=10)
    yield Ledger(engine)
    engine.dispose()


def a_credit(order_id: str = "order-1", *, customer: str = "ada", amount_cents: int = 2599) -> Credit:
    return Credit(
        order_id=order_id, customer=customer, amount_cents=amount_cents, message_id="message", transaction_id="transaction"
    )
