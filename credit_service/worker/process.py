"""The worker's process. It opens the database, and runs Celery until a signal arrives."""

import logging
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from celery import signals
from celery.worker import state
from sqlmodel import Session

from credit_service.adapters.drain_task import MAX_BATCHES, QUEUE, create_celery, register_drain_task
from credit_service.adapters.failpoints import CreditFailpoints
from credit_service.adapters.ledger import Ledger
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.workers import connection_name
from credit_service.service_layer.crediting import Crediting
from credit_service.settings import WorkerSettings, masked_redis
from rocketmq_broker.databases.inbox import DrainResult, Handler
from rocketmq_broker.world import World, current_world
from service_runtime.database.engine import create_database_engine
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from service_runtime.observing.trace_setup import start_tracing, trace_database, trace_tasks
from service_runtime.starting.configured_database import open_to_serve
from service_runtime.starting.start import CannotStart, run_program

PROGRAM: Final = "credit_service.worker"


def main() -> int:
    """Runs the worker until a signal arrives. Returns the exit status of `run_program`."""
    return run_program(PROGRAM, WorkerSettings, work, sys.argv[1:])


def drain_of(settings: WorkerSettings, ledger: Ledger) -> Callable[[bool], DrainResult]:
    """Returns the function that credits the messages in the inbox."""
    crediting: Crediting[Session] = Crediting(ledger)
    inbox = ledger.inbox
    handle: Handler[Session] = crediting.credit
    if settings.failpoints_folder is not None:
        failpoints = CreditFailpoints(ArmedFailpoints(settings.failpoints_folder, current_world().wall_ms))
        handle, inbox = failpoints.handler(handle), ledger.inbox_through(failpoints.session)
    drain = partial(
        inbox.drain,
        handle,
        max_tries=settings.max_tries,
        give_up=crediting.refuse if settings.cancel_refused else None,
        batch_size=settings.batch_size,
        max_batches=MAX_BATCHES,
    )
    return lambda one_by_one: drain(one_by_one=one_by_one)


def work(settings: WorkerSettings) -> None:
    """Runs the worker until a signal arrives. Raises DatabaseUnusable, and CannotStart if Celery stops by itself."""
    redis_url, world = settings.redis_url.get_secret_value(), current_world()
    # Waits for the database and migrates it. The engine is closed, because forked processes cannot share its connections.
    open_to_serve(settings, MIGRATIONS).dispose()
    app = create_celery(redis_url, connection_name(settings.worker_name, world.process_id(), settings.processes))
    drain = cache(lambda: drain_of(settings, _ledger(settings, world)))
    register_drain_task(app, lambda one_by_one: drain()(one_by_one), world.steady_s)

    @signals.setup_logging.connect(weak=False)
    def keep_our_logging(**_: object) -> None:
        """Keeps this project's log handlers. Without a listener for this signal, Celery sets up its own handlers."""

    if settings.traces_enabled:
        # This runs in each forked process, because threads, such as the exporter of spans, do not survive a fork.
        signals.worker_process_init.connect(_trace, weak=False)

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
    if not was_told_to_stop():
        raise CannotStart(f"Celery stopped without a signal, with status {worker.exitcode}; start the worker again")


def _ledger(settings: WorkerSettings, world: World) -> Ledger:
    """Opens the database and returns the ledger. Called once in each process of the pool."""
    engine = create_database_engine(settings.database_url.get_secret_value())
    if settings.traces_enabled:
        trace_database(engine)
    return Ledger(engine, world)


def _trace(**_: object) -> None:
    start_tracing(PROGRAM)
    trace_tasks()


def was_told_to_stop() -> bool:
    """Returns True if a signal has arrived. Compares with None, because Celery stores the exit status, which is usually 0."""
    return state.should_stop is not None or state.should_terminate is not None
