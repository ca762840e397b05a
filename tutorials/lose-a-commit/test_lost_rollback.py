"""Tests the solution of the exercise: a check-back finds a lost ROLLBACK, and no consumer receives the message."""

from pathlib import Path

from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.domain.order import Item, Order
from order_service.service_layer.attempt import Attempt, Outcome
from order_service.service_layer.placing import order_message
from order_service.service_layer.transaction_listener import transaction_listeners
from rocketmq_broker.testing import SyncRocketMQ
from rocketmq_broker.world import current_world
from service_runtime.database.opening import open_database


def test_a_lost_rollback_is_found_by_the_check_back_and_no_consumer_notices(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/orders.db", migrations=MIGRATIONS, start_timeout_s=10)
    store = SqlOrderStore(engine, current_world())
    now_ms = current_world().wall_ms
    listeners = transaction_listeners(store, order_limit_cents=1000, now_ms=now_ms)
    producer = rocketmq.transaction_producer("order_service", listeners)
    order = Order(order_id="order-1", customer="alice", items=(Item("book", 1, 1001),), currency="EUR", created_at_ms=1)
    attempt = Attempt(order)
    rocketmq.lose_next_decision()
    producer.send_message_in_transaction(order_message(order), attempt)
    assert attempt.outcome is Outcome.REFUSED
    assert (len(rocketmq.pending("order-1")), store.find_order("order-1")) == (1, None)
    rocketmq.advance(minutes=1)
    rocketmq.rolled_back("order-1")
    assert rocketmq.messages("orders") == []
