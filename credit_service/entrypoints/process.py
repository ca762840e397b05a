"""The credit service as a process: consumer and HTTP; builds everything, serves until SIGTERM or SIGINT, takes it down again."""

import logging

from pydantic import ValidationError
from pydantic_settings import CliApp

from broker.client import ClientError
from credit_service.adapters.celery_app import create_celery
from credit_service.adapters.celery_crediting import CeleryCrediting
from credit_service.adapters.celery_tasks import CeleryTasks
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.order_consumer import OrderConsumer
from credit_service.adapters.redis_url import masked_redis
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.worker_heartbeats import WorkerHeartbeats
from credit_service.entrypoints.health import HealthSources
from credit_service.entrypoints.http import create_app
from credit_service.service_layer.holds import Holds
from credit_service.service_layer.order_listener import OrderListener
from credit_service.service_layer.patient_crediting import PatientCrediting
from credit_service.settings import ServiceSettings
from service_runtime.database import DatabaseUnusable, masked, open_database
from service_runtime.http_server import HttpServer
from service_runtime.start import CannotStart, first_error, log_to_stderr, say, stop_on_signals

PROGRAM = "credit_service"
_REDIS_TIMEOUT_S = 2.0

logger = logging.getLogger(PROGRAM)


def main() -> int:
    """The process's exit status: 0 after a signal, 1 when it cannot start, 2 when it was told nonsense."""
    log_to_stderr()
    try:
        settings = CliApp.run(ServiceSettings)
    except ValidationError as error:
        return say(PROGRAM, first_error(error), 2)
    try:
        run(settings)
    except (CannotStart, DatabaseUnusable) as error:
        return say(PROGRAM, str(error), 1)
    except KeyboardInterrupt:
        return say(PROGRAM, "interrupted while starting", 130)
    return 0


def run(settings: ServiceSettings) -> None:
    """Consumes and serves until a signal. Raises CannotStart or DatabaseUnusable."""
    database_url, redis_url = settings.database_url.get_secret_value(), settings.redis_url.get_secret_value()
    workers = _heartbeats(redis_url)
    engine = open_database(database_url, migrations=MIGRATIONS, start_timeout_s=settings.database_start_timeout_s)
    stopping = stop_on_signals()
    tasks, holds = CeleryTasks(create_celery(redis_url), redis_url), Holds()
    crediting = CeleryCrediting(tasks, timeout_s=settings.task_timeout_s)
    consumer = OrderConsumer(
        OrderListener(PatientCrediting(crediting, holds, threads=settings.consumer_threads)),
        namesrv_addr=settings.namesrv_addr,
        threads=settings.consumer_threads,
        batch_size=settings.batch_size,
        max_reconsume_times=settings.max_reconsume_times,
    )
    try:
        ledger = Ledger(engine)
        app = create_app(ledger, HealthSources(ledger, consumer, workers, holds))
        server = HttpServer(app, host=settings.http_host, port=settings.http_port, threads=settings.http_threads)
        _start(consumer)
        try:
            server.start()
            places = masked(database_url), masked_redis(redis_url), settings.namesrv_addr
            logger.info("credits in %s, tasks in %s, name server %s", *places)
            print(f"credit service ready: {server.url}", flush=True)
            stopping.wait()
        finally:
            consumer.stop(settings.stop_timeout_s)
            server.stop()
    finally:
        engine.dispose()
        workers.close()
        tasks.close()


def _heartbeats(redis_url: str) -> WorkerHeartbeats:
    try:
        return WorkerHeartbeats(redis_url, timeout_s=_REDIS_TIMEOUT_S)
    except ValueError as error:
        raise CannotStart(f"REDIS_URL cannot be used: {error}") from None


def _start(consumer: OrderConsumer) -> None:
    try:
        consumer.start()
    except ClientError as error:
        raise CannotStart(f"cannot join the consumer group: {error}") from error
