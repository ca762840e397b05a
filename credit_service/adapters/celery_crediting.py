"""Writes credits through Celery. Sends a batch to a worker as a task, and waits until the worker has stored it."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from credit_service.adapters.celery_tasks import CreditTasks, Task, TaskAnswer
from credit_service.adapters.credit_wire import WireCredit, to_wire
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.service_layer.crediting import CreditingFailed, CreditingUnavailable
from credit_service.service_layer.faults import Fault, fault_of
from rocketmq_broker.world import World

_SLICE_S: Final = 0.5
"""The interval in seconds at which a waiting thread checks whether to stop waiting."""
MAX_WAITING_TASKS: Final = 1000
"""The maximum number of tasks that wait in Redis. No more are sent until workers take some of them.

So many tasks wait only if no worker runs. Without this limit, consumers that restart would fill Redis.
"""


class CeleryCrediting:
    """Writes batches of credits with Celery tasks (`service_layer.crediting.Crediting`). Thread-safe.

    A batch that was not answered is retried with the same task id. So at most one task of a batch waits in Redis, and the first
    run to end answers it. An answered batch is retried with a new id. Otherwise Celery could return a second copy of the old
    answer, which does not reflect the current state of the database.
    """

    def __init__(self, tasks: CreditTasks, world: World, *, timeout_s: float) -> None:
        """`timeout_s` is the time in seconds that one attempt waits for the answer of its task."""
        self._tasks = tasks
        self._timeout_s = timeout_s
        self._now_s, self._new_uuid = world.steady_s, world.new_uuid
        self._unanswered: dict[str, str] = {}
        """The task id of each batch whose last attempt was not answered, by the batch's JSON text."""

    def credit(self, credits: Sequence[Credit], *, is_again: bool, is_given_up: Callable[[], bool]) -> list[CreditOutcome | None]:
        """Returns one outcome for each credit; None if the worker has a newer version and the outcome is unknown here."""
        batch = [to_wire(credit) for credit in credits]
        content = json.dumps(batch, sort_keys=True)
        task_id = self._unanswered.pop(content, None) if is_again else None
        task_id = task_id or str(self._new_uuid())
        try:
            answer = self._answer(self._sent(task_id, batch, is_again), is_given_up)
        except CreditingUnavailable:
            self._remember(content, task_id)
            raise
        return _outcomes(answer, len(credits))

    def _remember(self, content: str, task_id: str) -> None:
        """Stores the task id for a retry, and removes the oldest one above the limit.

        A batch that was split is never retried as a whole, so its id would remain forever.
        """
        self._unanswered[content] = task_id
        if len(self._unanswered) > MAX_WAITING_TASKS:
            self._unanswered.pop(next(iter(self._unanswered)), None)

    def _sent(self, task_id: str, batch: Sequence[WireCredit], is_again: bool) -> Task:
        try:
            return self._task(task_id, batch, is_again)
        except CreditingUnavailable:
            raise
        except Exception as error:
            raise CreditingUnavailable(f"the task could not be sent: {_in_one_line(error)}") from error

    def _task(self, task_id: str, batch: Sequence[WireCredit], is_again: bool) -> Task:
        """Returns the batch's task. Sends the task unless it is still waiting in Redis."""
        waiting = self._tasks.waiting()
        if is_again and waiting and self._tasks.is_waiting(task_id):
            return self._tasks.expect(task_id)
        if waiting >= MAX_WAITING_TASKS:
            raise CreditingUnavailable(f"{waiting} tasks are already waiting in Redis: no worker takes them")
        return self._tasks.send(task_id, batch)

    def _answer(self, task: Task, is_given_up: Callable[[], bool]) -> TaskAnswer:
        """Returns the task's answer, and deletes the answer from Redis."""
        try:
            answer = self._wait_for(task, is_given_up)
        except Exception as error:
            task.stop_expecting()
            raise CreditingUnavailable(f"the worker's answer could not be read from Redis: {_in_one_line(error)}") from error
        if answer is None:
            task.stop_expecting()
            raise CreditingUnavailable(f"no answer from a worker after {self._timeout_s:g} s")
        task.forget()
        return answer

    def _wait_for(self, task: Task, is_given_up: Callable[[], bool]) -> TaskAnswer | None:
        deadline_s = self._now_s() + self._timeout_s
        while (left_s := deadline_s - self._now_s()) > 0 and not is_given_up():
            if (answer := task.wait(min(left_s, _SLICE_S))) is not None:
                return answer
        return None


def _outcomes(answer: TaskAnswer, count: int) -> list[CreditOutcome | None]:
    if answer.error is not None:
        reason = f"the task failed: {_in_one_line(answer.error)}"
        raise CreditingUnavailable(reason) if fault_of(answer.error) is Fault.OUTAGE else CreditingFailed(reason)
    if not isinstance(answer.value, list) or len(answer.value) != count:
        raise CreditingFailed(f"the task with {count} orders answered {str(answer.value)[:100]!r}")
    return [_outcome(text) for text in answer.value]


def _outcome(text: Any) -> CreditOutcome | None:
    try:
        return CreditOutcome(text)
    except ValueError:
        return None


def _in_one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
