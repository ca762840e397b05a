"""Builds the parts of the inventory service's process, such as the consumer and the HTTP application."""

from typing import Final

from inventory_service.adapters.inventory_metrics import CountedStockRoom
from inventory_service.adapters.order_consumer import order_consumer
from inventory_service.adapters.shortage_producer import PRODUCER_GROUP, ShortageProducer
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS
from inventory_service.entrypoints.http import create_app
from inventory_service.service_layer.order_listener import ShippingListener
from inventory_service.settings import InventorySettings, MigrationSettings
from rocketmq_broker.client import EventLoopThread
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from service_runtime.messaging.database_positions import DatabasePositions
from service_runtime.messaging.sender_thread import SenderThread
from service_runtime.service import OpenedService, Service, ServiceParts


def build(opened: OpenedService[InventorySettings]) -> ServiceParts:
    """Builds the HTTP application, and the consumer that ships orders and reports shortages."""
    settings, world = opened.settings, opened.world
    stock_room = SqlStockRoom(opened.engine, world)
    address, timeout_ms = settings.namesrv_addr, settings.send_timeout_ms
    sender = SenderThread(PRODUCER_GROUP, namesrv_addr=address, send_timeout_ms=timeout_ms, loop=EventLoopThread())
    counted = stock_room if opened.metrics is None else CountedStockRoom(stock_room, opened.metrics)
    holds = Holds(now_s=world.steady_s)
    to_do = "Stock that was entered since is lost: enter it again"
    results = DatabasePositions(stock_room.positions, "the inventory database", "inventory", to_do, opened.metrics)
    doubts = Doubts(holds, settings.consumer_threads, world.steady_s)
    acknowledging = stock_room.positions.acknowledging
    listener = ShippingListener(counted, ShortageProducer(sender), doubts, acknowledging=acknowledging)
    consumer = order_consumer(
        listener, namesrv_addr=address, threads=settings.consumer_threads, loop=EventLoopThread(), results=results
    )
    app = create_app(
        stock_room, consumer, holds, world, results=results,
        hosts=settings.known_hosts, threads=settings.http_threads, guard=settings.write_guard,
    )  # fmt: skip
    return ServiceParts(app=app, consumer=consumer, sender=sender, places=f"inventory in {opened.database}")


SERVICE: Final = Service(
    program="inventory_service",
    migrations=MIGRATIONS,
    settings_class=InventorySettings,
    migration_settings_class=MigrationSettings,
    build=build,
)
