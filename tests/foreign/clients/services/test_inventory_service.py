"""The inventory service's listener behind Apache's own Python client, on a broker whose time belongs to the test."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from inventory_service.adapters.order_consumer import order_consumer
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.domain.shipment import ShipmentState
from inventory_service.service_layer.order_listener import ShippingListener
from order_messages import order_created
from rocketmq_broker.client import EventLoopThread, Message
from rocketmq_broker.testing import SyncRocketMQ
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from tests.component.inventory_service.conftest import created, migrations, sqlite_stock_room
from tests.component.inventory_service.test_order_listener import Reporter
from tests.waiting import wait_until

__all__ = ["migrations", "sqlite_stock_room"]

pytest.importorskip("rocketmq", reason="Apache's Python client is not installed")


@pytest.fixture
def rocketmq_settings() -> Mapping[str, object]:
    return {"grpcServerPort": 0}


def test_orders_are_shipped_and_a_shortage_that_cannot_be_told_holds_its_message(
    rocketmq: SyncRocketMQ, sqlite_stock_room: SqlStockRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # the client writes its log there
    sqlite_stock_room.set_stock("tea", 3)
    reporter = Reporter(failures=1)
    listener = ShippingListener(sqlite_stock_room, reporter, Doubts(Holds(now_s=time.monotonic), 2, time.monotonic))
    endpoints = str(rocketmq.grpc_endpoint)
    consumer = order_consumer(listener, namesrv_addr="127.0.0.1:1", grpc_endpoints=endpoints, threads=2, loop=EventLoopThread())
    consumer.start()
    producer = rocketmq.producer("order_service")
    for order_id in ("1", "2"):
        body = created(order_id, {"tea": 2}).body
        producer.send(Message.of(order_created.TOPIC, body, tags=order_created.TAG))
        rocketmq.wait_until(lambda: sqlite_stock_room.find_shipment(order_id), what="the shipment")  # noqa: B023
    wait_until(lambda: bool(reporter.reported))
    consumer.stop(10)
    states = [shipment.state for shipment in map(sqlite_stock_room.find_shipment, ("1", "2")) if shipment is not None]
    assert (states, reporter.reported) == ([ShipmentState.SHIPPED, ShipmentState.SHORT], [("2", "tea")])
