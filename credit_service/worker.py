"""`python -m credit_service.worker`: a Celery worker that writes credits."""

import logging
import sys

from celery import signals
from pydantic import ValidationError
from pydantic_settings import CliApp

from credit_service.adapters.celery_app import QUEUE, create_celery
from credit_service.adapters.credit_task import register_credit_task
from credit_service.adapters.database import DatabaseUnusable, open_database
from credit_service.entrypoints.start import first_error, log_to_stderr, masked_redis, say
from credit_service.settings import WorkerSettings

PROGRAM = "credit_service.worker"


def main() -> int:
    """The process's exit status: 0 after a signal, 1 when it cannot start, 2 when it was told nonsense."""
    log_to_stderr()
    try:
        settings = CliApp.run(WorkerSettings)
    except ValidationError as error:
        return say(PROGRAM, first_error(error), 2)
    try:
        return work(settings)
    except DatabaseUnusable as error:
        return say(PROGRAM, str(error), 1)
    except KeyboardInterrupt:
        return say(PROGRAM, "interrupted while starting", 130)


def work(settings: WorkerSettings) -> int:
    """Works until a signal; the worker's exit status. Raises DatabaseUnusable."""
    database_url, redis_url = settings.database_url.get_secret_value(), settings.redis_url.get_secret_value()
    # Opened here only to wait for it and to migrate it; nothing of it may live on in the processes that are forked.
    open_database(database_url, start_timeout_s=settings.database_start_timeout_s).dispose()
    app = create_celery(redis_url)
    register_credit_task(app, database_url)

    @signals.worker_ready.connect(weak=False)
    def say_ready(**_: object) -> None:
        print(f"credit worker ready: {masked_redis(redis_url)}, {settings.processes} processes", flush=True)

    worker = app.Worker(
        concurrency=settings.processes,
        pool="prefork",
        queues=[QUEUE],
        loglevel=logging.INFO,
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
