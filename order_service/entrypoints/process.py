"""The order service as a process: builds everything, serves until SIGTERM or SIGINT, takes it down again."""

import logging

from pydantic import ValidationError
from pydantic_settings import CliApp

from broker.client import ClientError
from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_store import OrderStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.failpoints import Failpoints, parse_failpoints
from order_service.service_layer.transaction_listener import OrderTransactionListener
from order_service.settings import Settings
from service_runtime.database import open_database
from service_runtime.database_url import masked
from service_runtime.engine import DatabaseUnusable
from service_runtime.http_server import HttpServer
from service_runtime.start import CannotStart, first_error, log_to_stderr, say, stop_on_signals

PROGRAM = "order_service"

logger = logging.getLogger(PROGRAM)


def main() -> int:
    """The process's exit status: 0 after a signal, 1 when it cannot start, 2 when it was told nonsense."""
    log_to_stderr()
    try:
        settings = CliApp.run(Settings)
        failpoints = parse_failpoints(settings.failpoints)
    except ValidationError as error:
        return say(PROGRAM, first_error(error), 2)
    except ValueError as error:
        return say(PROGRAM, f"FAILPOINTS: {error}", 2)
    try:
        run(settings, failpoints)
    except (CannotStart, DatabaseUnusable) as error:
        return say(PROGRAM, str(error), 1)
    except KeyboardInterrupt:
        return say(PROGRAM, "interrupted while starting", 130)
    return 0


def run(settings: Settings, failpoints: Failpoints) -> None:
    """Serves until a signal. Raises CannotStart or DatabaseUnusable."""
    url = settings.database_url.get_secret_value()
    engine = open_database(url, migrations=MIGRATIONS, start_timeout_s=settings.database_start_timeout_s)
    stopping = stop_on_signals()
    store = OrderStore(engine)
    listener = OrderTransactionListener(store, order_limit_cents=settings.order_limit_cents, failpoints=failpoints)
    broker = OrderBroker(listener, namesrv_addr=settings.namesrv_addr, send_timeout_ms=settings.send_timeout_ms)
    try:
        app = create_app(store, broker)
        server = HttpServer(app, host=settings.http_host, port=settings.http_port, threads=settings.http_threads)
        _start(broker)
        try:
            server.start()
            logger.info("orders in %s, name server %s", masked(url), settings.namesrv_addr)
            print(f"order service ready: {server.url}", flush=True)
            stopping.wait()
        finally:
            server.stop()
            broker.stop()
    finally:
        engine.dispose()


def _start(broker: OrderBroker) -> None:
    try:
        broker.start()
    except ClientError as error:
        raise CannotStart(f"cannot join the producer group: {error}") from error
