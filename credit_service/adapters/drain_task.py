"""The Celery application of the credit service, the task that credits the messages in the inbox, and the sender of that task.

Tasks in Redis may be lost without harm, because the inbox contains every message until it is credited.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue
from typing import Any, Final

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import Celery, signals
from kombu import Exchange, Queue
from redis import Redis

from rocketmq_broker.databases.inbox import BaseInbox
from service_runtime.database.database_errors import DatabaseFailure

DRAIN_TASK: Final = "credit_service.drain"
"""The name of the task that credits the messages in the inbox."""
QUEUE: Final = "credit_inbox"

_VARIABLES_OF_CELERY: Final = (
    "CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND",
)  # fmt: skip

TASK_TIME_LIMIT_S: Final = 30
"""The time in seconds after which a task's process is killed. A task normally ends earlier; see MAX_BATCHES."""
_CONNECT_TIMEOUT_S: Final = 2
_SOCKET_TIMEOUT_S: Final = 5
MAX_BATCHES: Final = 20
"""The maximum number of database transactions of a task, so that it ends before its time limit."""
CAREFUL_S: Final = 60.0
"""The time in seconds after the unexpected end of a process during which the worker processes each message alone."""

logger = logging.getLogger(__name__)


def create_celery(redis_url: str, client_name: str | None = None) -> Celery:
    """Returns the Celery application that sends or executes tasks. Does not connect.

    `client_name` is the name of the application's connections in Redis. Celery's environment variables are removed from the
    process, because they would override `redis_url`.
    """
    for name in _VARIABLES_OF_CELERY:
        os.environ.pop(name, None)
    app = Celery("credit_service", broker=redis_url, set_as_current=False)
    app.conf.update(
        # A task is acknowledged when a worker takes it. If it is lost then, the service sends another one within a second.
        task_queues=[Queue(QUEUE, Exchange(QUEUE), routing_key=QUEUE, no_ack=True)],
        task_default_queue=QUEUE,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_time_limit=TASK_TIME_LIMIT_S,
        # A running task completes, including its database commit, although Redis is gone.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # A worker takes a task only if one of its processes is free.
        worker_disable_prefetch=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        # Remote control is off: its queue polls Redis each second, and a hanging Redis would block the loop.
        worker_enable_remote_control=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        # Redis answers with an error when it becomes a replica. Without this option the worker would stop.
        broker_channel_error_retry=True,
        broker_connection_timeout=_CONNECT_TIMEOUT_S,
        # Otherwise Celery takes fewer tasks after a lost connection, until all running ones have ended.
        worker_enable_prefetch_count_reduction=False,
        broker_transport_options={
            "client_name": client_name,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "socket_timeout": _SOCKET_TIMEOUT_S,
        },
        # The service decides when to send another task.
        task_publish_retry=False,
    )
    return app


def register_drain_task(app: Celery, drain: Callable[[bool], object], now_s: Callable[[], float]) -> None:
    """Adds the task to the application of a worker. Call it before the worker forks its processes.

    `drain` credits the messages that are due. Its argument is True if each message must be processed alone. This applies for
    CAREFUL_S seconds after a process of the worker was killed or reached the time limit in a task, because one of the messages
    may be the cause. Consecutive identical database failures are logged only once. `now_s` is a monotonic clock.
    """
    careful_until_s = RawValue("d", 0.0)  # shared with the forked processes
    last_failure = ""

    @app.task(name=DRAIN_TASK, shared=False, throws=(DatabaseFailure,))
    def drain_inbox(**_of_a_newer_version: object) -> None:
        nonlocal last_failure
        try:
            drain(now_s() < careful_until_s.value)
        except DatabaseFailure as error:
            if str(error) != last_failure:
                logger.warning("cannot credit messages; they stay in the inbox: %s", error)
            last_failure = str(error)
            raise
        last_failure = ""

    @signals.task_failure.connect(weak=False)
    def be_careful(exception: BaseException | None = None, **_: object) -> None:
        """Makes `drain` process each message alone for CAREFUL_S seconds if a process of the pool ended during a task.

        Celery calls this in the worker's main process.
        """
        if isinstance(exception, WorkerLostError | TimeLimitExceeded):
            careful_until_s.value = now_s() + CAREFUL_S


@dataclass(frozen=True)
class TaskSender:
    """Sends a task to the workers while messages are due. Thread-safe."""

    app: Celery
    redis: Redis
    inbox: BaseInbox[Any]

    def send_if_due(self) -> None:
        """Sends a task if messages are due and no task waits for a worker.

        One waiting task is enough, because it credits all messages that are due when it begins. Raises the errors of Redis and
        DatabaseFailure.
        """
        if self.inbox.is_due() and not self.redis.llen(QUEUE):
            self.app.send_task(DRAIN_TASK)
