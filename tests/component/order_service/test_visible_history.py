"""Tests that a restored backup is detected at the start, even if no check-back can reveal the missing transactions."""

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from order_messages import order_created
from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.adapters.visible_history import MAX_MESSAGES
from order_service.domain.life_cycle import OrderEvent
from order_service.domain.order import Item
from order_service.entrypoints.http import create_app
from order_service.service_layer.placing import OrderPlacing
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.client import EventLoopThread
from rocketmq_broker.testing import SyncRocketMQ
from rocketmq_broker.world import World
from service_runtime.database.opening import open_database
from tests.component.order_service.conftest import ORDER_LIMIT_CENTS
from tests.e2e import backups


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

    def place(self, *, is_paid_later: bool = False) -> str:
        world = World()
        placing = OrderPlacing(self.store, self.broker, 600_000, world.wall_ms, world.new_uuid)
        placed = placing.place(
            customer="ada", items=[Item("book", 1, 1299)], currency="EUR", idempotency_key=None, is_paid_later=is_paid_later
        )
        assert placed.state.name == ("PENDING" if is_paid_later else "COMMITTED")
        return placed.order.order_id

    def pay(self, order_id: str) -> None:
        self.store.change_unpaid(order_id, OrderEvent.PAY, World().wall_ms())

    def readiness(self) -> tuple[int, str]:
        answer = create_app(self.store, self.broker, World()).test_client().get("/readyz")
        return answer.status_code, answer.text

    def close(self) -> None:
        self.broker.stop()
        self._engine.dispose()


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    """One queue, so that the last message is the newest of all queues."""
    return {"defaultTopicQueueNums": 1}


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


@pytest.mark.parametrize("lost_orders", [0, 1])
def test_the_message_of_a_late_payment_reveals_a_backup(rocketmq: SyncRocketMQ, tmp_path: Path, lost_orders: int) -> None:
    """The backup lacks the payment, or orders whose messages come before that of the earlier order."""
    copy = tmp_path / "backup.db"
    with closing(Service(tmp_path / "orders.db", rocketmq.namesrv_addr)) as service:
        late = service.place(is_paid_later=True)
        if lost_orders:
            service.pay(late)
        backups.copied(tmp_path / "orders.db", copy)
        service.pay(late)
        for _ in range(lost_orders):
            service.place()
        rocketmq.wait_until(lambda: rocketmq.pending() == [], minutes=5)
        newest = rocketmq.messages(order_created.TOPIC)[-1]
        assert newest.keys == (late,)
    for database, is_doubted in ((copy, True), (tmp_path / "orders.db", False)):
        with closing(Service(database, rocketmq.namesrv_addr)) as service:
            assert (service.store.history.why_unready() is not None) == is_doubted


@pytest.mark.parametrize("hiding", [MAX_MESSAGES - 1, MAX_MESSAGES])
def test_at_most_so_many_messages_of_a_queue_are_compared(rocketmq: SyncRocketMQ, tmp_path: Path, hiding: int) -> None:
    copy = tmp_path / "backup.db"
    with closing(Service(tmp_path / "orders.db", rocketmq.namesrv_addr)) as service:
        late = [service.place(is_paid_later=True) for _ in range(hiding)]
        for order_id in late:
            service.pay(order_id)
        backups.copied(tmp_path / "orders.db", copy)
        service.place()
        rocketmq.wait_until(lambda: rocketmq.pending() == [], minutes=5)
    with closing(Service(copy, rocketmq.namesrv_addr)) as service:
        assert (service.store.history.why_unready() is not None) == (hiding < MAX_MESSAGES)
