"""Tasks on their way: sent to Redis by Celery, waiting there for a worker, answered."""

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
    """How a task ended: with a value, or with an error."""

    value: Any = None
    error: BaseException | None = None


class Task(Protocol):
    """A task that was sent."""

    def wait(self, timeout_s: float) -> TaskAnswer | None:
        """Its answer; None if there is none so soon. Raises what the connection to Redis raises."""

    def forget(self) -> None:
        """Its answer was read: Redis need not keep it. Raises nothing."""

    def stop_expecting(self) -> None:
        """Nobody waits for the answer any more, or not now. Raises nothing."""


class CreditTasks(Protocol):
    """Where tasks are sent to. Each method raises what the connection to Redis raises."""

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        """Send a task that writes the credits."""

    def expect(self, task_id: str) -> Task:
        """The task that was sent before."""

    def waiting(self) -> int:
        """How many tasks wait for a worker."""

    def is_waiting(self, task_id: str) -> bool:
        """Whether a task with this id waits for a worker."""


def task_for(credits: Sequence[WireCredit]) -> str:
    """The name of the task that writes these entries: workers of every version know that of credits."""
    return CREDIT_TASK if all(credit.get("kind", EntryKind.CREDIT) == EntryKind.CREDIT for credit in credits) else REVERSAL_TASK


class CeleryTasks:
    """See `CreditTasks`; safe to use from several threads."""

    def __init__(self, app: Celery, redis_url: str) -> None:
        """`app` sends to `redis_url`. Connects to nothing yet."""
        self._app = app
        self._redis = Redis.from_url(redis_url, socket_timeout=_REDIS_TIMEOUT_S, socket_connect_timeout=_REDIS_TIMEOUT_S)

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        """A task never expires: that would compare the clocks of two machines, and a late one changes nothing."""
        return _CeleryTask(self._app, self._app.send_task(task_for(credits), args=[credits], task_id=task_id))

    def expect(self, task_id: str) -> Task:
        """Connects to nothing yet."""
        return _CeleryTask(self._app, self._app.AsyncResult(task_id))

    def waiting(self) -> int:
        """The length of the list that workers take their tasks from."""
        return int(self._redis.llen(QUEUE))

    def is_waiting(self, task_id: str) -> bool:
        """Reads the whole list: its length has to be bounded."""
        needle = task_id.encode()
        return any(needle in task for task in self._redis.lrange(QUEUE, 0, -1))

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()
        self._app.close()


class _CeleryTask:
    """See `Task`."""

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
        """Celery remembers what it still expects; without this each lost task would cost memory for ever."""
        with contextlib.suppress(Exception):
            self._app.backend.remove_pending_result(self._result)  # type: ignore[attr-defined]
