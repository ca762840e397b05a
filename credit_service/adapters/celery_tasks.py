"""The interface to Celery's tasks: sends tasks to Redis, counts those that wait for a worker, and reads the answers."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from celery import Celery
from celery.exceptions import TimeoutError as ResultTimeout
from celery.result import AsyncResult
from redis import Redis

from credit_service.adapters.celery_app import CREDIT_TASK, QUEUE, REVERSAL_TASK
from credit_service.adapters.credit_wire import WireCredit
from order_messages.states import EntryKind

_REDIS_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """The answer of a finished task: its return value or its error."""

    value: Any = None
    error: BaseException | None = None


class Task(Protocol):
    """A task that was sent."""

    def wait(self, timeout_s: float) -> TaskAnswer | None:
        """Returns the answer, or None if there is none within `timeout_s` seconds. Raises the errors of the Redis connection."""

    def forget(self) -> None:
        """Deletes the answer, which has been read, from Redis. Raises nothing."""

    def stop_expecting(self) -> None:
        """Stops waiting for the answer. `CreditTasks.expect` resumes the wait. Raises nothing."""


class CreditTasks(Protocol):
    """The queue of tasks. Each method raises the errors of the connection to Redis."""

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        """Sends a task that writes the credits."""

    def expect(self, task_id: str) -> Task:
        """Returns the task that was sent earlier with this id."""

    def waiting(self) -> int:
        """Returns the number of tasks that wait for a worker."""

    def is_waiting(self, task_id: str) -> bool:
        """Returns True if a task with this id waits for a worker."""


def task_for(credits: Sequence[WireCredit]) -> str:
    """Returns the name of the task that writes these entries. Workers of all versions have the task for credits."""
    return CREDIT_TASK if all(credit.get("kind", EntryKind.CREDIT) == EntryKind.CREDIT for credit in credits) else REVERSAL_TASK


class CeleryTasks:
    """The tasks in Redis (`CreditTasks`). Thread-safe."""

    def __init__(self, app: Celery, redis_url: str) -> None:
        """`app` sends its tasks to `redis_url`. The constructor does not connect."""
        self._app = app
        self._redis = Redis.from_url(redis_url, socket_timeout=_REDIS_TIMEOUT_S, socket_connect_timeout=_REDIS_TIMEOUT_S)

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        """Sends a task that does not expire.

        An expiry would compare the clocks of two machines. It is not needed, because a late task changes nothing.
        """
        return _CeleryTask(self._app, self._app.send_task(task_for(credits), args=[credits], task_id=task_id))

    def expect(self, task_id: str) -> Task:
        """Returns the task that was sent earlier. Does not connect."""
        return _CeleryTask(self._app, self._app.AsyncResult(task_id))

    def waiting(self) -> int:
        """Returns the length of the list from which workers take tasks."""
        return int(self._redis.llen(QUEUE))

    def is_waiting(self, task_id: str) -> bool:
        """Returns True if the task waits for a worker. Searches the whole list of waiting tasks."""
        needle = task_id.encode()
        return any(needle in task for task in self._redis.lrange(QUEUE, 0, -1))

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()
        self._app.close()


class _CeleryTask:
    """A task that was sent with Celery (`Task`)."""

    def __init__(self, app: Celery, result: "AsyncResult[Any]") -> None:
        self._app = app
        self._result = result

    def wait(self, timeout_s: float) -> TaskAnswer | None:
        try:
            value = self._result.get(timeout=timeout_s, propagate=False)
        except ResultTimeout:
            return None
        return TaskAnswer(error=value) if isinstance(value, BaseException) else TaskAnswer(value)

    def forget(self) -> None:
        with contextlib.suppress(Exception):
            self._result.forget()

    def stop_expecting(self) -> None:
        """Removes the task from Celery's pending results. Otherwise each unanswered task would occupy memory forever."""
        with contextlib.suppress(Exception):
            self._app.backend.remove_pending_result(self._result)  # type: ignore[attr-defined]
