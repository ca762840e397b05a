"""Builds the parts of the credit service's process, such as the consumer and the HTTP application."""

from typing import Final

from prometheus_client import CollectorRegistry

from credit_service.adapters.celery_app import create_celery
from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.celery_tasks import CeleryTasks, CreditTasks
from credit_service.adapters.credit_metrics import CountedCrediting, HoldsCollector
from credit_service.adapters.failpoints import FailingDelivery, FailingOrderListener, FailingTasks
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.order_consumer import order_consumer
from credit_service.adapters.refusal_producer import PRODUCER_GROUP, RefusalProducer
from credit_service.adapters.repairs import Repairs
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.worker_heartbeats import WorkerHeartbeats
from credit_service.entrypoints.health import HealthSources
from credit_service.entrypoints.http import create_app
from credit_service.entrypoints.repairs import RepairDesk
from credit_service.service_layer.fair_crediting import FairCrediting
from credit_service.service_layer.gathered_crediting import GatheredCrediting
from credit_service.service_layer.order_listener import CreditingListener
from credit_service.service_layer.patient_crediting import PatientCrediting
from credit_service.service_layer.refusing import Refusing
from credit_service.settings import CreditSettings, MigrationSettings, masked_redis
from rocketmq_broker.client import EventLoopThread, ResultPositions
from rocketmq_broker.world import World
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from service_runtime.failing.holds import Holds
from service_runtime.failing.refusals import Doubts
from service_runtime.messaging.consumer_thread import ConsumerThread
from service_runtime.messaging.database_positions import DatabasePositions
from service_runtime.messaging.sender_thread import SenderThread
from service_runtime.observing.trace_setup import trace_tasks
from service_runtime.service import OpenedService, Service, ServiceParts

_REDIS_TIMEOUT_S: Final = 2.0
_SEND_TIMEOUT_MS: Final = 3000
_AFTER_A_SETBACK: Final = "Repairs that were applied since are lost: run the reconciliation"


def build(opened: OpenedService[CreditSettings]) -> ServiceParts:
    """Builds the HTTP application, and the consumer that sends orders to Celery."""
    settings, metrics, world = opened.settings, opened.metrics, opened.world
    redis_url = settings.redis_url.get_secret_value()
    workers = WorkerHeartbeats(redis_url, timeout_s=_REDIS_TIMEOUT_S)
    opened.closing.callback(workers.close)
    if settings.traces_enabled:
        trace_tasks()
    tasks, holds = CeleryTasks(create_celery(redis_url), redis_url), Holds(now_s=world.steady_s)
    opened.closing.callback(tasks.close)
    ledger = Ledger(opened.engine, world)
    sender = _sender(settings) if settings.cancel_refused else None
    refusing = Refusing(ledger, RefusalProducer(sender), settings.max_reconsume_times) if sender is not None else None
    results = DatabasePositions(ledger.positions, "the credit database", "credit", _AFTER_A_SETBACK, metrics)
    consumer = _consumer(settings, tasks, holds, ledger, results, metrics, refusing, world)
    health = HealthSources(
        database=ledger, broker=consumer, workers=workers, holds=holds, queues=consumer, dead_letters=consumer,
        results=results, now_s=world.steady_s,
    )  # fmt: skip
    desk = RepairDesk(Repairs(opened.engine, world), settings.repair_key.get_secret_value())
    app = create_app(ledger, health, world, repair_desk=desk, hosts=settings.known_hosts, threads=settings.http_threads)
    if metrics is not None:
        metrics.register(HoldsCollector(holds, consumer))
    places = f"credits in {opened.database}, tasks in {masked_redis(redis_url)}"
    return ServiceParts(app=app, consumer=consumer, sender=sender, places=places)


def _sender(settings: CreditSettings) -> SenderThread:
    address, loop = settings.namesrv_addr, EventLoopThread()
    return SenderThread(PRODUCER_GROUP, namesrv_addr=address, send_timeout_ms=_SEND_TIMEOUT_MS, loop=loop)


def _consumer(
    settings: CreditSettings,
    tasks: CreditTasks,
    holds: Holds,
    ledger: Ledger,
    results: ResultPositions,
    metrics: CollectorRegistry | None,
    refusing: Refusing | None,
    world: World,
) -> ConsumerThread:
    folder = settings.failpoints_folder
    failpoints = ArmedFailpoints(folder, world.wall_ms) if folder is not None else None
    by_celery = CeleryCrediting(
        tasks if failpoints is None else FailingTasks(tasks, failpoints), world, timeout_s=settings.task_timeout_s
    )
    gathered = GatheredCrediting(by_celery, world, batch_size=settings.batch_size)
    patient = PatientCrediting(by_celery, holds, threads=settings.consumer_threads, gathered=gathered)
    fair = FairCrediting(patient, Doubts(holds, settings.consumer_threads, world.steady_s, ledger))
    listener = CreditingListener(
        fair if metrics is None else CountedCrediting(fair, metrics), refusing, ledger.positions.acknowledging
    )
    return order_consumer(
        listener if failpoints is None else FailingOrderListener(listener, failpoints),
        namesrv_addr=settings.namesrv_addr,
        threads=settings.consumer_threads,
        batch_size=settings.batch_size,
        max_reconsume_times=settings.max_reconsume_times,
        loop=EventLoopThread(),
        rpc_hook=FailingDelivery(failpoints) if failpoints is not None else None,
        results=results,
    )


SERVICE: Final = Service(
    program="credit_service",
    migrations=MIGRATIONS,
    settings_class=CreditSettings,
    migration_settings_class=MigrationSettings,
    build=build,
)
