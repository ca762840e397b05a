"""The order service with an outbox instead of transactional messages: `python -m lab.benchmarks.orders.outbox_service`.

HTTP, tables and settings are those of the order service. The environment variable OUTBOX_RELAY is `polled` or `notified`.
"""

import os
import sys
from contextlib import ExitStack
from functools import partial

from lab.benchmarks.orders.outbox import OutboxRelay, OutboxSender, OutboxStore
from order_service.adapters.tables import MIGRATIONS
from order_service.entrypoints.http import create_app
from order_service.settings import MigrationSettings, OrderSettings
from rocketmq_broker.world import current_world
from service_runtime.http.http_server import HttpServer
from service_runtime.starting.configured_database import migrate_and_leave, open_to_serve
from service_runtime.starting.start import Command, run_service, stop_on_signals

RELAY = "OUTBOX_RELAY"


def serve(settings: OrderSettings) -> None:
    """Serves until SIGTERM or SIGINT. Raises CannotStart or DatabaseUnusable."""
    with ExitStack() as opened:
        engine = open_to_serve(settings, MIGRATIONS)
        opened.callback(engine.dispose)
        stopping = stop_on_signals()
        store = OutboxStore(engine)
        relay = OutboxRelay(store, namesrv_addr=settings.namesrv_addr, is_notified=os.environ[RELAY] == "notified")
        app = create_app(
            store,
            OutboxSender(store, relay),
            current_world(),
            hosts=settings.known_hosts,
            threads=settings.http_threads,
            placed_at_once=settings.placed_at_once,
        )
        server = HttpServer(app, settings, current_world())
        relay.start()
        opened.callback(relay.stop)
        opened.callback(server.stop)
        server.start()
        stopping.wait()


if __name__ == "__main__":
    migrate = Command(MigrationSettings, partial(migrate_and_leave, migrations=MIGRATIONS))
    sys.exit(run_service("outbox_service", OrderSettings, serve, {"migrate": migrate}))
