"""The credit service as a process: builds consumer and HTTP, serves until SIGTERM or SIGINT, and stops them."""

import logging
from contextlib import ExitStack
from typing import Final

from prometheus_client import CollectorRegistry

from credit_service.adapters.celery_app import create_celery
from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.celery_tasks import CeleryTasks, CreditTasks
from credit_service.adapters.credit_metrics import CountedCrediting, HoldsCollector
from credit_service.adapters.failpoints import FailingDelivery, FailingListener, FailingTasks
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.order_consumer import order_consumer
from credit_service.adapters.redis_url import masked_redis
from credit_service.adapters.refusal_producer import PRODUCER_GROUP, RefusalProducer
from credit_service.adapters.repairs import Repairs
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.worker_heartbeats import WorkerHeartbeats
from credit_service.entrypoints.health import HealthSources
from credit_service.entrypoints.http import create_app
from credit_service.entrypoints.repairs import RepairDesk
from credit_service.service_layer.fair_crediting import FairCrediting
from credit_service.service_layer.order_listener import OrderListener
from credit_service.service_layer.patient_crediting import PatientCrediting
from credit_service.service_layer.refusing import Refusing
from credit_service.settings import MigrationSettings, ServiceSettings
from rocketmq_broker.client import ClientError
from service_runtime.database.database_url import masked
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from service_runtime.http.http_server import HttpServer
from service_runtime.messaging.consumer_thread import ConsumerThread
from service_runtime.messaging.message_sender import MessageSender
from service_runtime.observing.metrics import new_metrics, serve_metrics
from service_runtime.observing.trace_setup import start_tracing, trace_database, trace_requests, trace_tasks
from service_runtime.starting.configured_database import migrate_and_leave, open_to_serve
from service_runtime.starting.start import CannotStart, run_service, stop_on_signals

PROGRAM: Final = "credit_service"
_REDIS_TIMEOUT_S: Final = 2.0
_SEND_TIMEOUT_MS: Final = 3000

logger = logging.getLogger(PROGRAM)


def main() -> int:
    """Runs the command, and returns the exit status of `run_service`."""
    return run_service(PROGRAM, ServiceSettings, serve, MigrationSettings, migrate)


def migrate(settings: MigrationSettings) -> None:
    """Migrates the credit database. Raises DatabaseUnusable."""
    migrate_and_leave(settings, MIGRATIONS)


def serve(settings: ServiceSettings) -> None:
    """Consumes and serves until a signal. Raises CannotStart or DatabaseUnusable."""
    database_url, redis_url = settings.database_url.get_secret_value(), settings.redis_url.get_secret_value()
    with ExitStack() as opened:
        workers = WorkerHeartbeats(redis_url, timeout_s=_REDIS_TIMEOUT_S)
        opened.callback(workers.close)
        engine = open_to_serve(settings, MIGRATIONS)
        opened.callback(engine.dispose)
        if settings.traces_enabled:
            opened.callback(start_tracing(PROGRAM))
            trace_database(engine)
            trace_tasks()
        stopping = stop_on_signals()
        tasks, holds = CeleryTasks(create_celery(redis_url), redis_url), Holds()
        opened.callback(tasks.close)
        metrics = new_metrics() if settings.metrics_enabled else None
        ledger = Ledger(engine)
        sender = _sender(settings) if settings.cancel_refused else None
        refusing = Refusing(ledger, RefusalProducer(sender), settings.max_reconsume_times) if sender is not None else None
        consumer = _consumer(settings, tasks, holds, ledger, metrics, refusing)
        health = HealthSources(
            database=ledger, broker=consumer, workers=workers, holds=holds, queues=consumer, dead_letters=consumer
        )
        desk = RepairDesk(Repairs(engine), settings.repair_key.get_secret_value())
        app = create_app(ledger, health, repair_desk=desk, hosts=settings.known_hosts, threads=settings.http_threads)
        if metrics is not None:
            metrics.register(HoldsCollector(holds, consumer))
            serve_metrics(app, metrics)
        if settings.traces_enabled:
            trace_requests(app)
        server = HttpServer.of(app, settings)
        _start(consumer, sender)
        if sender is not None:
            opened.callback(sender.stop)
        # The last of these stops first: health checks are answered while the consumer's batches end.
        opened.callback(server.stop)
        opened.callback(consumer.stop, settings.stop_timeout_s)
        server.start()
        places = masked(database_url), masked_redis(redis_url), settings.namesrv_addr, ", ".join(server.addresses)
        logger.info("credits in %s, tasks in %s, name server %s, HTTP on %s", *places)
        print(f"credit service ready: {server.url}", flush=True)
        stopping.wait()


def _sender(settings: ServiceSettings) -> MessageSender:
    return MessageSender(PRODUCER_GROUP, namesrv_addr=settings.namesrv_addr, send_timeout_ms=_SEND_TIMEOUT_MS)


def _consumer(
    settings: ServiceSettings,
    tasks: CreditTasks,
    holds: Holds,
    ledger: Ledger,
    metrics: CollectorRegistry | None,
    refusing: Refusing | None,
) -> ConsumerThread:
    folder = settings.failpoints_folder
    failpoints = ArmedFailpoints(folder) if folder is not None else None
    by_celery = CeleryCrediting(
        tasks if failpoints is None else FailingTasks(tasks, failpoints), timeout_s=settings.task_timeout_s
    )
    patient = PatientCrediting(by_celery, holds, threads=settings.consumer_threads)
    fair = FairCrediting(patient, Doubts(holds, settings.consumer_threads, ledger))
    listener = OrderListener(fair if metrics is None else CountedCrediting(fair, metrics), refusing)
    return order_consumer(
        listener if failpoints is None else FailingListener(listener, failpoints),
        namesrv_addr=settings.namesrv_addr,
        threads=settings.consumer_threads,
        batch_size=settings.batch_size,
        max_reconsume_times=settings.max_reconsume_times,
        rpc_hook=FailingDelivery(failpoints) if failpoints is not None else None,
    )


def _start(consumer: ConsumerThread, sender: MessageSender | None) -> None:
    try:
        if sender is not None:
            sender.start()
        consumer.start()
    except ClientError as error:
        raise CannotStart(f"cannot join its groups on the broker: {error}") from error
