"""Builds the parts of the order service's process, and implements the command adopt-history."""

from typing import Final

from prometheus_client import CollectorRegistry

from order_service.adapters.failpoints import FailingNetwork, FailingTransactionListener, parse_failpoints
from order_service.adapters.order_broker import OrderBroker, compensation_consumer
from order_service.adapters.order_metrics import counted
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.compensation_listener import CompensationListener
from order_service.service_layer.transaction_listener import transaction_listeners
from order_service.settings import AdoptionSettings, MigrationSettings, OrderSettings
from rocketmq_broker.client import EventLoopThread
from rocketmq_broker.world import World, current_world
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.database.database_url import masked
from service_runtime.failing.armed_failpoints import AnyOf, ArmedFailpoints, Failpoints
from service_runtime.service import OpenedService, Service, ServiceParts
from service_runtime.starting.configured_database import open_migrated
from service_runtime.starting.start import CannotStart, Command
from service_runtime.text import rfc3339

PROGRAM: Final = "order_service"


def adopt_history(settings: AdoptionSettings) -> None:
    """Accepts the order database for all half messages sent until now, and prints a confirmation.

    Raises CannotStart or DatabaseUnusable.
    """
    engine = open_migrated(settings, MIGRATIONS)
    try:
        adopted_at_ms = SqlOrderStore(engine, current_world()).history.adopt(settings.adoption_reason)
    except DatabaseFailure as error:
        raise CannotStart(f"adopt-history failed: {error}") from None
    finally:
        engine.dispose()
    print(
        f"database {masked(settings.database_url.get_secret_value())} now decides all half messages until "
        f"{rfc3339(adopted_at_ms)}; transactions that it does not have are rolled back at the next check-back",
        flush=True,
    )


def build(opened: OpenedService[OrderSettings]) -> ServiceParts:
    """Builds the HTTP application, the transaction producer, and the consumer of compensating messages."""
    settings, world = opened.settings, opened.world
    store = SqlOrderStore(opened.engine, world)
    broker = _broker(settings, store, opened.metrics, world)
    app = create_app(
        store,
        broker,
        world,
        hosts=settings.known_hosts,
        threads=settings.http_threads,
        placed_at_once=settings.placed_at_once,
        payment_deadline_ms=round(settings.payment_deadline_s * 1000),
        guard=settings.write_guard,
    )
    listener = CompensationListener(OrderCancelling(store, broker, world.wall_ms))
    consumer = compensation_consumer(listener, namesrv_addr=settings.namesrv_addr, loop=EventLoopThread())
    return ServiceParts(app=app, consumer=consumer, sender=broker, places=f"orders in {opened.database}")


def _broker(settings: OrderSettings, store: SqlOrderStore, metrics: CollectorRegistry | None, world: World) -> OrderBroker:
    listeners = transaction_listeners(store, order_limit_cents=settings.order_limit_cents, now_ms=world.wall_ms)
    armed: list[Failpoints] = [*parse_failpoints(settings.failpoints)]
    if settings.failpoints_folder is not None:
        armed.append(ArmedFailpoints(settings.failpoints_folder, world.wall_ms))
    failpoints = AnyOf(armed)
    network = FailingNetwork(failpoints)
    if armed:
        listeners = {
            topic: FailingTransactionListener(listener, failpoints, network.lose_decision, world.sleep)
            for topic, listener in listeners.items()
        }
    if metrics is not None:
        listeners = counted(listeners, metrics)
    return OrderBroker(
        listeners,
        namesrv_addr=settings.namesrv_addr,
        send_timeout_ms=settings.send_timeout_ms,
        loop=EventLoopThread(),
        witness=store.history.witness,
        rpc_hook=network if armed else None,
        history=store.history,
    )


SERVICE: Final = Service(
    program=PROGRAM,
    migrations=MIGRATIONS,
    settings_class=OrderSettings,
    migration_settings_class=MigrationSettings,
    build=build,
    commands={"adopt-history": Command(AdoptionSettings, adopt_history)},
)
