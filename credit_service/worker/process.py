"""The worker's process. It opens the database, runs Celery until a signal, and restarts if Celery stops without a signal."""

import logging
import os
import signal
import sys
from types import FrameType
from typing import Final, Never

from billiard import active_children
from celery import signals
from celery.worker import state

from credit_service.adapters.celery_app import QUEUE, create_celery
from credit_service.adapters.credit_task import WriteEntries, register_credit_task
from credit_service.adapters.failpoints import failing
from credit_service.adapters.tables import MIGRATIONS
from credit_service.adapters.worker_heartbeats import WorkerHeartbeats
from credit_service.settings import WorkerSettings, masked_redis
from credit_service.worker.heartbeat import LOOP_TIMEOUT_S, TIMEOUT_S, heartbeat_step
from credit_service.worker.taking import Taking
from rocketmq_broker.world import current_world
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from service_runtime.observing.trace_setup import start_tracing, trace_database, trace_tasks
from service_runtime.starting.configured_database import open_to_serve
from service_runtime.starting.start import run_program

PROGRAM: Final = "credit_service.worker"
_PAUSE_BEFORE_NEW_START_S: Final = 1.0

logger = logging.getLogger(PROGRAM)


def main() -> int:
    """Runs the worker until a signal. Returns the exit status of `run_program`."""
    return run_program(PROGRAM, WorkerSettings, _work_until_told, sys.argv[1:])


def _work_until_told(settings: WorkerSettings) -> None:
    heartbeats = WorkerHeartbeats(settings.redis_url.get_secret_value(), timeout_s=TIMEOUT_S)
    if work(settings, heartbeats) and not was_told_to_stop():
        start_again("Celery stopped without a signal")


def work(settings: WorkerSettings, heartbeats: WorkerHeartbeats) -> int:
    """Runs the worker until a signal. Returns its exit status. Raises DatabaseUnusable."""
    database_url, redis_url = settings.database_url.get_secret_value(), settings.redis_url.get_secret_value()
    # Waits for the database and migrates it. The engine is closed, because forked processes cannot share its connections.
    open_to_serve(settings, MIGRATIONS).dispose()
    app, world = create_celery(redis_url), current_world()
    on_open = trace_database if settings.traces_enabled else lambda _: None
    register_credit_task(app, database_url, world, on_open, lambda write: _with_failpoints(write, settings))
    taking = Taking(now_s=world.steady_s)
    step = heartbeat_step(
        heartbeats, world, name=settings.worker_name, processes=settings.processes, taking=taking, start_again=start_again
    )
    app.steps["consumer"].add(step)

    @signals.task_received.connect(weak=False)
    def count(**_: object) -> None:
        taking.take()

    @signals.setup_logging.connect(weak=False)
    def keep_our_logging(**_: object) -> None:
        """Keeps this project's log handlers. Celery sets up its own if this signal has no listener."""

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
    signal.signal(signal.SIGALRM, _loop_hangs)
    worker.start()
    signal.alarm(0)
    return int(worker.exitcode or 0)


def _with_failpoints(write: WriteEntries, settings: WorkerSettings) -> WriteEntries:
    folder = settings.failpoints_folder
    return write if folder is None else failing(write, ArmedFailpoints(folder, current_world().wall_ms))


def _trace(**_: object) -> None:
    start_tracing(PROGRAM)
    trace_tasks()


def was_told_to_stop() -> bool:
    """Returns True if a signal has arrived. Celery stores the exit status, which is usually 0, so this compares with None."""
    return state.should_stop is not None or state.should_terminate is not None


def _loop_hangs(_number: int, _frame: FrameType | None) -> None:
    """Restarts the worker. Handles SIGALRM, which each heartbeat postpones."""
    if not was_told_to_stop():
        start_again(f"its loop has not turned for {LOOP_TIMEOUT_S} s: it hangs, or Redis is away")


def start_again(reason: str) -> Never:
    """Restarts the worker under the same process id. Its running tasks are lost.

    This is needed because Celery stops if Redis becomes unavailable during an unacknowledged task. The consumer retries the
    orders of each unanswered task, and the ledger makes a second run harmless.
    """
    # A pending alarm survives exec, and would end the new program at its start.
    signal.alarm(0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    logger.error("restarting the worker in %g s: %s", _PAUSE_BEFORE_NEW_START_S, reason)
    # The new program has no record of the child processes.
    for process in active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    current_world().sleep(_PAUSE_BEFORE_NEW_START_S)
    os.execv(sys.executable, [sys.executable, "-m", PROGRAM, *sys.argv[1:]])
