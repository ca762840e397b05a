"""The order service as a process: builds all parts, serves until SIGTERM or SIGINT, and stops them."""

import logging
from contextlib import ExitStack
from typing import Final

from prometheus_client import CollectorRegistry

from order_service.adapters.compensation_consumer import compensation_consumer
from order_service.adapters.failing_network import FailingNetwork
from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_metrics import counted
from order_service.adapters.order_store import SqlOrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.service_layer.armed_failpoints import FailingListener
from order_service.service_layer.cancelling import OrderCancelling
from order_service.service_layer.compensation_listener import CompensationListener
from order_service.service_layer.failpoints import parse_failpoints
from order_service.service_layer.transaction_listener import transaction_listeners
from order_service.settings import AdoptionSettings, MigrationSettings, Settings
from rocketmq_broker.client import ClientError
from service_runtime.database.database_errors import DatabaseFailure
from service_runtime.database.database_url import masked
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from service_runtime.http.http_server import HttpServer
from service_runtime.messaging.consumer_thread import ConsumerThread
from service_runtime.observing.metrics import new_metrics, serve_metrics
from service_runtime.observing.trace_setup import start_tracing, trace_database, trace_requests
from service_runtime.starting.configured_database import migrate_and_leave, open_migrated, open_to_serve
from service_runtime.starting.start import CannotStart, Command, run_service, stop_on_signals
from service_runtime.times import rfc3339

PROGRAM: Final = "order_service"

logger = logging.getLogger(PROGRAM)


def main() -> int:
    """Runs the command, and returns the exit status of `run_service`."""
    more = {"adopt-history": Command(AdoptionSettings, adopt_history, if_told_to_stop=130)}
    return run_service(PROGRAM, Settings, serve, MigrationSettings, migrate, more)


def migrate(settings: MigrationSettings) -> None:
    """Migrates the order database. Raises DatabaseUnusable."""
    migrate_and_leave(settings, MIGRATIONS)


def adopt_history(settings: AdoptionSettings) -> None:
    """Makes the order database decide all half messages until now, and says so. Raises CannotStart or DatabaseUnusable."""
    engine = open_migrated(settings, MIGRATIONS)
    try:
        adopted_at_ms = SqlOrderStore(engine).adopt_history(settings.adoption_reason)
    except DatabaseFailure as error:
        raise CannotStart(f"the history was not adopted: {error}") from None
    finally:
        engine.dispose()
    print(
        f"database {masked(settings.database_url.get_secret_value())}: it decides for all half messages until "
        f"{rfc3339(adopted_at_ms)}; what it does not have is rolled back when the broker asks next",
        flush=True,
    )


def serve(settings: Settings) -> None:
    """Serves until a signal. Raises CannotStart or DatabaseUnusable."""
    with ExitStack() as opened:
        engine = open_to_serve(settings, MIGRATIONS)
        opened.callback(engine.dispose)
        if settings.traces_enabled:
            opened.callback(start_tracing(PROGRAM))
            trace_database(engine)
        stopping = stop_on_signals()
        store = SqlOrderStore(engine)
        metrics = new_metrics() if settings.metrics_enabled else None
        broker = _broker(settings, store, metrics)
        app = create_app(
            store,
            broker,
            hosts=settings.known_hosts,
            threads=settings.http_threads,
            placed_at_once=settings.placed_at_once,
            payment_deadline_ms=round(settings.payment_deadline_s * 1000),
            guard=settings.write_guard,
        )
        if metrics is not None:
            serve_metrics(app, metrics)
        if settings.traces_enabled:
            trace_requests(app)
        server = HttpServer.of(app, settings)
        listener = CompensationListener(OrderCancelling(store, broker))
        compensations = compensation_consumer(listener, namesrv_addr=settings.namesrv_addr)
        _start(broker, compensations)
        # The last of these stops first: running requests need the broker, and both need the database.
        opened.callback(broker.stop)
        opened.callback(server.stop)
        opened.callback(compensations.stop, settings.stop_timeout_s)
        server.start()
        places = masked(settings.database_url.get_secret_value()), settings.namesrv_addr, ", ".join(server.addresses)
        logger.info("orders in %s, name server %s, HTTP on %s", *places)
        print(f"order service ready: {server.url}", flush=True)
        stopping.wait()


def _broker(settings: Settings, store: SqlOrderStore, metrics: CollectorRegistry | None) -> OrderBroker:
    failpoints = parse_failpoints(settings.failpoints)
    listeners = transaction_listeners(store, order_limit_cents=settings.order_limit_cents, failpoints=failpoints)
    network = None
    if settings.failpoints_folder is not None:
        armed = ArmedFailpoints(settings.failpoints_folder)
        network = FailingNetwork(armed)
        listeners = {topic: FailingListener(listener, armed, network.lose_decision) for topic, listener in listeners.items()}
    if metrics is not None:
        listeners = counted(listeners, metrics)
    return OrderBroker(listeners, namesrv_addr=settings.namesrv_addr, send_timeout_ms=settings.send_timeout_ms, rpc_hook=network)


def _start(broker: OrderBroker, compensations: ConsumerThread) -> None:
    try:
        broker.start()
    except ClientError as error:
        raise CannotStart(f"cannot join the producer group: {error}") from error
    try:
        compensations.start()
    except ClientError as error:
        raise CannotStart(f"cannot join the consumer group: {error}") from error
