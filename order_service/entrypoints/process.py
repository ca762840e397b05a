"""The order service as a process: builds everything, serves until SIGTERM or SIGINT, takes it down again."""

import logging
import signal
import sys
import threading
import time
from types import FrameType

from flask import Flask
from pydantic import ValidationError
from pydantic_settings import CliApp
from waitress.server import create_server  # type: ignore[import-untyped]

from broker.client import ClientError
from order_service.adapters.database import DatabaseUnusable, masked, open_database
from order_service.adapters.order_broker import OrderBroker
from order_service.adapters.order_store import OrderStore
from order_service.entrypoints.http import MAX_BODY_BYTES, create_app
from order_service.failpoints import Failpoints, parse_failpoints
from order_service.service_layer.transaction_listener import OrderTransactionListener
from order_service.settings import Settings

logger = logging.getLogger("order_service")


class CannotStart(Exception):
    """Why the service does not start, in one line."""


def main() -> int:
    """The process's exit status: 0 after a signal, 1 when it cannot start, 2 when it was told nonsense."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    try:
        settings = CliApp.run(Settings)
        failpoints = parse_failpoints(settings.failpoints)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        return _say(f"{'.'.join(str(part) for part in wrong['loc'])}: {wrong['msg']}", 2)
    except ValueError as error:
        return _say(f"FAILPOINTS: {error}", 2)
    try:
        run(settings, failpoints)
    except (CannotStart, DatabaseUnusable) as error:
        return _say(str(error), 1)
    return 0


def run(settings: Settings, failpoints: Failpoints) -> None:
    """Serves until a signal. Raises CannotStart or DatabaseUnusable."""
    stopping = stop_on_signals()
    url = settings.database_url.get_secret_value()
    engine = open_database(url, start_timeout_s=settings.database_start_timeout_s)
    store = OrderStore(engine)
    listener = OrderTransactionListener(store, order_limit_cents=settings.order_limit_cents, failpoints=failpoints)
    broker = OrderBroker(listener, namesrv_addr=settings.namesrv_addr, send_timeout_ms=settings.send_timeout_ms)
    try:
        server = HttpServer(create_app(store, broker), settings)
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


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set; main thread only."""
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return stopping


class HttpServer:
    """Waitress in a thread of its own. The port is taken when this is made, requests are served from `start` on."""

    def __init__(self, app: Flask, settings: Settings) -> None:
        """Raises CannotStart if the address cannot be listened on."""
        try:
            self._server = create_server(
                app,
                host=settings.http_host,
                port=settings.http_port,
                threads=settings.http_threads,
                max_request_body_size=4 * MAX_BODY_BYTES,
                ident=None,
                clear_untrusted_proxy_headers=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CannotStart(f"cannot listen on {settings.http_host}:{settings.http_port}: {reason}") from None
        host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
        self.url = f"http://{host}:{self._server.effective_port}"
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Takes no more requests; those that run may finish and be answered within seconds."""
        self._server.accepting = False
        self._server.task_dispatcher.shutdown(cancel_pending=True, timeout=5)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and any(
            channel.total_outbufs_len for channel in list(self._server.active_channels.values())
        ):
            time.sleep(0.01)


def _say(message: str, status: int) -> int:
    print(f"order_service: {message}", file=sys.stderr)
    return status
