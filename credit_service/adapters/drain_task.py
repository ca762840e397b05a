"""The Celery task that credits the messages in the inbox, and the bell that sends it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawValue
from typing import Any, Final

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import Celery, signals
from redis import Redis

from credit_service.adapters.celery_app import DRAIN_TASK, QUEUE
from rocketmq_broker.databases.inbox import BaseInbox
from service_runtime.database.database_errors import DatabaseFailure

MAX_BATCHES: Final = 20
"""The maximum number of database transactions of a task, so that it ends before its time limit."""
CAREFUL_S: Final = 60.0
"""The time in seconds after the end of a process during which all processes of the worker try each message alone."""

logger = logging.getLogger(__name__)


def register_drain_task(app: Celery, drain: Callable[[bool], object], now_s: Callable[[], float]) -> None:
    """Adds the task to the application of a worker. Call it before the worker forks its processes.

    `drain` credits the messages that are due. Its argument is True if each message must be tried alone. That is the case for
    CAREFUL_S after a process of the worker was killed or reached the time limit in a task, because a message may be the cause.
    A failure of the database is logged once for as long as it stays the same. `now_s` is a monotonic clock.
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
                logger.warning("messages wait in the inbox, none is lost: %s", error)
            last_failure = str(error)
            raise
        last_failure = ""

    @signals.task_failure.connect(weak=False)
    def be_careful(exception: BaseException | None = None, **_: object) -> None:
        """Runs in the worker's main process when a process of the pool has ended during a task."""
        if isinstance(exception, WorkerLostError | TimeLimitExceeded):
            careful_until_s.value = now_s() + CAREFUL_S


@dataclass(frozen=True)
class TaskSender:
    """Sends a task to the workers while messages are due. Thread-safe."""

    app: Celery
    redis: Redis
    inbox: BaseInbox[Any]

    def send_if_due(self) -> bool:
        """Sends a task if messages are due and no task waits for a worker. Returns True if it sent one.

        One waiting task is enough, because it credits all messages that are due when it begins. Raises the errors of Redis and
        DatabaseFailure.
        """
        if not self.inbox.is_due() or self.redis.llen(QUEUE):
            return False
        self.app.send_task(DRAIN_TASK)
        return True
