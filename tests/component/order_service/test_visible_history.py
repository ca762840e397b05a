"""Tests that a restored backup is detected at the start, even if no check-back can reveal the missing transactions."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.domain.order import Item
from order_service.entrypoints.http import create_app
from order_service.service_layer.placing import OrderPlacing
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import EventLoopThread
from rocketmq_broker.testing import SyncRocketMQ
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from tests.component.order_service.conftest import ORDER_LIMIT_CENTS


class Service:
    """The order service on a SQLite database, without its HTTP server."""

    def __init__(self, database: Path, namesrv_addr: str) -> None:
        self._engine = open_database(f"sqlite:///{database}", migrations=MIGRATIONS, start_timeout_s=10)
        self.store = SqlOrderStore(self._engine, World())
        listeners = transaction_listeners(self.store, order_limit_cents=ORDER_LIMIT_CENTS, now_ms=World().wall_ms)
        self.broker = OrderBroker(
            listeners,
            namesrv_addr=namesrv_addr,
            send_timeout_ms=3000,
            loop=EventLoopThread(),
            witness=self.store.history.witness,
            history=self.store.history,
        )
        self.broker.start()

    def place(self) -> None:
        world = World()
        placing = OrderPlacing(self.store, self.broker, 600_000, world.wall_ms, world.new_uuid)
        placed = placing.place(
            customer="ada", items=[Item("book", 1, 1299)], currency="EUR", idempotency_key=None, is_paid_later=False
        )
        assert placed.state.name == "COMMITTED"

    def readiness(self) -> tuple[int, str]:
        answer = create_app(self.store, self.broker, World()).test_client().get("/readyz")
        return answer.status_code, answer.text

    def close(self) -> None:
        self.broker.stop()
        self._engine.dispose()


@pytest.fixture
def backup(rocketmq: SyncRocketMQ, tmp_path: Path) -> Path:
    """Returns a copy of the database that was made between two committed orders."""
    copy = tmp_path / "backup.db"
    for is_last in (False, True):
        with closing(Service(tmp_path / "orders.db", rocketmq.namesrv_addr)) as service:
            service.place()
        if not is_last:
            shutil.copy(tmp_path / "orders.db", copy)
    assert rocketmq.pending() == []
    return copy


def test_a_restored_backup_takes_no_orders_until_a_person_adopts_it(backup: Path, rocketmq: SyncRocketMQ) -> None:
    with closing(Service(backup, rocketmq.namesrv_addr)) as service:
        status, why = service.readiness()
        assert status == 503
        assert "it is an old copy" in why
        assert "adopt-history" in why
        service.store.history.adopt("restored from the backup of Monday")
        assert service.store.history.why_unready() is None
    with closing(Service(backup, rocketmq.namesrv_addr)) as service:
        assert service.readiness()[0] == 200
        service.place()


def test_the_right_database_and_a_new_one_are_not_doubted(backup: Path, rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    for database in ("orders.db", "new.db"):
        with closing(Service(tmp_path / database, rocketmq.namesrv_addr)) as service:
            assert service.store.history.why_unready() is None
            service.place()
    with closing(Service(tmp_path / "orders.db", rocketmq.namesrv_addr)) as service:
        assert service.store.history.why_unready() is None


def test_a_broker_that_is_away_says_nothing(backup: Path, rocketmq: SyncRocketMQ, caplog: pytest.LogCaptureFixture) -> None:
    namesrv_addr = rocketmq.namesrv_addr
    rocketmq.crash()
    with closing(Service(backup, namesrv_addr)) as service:
        assert service.store.history.why_unready() is None
    assert "could not compare the order database with the newest messages" in caplog.text
