"""The Celery task that credits the messages in the inbox, and the bell that sends it."""

import logging
from collections.abc import Callable
from typing import Any, Final

from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import Celery, signals
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from credit_service.adapters.celery_app import DRAIN_TASK, QUEUE
from rocketmq_broker.databases.inbox import BaseInbox
from service_runtime.database.database_errors import DatabaseFailure

MAX_BATCHES: Final = 20
"""The maximum number of database transactions of a task, so that it ends before its time limit."""
_REDIS_TIMEOUT_S: Final = 2.0

logger = logging.getLogger(__name__)


def register_drain_task(app: Celery, drain: Callable[[bool], object]) -> None:
    """Adds the task to the application of a worker.

    `drain` credits the messages that are due. Its argument is True after a task ended its process: perhaps a message is the
    cause, so each one is tried alone. A failure of the database is logged once for as long as it stays the same.
    """
    last_failure = ""

    @app.task(name=DRAIN_TASK, shared=False, throws=(DatabaseFailure,))
    def drain_inbox(one_by_one: bool = False, **_of_a_newer_version: object) -> None:
        nonlocal last_failure
        try:
            drain(one_by_one)
        except DatabaseFailure as error:
            if str(error) != last_failure:
                logger.warning("messages wait in the inbox, none is lost: %s", error)
            last_failure = str(error)
            raise
        last_failure = ""

    @signals.task_failure.connect(weak=False)
    def try_one_by_one(exception: BaseException | None = None, **_: object) -> None:
        """Runs in the worker's main process when a process of the pool has ended during a task."""
        if isinstance(exception, WorkerLostError | TimeLimitExceeded):
            app.send_task(DRAIN_TASK, kwargs={"one_by_one": True})


class TaskSender:
    """Sends a task to the workers while messages are due. Thread-safe."""

    def __init__(self, app: Celery, redis_url: str, inbox: BaseInbox[Any]) -> None:
        """The constructor does not connect."""
        self._app = app
        self._inbox = inbox
        self._redis = Redis.from_url(
            redis_url,
            socket_timeout=_REDIS_TIMEOUT_S,
            socket_connect_timeout=_REDIS_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )

    def send_if_due(self) -> bool:
        """Sends a task if messages are due and no task waits for a worker. Returns True if messages are due.

        One waiting task is enough, because it credits all messages that are due when it begins. Raises the errors of Redis and
        DatabaseFailure.
        """
        if not self._inbox.is_due():
            return False
        if not self._redis.llen(QUEUE):
            self._app.send_task(DRAIN_TASK)
        return True

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()
        self._app.close()
