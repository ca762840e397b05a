"""The inventory service as a process: builds consumer and HTTP, serves until a signal, and stops them."""

import logging
from contextlib import ExitStack
from typing import Final

from inventory_service.adapters.inventory_metrics import CountedStockRoom
from inventory_service.adapters.order_consumer import order_consumer
from inventory_service.adapters.shortage_producer import PRODUCER_GROUP, ShortageProducer
from inventory_service.adapters.stock_room import SqlStockRoom
from inventory_service.adapters.tables import MIGRATIONS
from inventory_service.entrypoints.http import create_app
from inventory_service.service_layer.order_listener import OrderListener
from inventory_service.settings import MigrationSettings, Settings
from rocketmq_broker.client import ClientError
from service_runtime.database.database_url import masked
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from service_runtime.http.http_server import HttpServer
from service_runtime.messaging.consumer_thread import ConsumerThread
from service_runtime.messaging.message_sender import MessageSender
from service_runtime.observing.metrics import new_metrics, serve_metrics
from service_runtime.observing.trace_setup import start_tracing, trace_database, trace_requests
from service_runtime.starting.configured_database import migrate_and_leave, open_to_serve
from service_runtime.starting.start import CannotStart, run_service, stop_on_signals

PROGRAM: Final = "inventory_service"

logger = logging.getLogger(PROGRAM)


def main() -> int:
    """Runs the command, and returns the exit status of `run_service`."""
    return run_service(PROGRAM, Settings, serve, MigrationSettings, migrate)


def migrate(settings: MigrationSettings) -> None:
    """Migrates the inventory database. Raises DatabaseUnusable."""
    migrate_and_leave(settings, MIGRATIONS)


def serve(settings: Settings) -> None:
    """Consumes and serves until a signal. Raises CannotStart or DatabaseUnusable."""
    with ExitStack() as opened:
        engine = open_to_serve(settings, MIGRATIONS)
        opened.callback(engine.dispose)
        if settings.traces_enabled:
            opened.callback(start_tracing(PROGRAM))
            trace_database(engine)
        stopping = stop_on_signals()
        stock_room = SqlStockRoom(engine)
        sender = MessageSender(PRODUCER_GROUP, namesrv_addr=settings.namesrv_addr, send_timeout_ms=settings.send_timeout_ms)
        metrics = new_metrics() if settings.metrics_enabled else None
        counted = stock_room if metrics is None else CountedStockRoom(stock_room, metrics)
        holds = Holds()
        listener = OrderListener(counted, ShortageProducer(sender), Doubts(holds, settings.consumer_threads))
        consumer = order_consumer(listener, namesrv_addr=settings.namesrv_addr, threads=settings.consumer_threads)
        app = create_app(
            stock_room, consumer, holds, hosts=settings.known_hosts, threads=settings.http_threads, guard=settings.write_guard
        )
        if metrics is not None:
            serve_metrics(app, metrics)
        if settings.traces_enabled:
            trace_requests(app)
        server = HttpServer.of(app, settings)
        _start(sender, consumer)
        # The last of these stops first: messages in work may still have to report a shortage.
        opened.callback(sender.stop)
        opened.callback(server.stop)
        opened.callback(consumer.stop, settings.stop_timeout_s)
        server.start()
        places = masked(settings.database_url.get_secret_value()), settings.namesrv_addr, ", ".join(server.addresses)
        logger.info("inventory in %s, name server %s, HTTP on %s", *places)
        print(f"inventory service ready: {server.url}", flush=True)
        stopping.wait()


def _start(sender: MessageSender, consumer: ConsumerThread) -> None:
    try:
        sender.start()
        consumer.start()
    except ClientError as error:
        raise CannotStart(f"cannot join its groups on the broker: {error}") from error
