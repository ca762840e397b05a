"""Builds the parts of the credit service's process, such as the consumer and the HTTP application."""

from typing import Final

from credit_service.adapters.credit_metrics import CreditCollector
from credit_service.adapters.drain_task import TaskSender, create_celery
from credit_service.adapters.failpoints import CreditFailpoints
from credit_service.adapters.ledger import CONSUMER, Ledger
from credit_service.adapters.repairs import Repairs
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.workers import Workers, redis_client
from credit_service.entrypoints.health import CreditHealth
from credit_service.entrypoints.http import create_app
from credit_service.service_layer.crediting import TAGS, entry_of
from credit_service.settings import CreditDatabaseSettings, CreditSettings, MigrationSettings, masked_redis
from order_messages.body import UnreadableBody
from rocketmq_broker.client import EventLoopThread
from rocketmq_broker.world import current_world
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from service_runtime.http.readiness import Need
from service_runtime.inbox.backlog import InboxBacklog
from service_runtime.inbox.bell_thread import BellThread
from service_runtime.inbox.inbox_command import inbox_command
from service_runtime.inbox.inbox_listener import BatchedStore, InboxListener, inbox_consumer
from service_runtime.inbox.outbox import OutboxDrain, SenderThread
from service_runtime.observing.trace_setup import trace_tasks
from service_runtime.service import OpenedService, Service, ServiceParts

PROGRAM: Final = "credit_service"
_REDIS_TIMEOUT_S: Final = 2.0
_SEND_TIMEOUT_MS: Final = 3000
_UNSENT: Final = "They are sent to the order service when the broker takes them."


def build(opened: OpenedService[CreditSettings]) -> ServiceParts:
    """Builds the HTTP application, the consumer that stores orders in the inbox, and the threads that send tasks and refusals."""
    settings, metrics, world = opened.settings, opened.metrics, opened.world
    redis_url, address = settings.redis_url.get_secret_value(), settings.namesrv_addr
    if settings.traces_enabled:
        trace_tasks()
    ledger = Ledger(opened.engine, world, metrics)
    redis, celery = redis_client(redis_url, _REDIS_TIMEOUT_S), create_celery(redis_url)
    for closing in (redis, celery):
        opened.closing.callback(closing.close)
    workers, tasks = Workers(redis), TaskSender(celery, redis, ledger.inbox)
    folder = settings.failpoints_folder
    failpoints = None if folder is None else CreditFailpoints(ArmedFailpoints(folder, world.wall_ms))
    send_if_due = tasks.send_if_due if failpoints is None else failpoints.sending(tasks)
    bell = BellThread("tasks for the workers", send_if_due)
    sender = SenderThread(CONSUMER, namesrv_addr=address, send_timeout_ms=_SEND_TIMEOUT_MS, loop=EventLoopThread())
    refusals = BellThread("refusals to the order service", OutboxDrain(ledger.refusals, sender.send).send_due)
    listener = InboxListener(read=entry_of, unreadable=UnreadableBody, store=BatchedStore(ledger.store, world), ring=bell.ring)
    consumer = inbox_consumer(
        CONSUMER,
        TAGS,
        listener if failpoints is None else failpoints.listener(listener),
        namesrv_addr=address,
        loop=EventLoopThread(),
        rpc_hook=failpoints,
        results=ledger.positions,
    )
    backlog, unsent = (InboxBacklog(rows, PROGRAM, world.wall_ms) for rows in (ledger.inbox, ledger.refusals))
    health = CreditHealth(
        service="credit", database=ledger, consumer=consumer, backlog=backlog,
        outbox=Need("refusals", unsent, _UNSENT), results=ledger.positions, workers=workers, now_s=world.steady_s,
    )  # fmt: skip
    app = create_app(
        ledger,
        health,
        world,
        repairs=Repairs(opened.engine, world),
        repair_key=settings.repair_key.get_secret_value(),
        hosts=settings.known_hosts,
        threads=settings.http_threads,
    )
    if metrics is not None:
        metrics.register(backlog)
        metrics.register(CreditCollector(ledger, consumer))
    places = f"credits in {opened.database}, tasks in {masked_redis(redis_url)}"
    return ServiceParts(app=app, consumer=consumer, sender=sender, threads=(bell, refusals), places=places)


SERVICE: Final = Service(
    program=PROGRAM,
    migrations=MIGRATIONS,
    settings_class=CreditSettings,
    migration_settings_class=MigrationSettings,
    build=build,
    commands={
        "inbox": inbox_command(CreditDatabaseSettings, PROGRAM, MIGRATIONS, lambda engine: Ledger(engine, current_world()).inbox)
    },
)
