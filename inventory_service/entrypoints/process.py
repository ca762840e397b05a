"""Builds the parts of the inventory service's process, such as the consumer and the HTTP application."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter
from sqlmodel import Session

from inventory_service.adapters.stock_room import CONSUMER, Applied, SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS
from inventory_service.domain.shipment import Instruction, Shipment, ShipmentState
from inventory_service.entrypoints.http import create_app
from inventory_service.service_layer.shipping import TAGS, Shipping, instruction_of
from inventory_service.settings import InventoryDatabaseSettings, InventorySettings, MigrationSettings
from order_messages.body import UnreadableBody
from rocketmq_broker.client import EventLoopThread
from rocketmq_broker.world import current_world
from service_runtime.http.readiness import Need
from service_runtime.inbox.backlog import InboxBacklog
from service_runtime.inbox.bell_thread import BellThread
from service_runtime.inbox.health import ServiceHealth
from service_runtime.inbox.inbox_command import inbox_command
from service_runtime.inbox.inbox_listener import BatchedStore, InboxListener, inbox_consumer
from service_runtime.inbox.outbox import OutboxDrain, SenderThread
from service_runtime.service import OpenedService, Service, ServiceParts

PROGRAM: Final = "inventory_service"
_BATCH_SIZE: Final = 64
"""The maximum number of orders in a database transaction, which locks their articles."""
_UNSENT: Final = "The log says why they cannot be sent. Until then the order service cancels no such order."


def build(opened: OpenedService[InventorySettings]) -> ServiceParts:
    """Builds the HTTP application, the consumer that stores orders in the inbox, and two threads.

    One thread ships the orders in the inbox. The other thread sends shortages to the order service.
    """
    settings, metrics, world = opened.settings, opened.metrics, opened.world
    address, timeout_ms = settings.namesrv_addr, settings.send_timeout_ms
    count = message_counter(metrics)

    def applied(instruction: Instruction, shipment: Shipment) -> None:
        count(instruction, shipment)
        if shipment.state is ShipmentState.SHORT:
            shortages.ring()

    stock_room = SqlStockRoom(opened.engine, world, applied, metrics)
    sender = SenderThread(CONSUMER, namesrv_addr=address, send_timeout_ms=timeout_ms, loop=EventLoopThread())
    shortages = BellThread("shortages to the order service", OutboxDrain(stock_room.shortages, sender.send).send_due)
    bell = BellThread("shipping", lambda: ship_due(stock_room, settings.max_tries))
    listener = InboxListener(
        read=instruction_of, unreadable=UnreadableBody, store=BatchedStore(stock_room.store, world), ring=bell.ring
    )
    results = stock_room.positions
    consumer = inbox_consumer(CONSUMER, TAGS, listener, namesrv_addr=address, loop=EventLoopThread(), results=results)
    backlog, unsent = (InboxBacklog(rows, PROGRAM, world.wall_ms) for rows in (stock_room.inbox, stock_room.shortages))
    if metrics is not None:
        metrics.register(backlog)
    health = ServiceHealth(
        service="inventory", database=stock_room, consumer=consumer, backlog=backlog,
        outbox=Need("shortages", unsent, _UNSENT), results=results, now_s=world.steady_s,
    )  # fmt: skip
    hosts, threads = settings.known_hosts, settings.http_threads
    app = create_app(stock_room, health, world, hosts=hosts, threads=threads, guard=settings.write_guard)
    places = f"inventory in {opened.database}"
    return ServiceParts(app=app, consumer=consumer, sender=sender, threads=(shortages, bell), places=places)


def message_counter(registry: CollectorRegistry | None) -> Applied:
    """Returns the function that counts a message. Registers its counter in `registry`, if a registry is given."""
    messages = Counter(
        "inventory_messages", "Messages, by the state of the shipment after them.", ["message", "state"], registry=registry
    )

    def count(instruction: Instruction, shipment: Shipment) -> None:
        messages.labels("cancelled" if instruction.lines is None else "created", shipment.state.value).inc()

    return count


def ship_due(stock_room: SqlStockRoom, max_tries: int) -> bool:
    """Processes one batch of the messages that are due. Returns True if more may be due. Raises DatabaseFailure."""
    shipping: Shipping[Session] = Shipping(stock_room)
    inbox = stock_room.inbox
    if not inbox.is_due():
        return False
    return inbox.drain(shipping.ship, max_tries=max_tries, batch_size=_BATCH_SIZE, max_batches=1).handled > 0


SERVICE: Final = Service(
    program=PROGRAM,
    migrations=MIGRATIONS,
    settings_class=InventorySettings,
    migration_settings_class=MigrationSettings,
    build=build,
    commands={
        "inbox": inbox_command(
            InventoryDatabaseSettings, PROGRAM, MIGRATIONS, lambda engine: SqlStockRoom(engine, current_world()).inbox
        )
    },
)
