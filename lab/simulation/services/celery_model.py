"""Models Redis, Celery and its workers behind the service's port `credit_service.adapters.celery_tasks.CreditTasks`.

A task waits in a list until a worker takes it. The worker runs it, stores its answer for a while, and acknowledges it. A task
that is not acknowledged within the visibility timeout is delivered again. A worker takes as many tasks as it has slots
(prefetch multiplier 1, late acknowledgement). Each slot is a process of its own (prefork), which ends with its worker or at
the time limit of a task. The tasks run the real ledger.

The model omits Redis' protocol and memory, the code of kombu and Celery, the heartbeats of workers, and workers that take no
task although tasks wait.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from celery.exceptions import TimeLimitExceeded
from redis.exceptions import TimeoutError as RedisTimeout

from credit_service.adapters.celery_tasks import Task, TaskAnswer
from credit_service.adapters.credit_task import WriteEntries, writing_to
from credit_service.adapters.credit_wire import WireCredit
from credit_service.adapters.ledger import Ledger
from lab.simulation.databases.database import SimulatedDatabase
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.world import Chance

VISIBILITY_TIMEOUT_S: Final = 60.0
TASK_TIME_LIMIT_S: Final = 30.0
RESULT_EXPIRES_S: Final = 300.0
_CALL_TIMEOUT_S: Final = 2.0
_MAX_CALL_S: Final = 0.003
_MAX_TAKING_S: Final = 0.05
_LOOKS_EVERY_S: Final = 10.0
"""The interval at which unacknowledged tasks are checked for the visibility timeout."""


class TaskFate(StrEnum):
    """A fault that affects one task."""

    IS_LOST = "lose_task"
    ANSWER_IS_LOST = "lose_answer"
    RUNS_AGAIN = "double_task"
    RUNS_TWICE_AT_ONCE = "run_twice"
    IS_LATE = "late_task"
    ACK_IS_LOST = "lost_ack"


@dataclass(slots=True)
class SentTask:
    """A task as stored in Redis, with its argument as JSON."""

    task_id: str
    argument: str
    orders: tuple[str, ...]
    fates: list[TaskFate] = field(default_factory=list)


@dataclass(slots=True)
class FailingOrder:
    """A fault that makes each task with a certain order fail, until `ends_s`."""

    nth: int
    """The number of the order, counted in the sequence in which orders reach workers."""
    ends_s: float
    is_written: bool
    """Whether the task fails after writing its entries. Otherwise it fails before."""
    _order_id: str | None = None
    _seen: dict[str, None] = field(default_factory=dict)

    def is_in(self, task: SentTask, now_s: float) -> bool:
        """Returns whether the task contains the order and fails."""
        self._seen.update(dict.fromkeys(task.orders))
        if self._order_id is None and len(self._seen) >= self.nth:
            self._order_id = list(self._seen)[self.nth - 1]
        return now_s < self.ends_s and self._order_id in task.orders


class OrderMakesTaskFail(Exception):
    """The error of a task that fails because of one of its orders."""


@dataclass(slots=True)
class _Fated:
    left: int
    fate: TaskFate
    delay_s: float


class SimulatedRedis:
    """The waiting tasks, the running tasks and the answers. It has no process, so it loses data only by `flush`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        history: History,
        chance: Chance,
        *,
        on_fault: Callable[[str], object] = lambda word: None,
    ) -> None:
        """`loop` is the world's event loop. `on_fault` is called at each effect of a fault.

        Its argument is a TaskFate, "hang", "fail_order" or "flush".
        """
        self._loop, self._history, self._chance, self._fired = loop, history, chance, on_fault
        self._now_s = loop.time
        self._waiting: deque[SentTask] = deque()
        self._unacknowledged: dict[int, SentTask] = {}
        self._deliveries = 0
        self._answers: dict[str, TaskAnswer] = {}
        self._arrivals: dict[str, list[asyncio.Future[None]]] = {}
        self._has_tasks = asyncio.Event()
        self._hangs_until_s = 0.0
        self._fated: list[_Fated] = []
        self._failing: list[FailingOrder] = []

    # faults

    def hang(self, for_s: float) -> None:
        """Answers no call for `for_s`. Calls sent meanwhile may be executed later. Of overlapping calls, the later end counts."""
        self._hangs_until_s = max(self._hangs_until_s, self._now_s() + for_s)

    def end_all(self) -> None:
        """Ends all faults, including pending ones."""
        self._hangs_until_s = 0.0
        self._fated.clear()
        self._failing.clear()

    def ordain(self, fate: TaskFate, nth: int = 1, delay_s: float = 0.0) -> None:
        """Plans a fault of the `nth` next task. `delay_s` is the delay of a late task."""
        self._fated.append(_Fated(nth, fate, delay_s))

    def fail_order(self, nth: int, for_s: float, *, is_written: bool) -> None:
        """Makes each task with the `nth` next order fail for `for_s`. With `is_written`, it fails after writing its entries."""
        self._failing.append(FailingOrder(nth, self._now_s() + for_s, is_written))

    def failing_in(self, task: SentTask) -> FailingOrder | None:
        """Returns the fault that makes the task fail, or None."""
        for failing in self._failing:
            if failing.is_in(task, self._now_s()):
                self._history.note("redis", "fault", "an order of the task makes it fail", task.orders)
                self._fired("fail_order")
                return failing
        return None

    def flush(self) -> None:
        """Removes all tasks and answers, like FLUSHALL."""
        self._fired("flush")
        self._waiting.clear()
        self._unacknowledged.clear()
        self._answers.clear()

    # calls of the credit service, in its threads

    def tasks_for(self, process: SimulatedProcess) -> SimulatedTasks:
        """Returns the port with which a process sends tasks."""
        return SimulatedTasks(self, process)

    def call(self, process: SimulatedProcess, work: Callable[[], Any]) -> Any:
        """Executes a call after its transit time. Raises redis-py's TimeoutError if Redis does not answer in time."""
        process.threads.sleep(self._chance.random() * _MAX_CALL_S)
        hangs_for_s = self._hangs_until_s - self._now_s()
        if hangs_for_s <= 0:
            return work()
        self._fired("hang")
        if hangs_for_s < _CALL_TIMEOUT_S:
            process.threads.sleep(hangs_for_s)
            return work()
        if self._chance.random() < 0.5:
            # The call stays in the connection's buffer, and is executed when Redis continues.
            self._loop.call_later(hangs_for_s, work)
        process.threads.sleep(_CALL_TIMEOUT_S)
        raise RedisTimeout("Timeout reading from socket")

    def push(self, task: SentTask) -> None:
        """Adds a task to the waiting ones, subject to planned faults."""
        self._history.note("redis", "task", f"a task with {len(task.orders)} orders waits", task.orders)
        delay_s = 0.0
        for fated in self._fated:
            fated.left -= 1
            if fated.left <= 0:
                task.fates.append(fated.fate)
                delay_s = max(delay_s, fated.delay_s)
        self._fated = [fated for fated in self._fated if fated.left > 0]
        if TaskFate.IS_LOST in task.fates:
            self._happens(task, TaskFate.IS_LOST)
            return
        if TaskFate.IS_LATE in task.fates:
            self._happens(task, TaskFate.IS_LATE)
            self._loop.call_later(delay_s, self._put, task)
            return
        self._put(task)
        if TaskFate.RUNS_TWICE_AT_ONCE in task.fates:
            self._happens(task, TaskFate.RUNS_TWICE_AT_ONCE)
            self._put(task)

    def waiting(self) -> list[str]:
        """Returns the ids of the waiting tasks."""
        return [task.task_id for task in self._waiting]

    def answer_of(self, task_id: str) -> TaskAnswer | None:
        """Returns the answer to the task, or None if it has no answer yet or Redis hangs."""
        if self._now_s() < self._hangs_until_s:
            self._fired("hang")
            return None
        return self._answers.get(task_id)

    def arrival_of(self, task_id: str) -> asyncio.Future[None]:
        """Returns a future that is done when the next answer to this task arrives."""
        arrival: asyncio.Future[None] = self._loop.create_future()
        self._arrivals.setdefault(task_id, []).append(arrival)
        return arrival

    def forget(self, task_id: str) -> None:
        """Removes the answer to the task, and the futures that wait for it."""
        self._answers.pop(task_id, None)
        self._arrivals.pop(task_id, None)

    # calls of workers, on the event loop

    async def take(self) -> tuple[int, SentTask]:
        """Waits for a task. Returns the number of its delivery, and the task."""
        while True:
            await asyncio.sleep(self._chance.random() * _MAX_TAKING_S)
            if (hangs_for_s := self._hangs_until_s - self._now_s()) > 0:
                self._fired("hang")
                await asyncio.sleep(hangs_for_s)
            elif self._waiting:
                return self._delivered(self._waiting.popleft())
            else:
                self._has_tasks.clear()
                await self._has_tasks.wait()

    async def end(self, worker: str, delivery: int, task: SentTask, answer: TaskAnswer) -> None:
        """Stores the answer, then acknowledges the task. Both wait while Redis hangs."""
        await self._passes()
        if TaskFate.ANSWER_IS_LOST in task.fates:
            self._happens(task, TaskFate.ANSWER_IS_LOST)
        else:
            self._keep(task, answer)
        self._history.note(worker, "task", f"a task ends: {answer.error or answer.value}", task.orders)
        await self._passes()
        if TaskFate.ACK_IS_LOST in task.fates:
            self._happens(task, TaskFate.ACK_IS_LOST)
            return
        self._unacknowledged.pop(delivery, None)
        if TaskFate.RUNS_AGAIN in task.fates:
            self._happens(task, TaskFate.RUNS_AGAIN)
            self._put(task)

    async def _passes(self) -> None:
        hangs_for_s = max(self._hangs_until_s - self._now_s(), 0.0)
        if hangs_for_s:
            self._fired("hang")
        await asyncio.sleep(hangs_for_s + self._chance.random() * _MAX_CALL_S)

    # internals

    def _put(self, task: SentTask) -> None:
        self._waiting.append(task)
        self._has_tasks.set()

    def _delivered(self, task: SentTask) -> tuple[int, SentTask]:
        self._deliveries += 1
        delivery = self._deliveries
        self._unacknowledged[delivery] = task
        again_s = VISIBILITY_TIMEOUT_S + self._chance.random() * _LOOKS_EVERY_S
        self._loop.call_later(again_s, self._hand_out_again, delivery)
        return delivery, task

    def _hand_out_again(self, delivery: int) -> None:
        task = self._unacknowledged.pop(delivery, None)
        if task is not None:
            self._history.note("redis", "task", "a task is handed out again: nobody has acknowledged it", task.orders)
            self._put(task)

    def _keep(self, task: SentTask, answer: TaskAnswer) -> None:
        self._answers[task.task_id] = answer
        self._loop.call_later(RESULT_EXPIRES_S, self._expire, task.task_id, answer)
        for arrival in self._arrivals.pop(task.task_id, ()):
            if not arrival.done():
                arrival.set_result(None)

    def _expire(self, task_id: str, answer: TaskAnswer) -> None:
        if self._answers.get(task_id) is answer:
            del self._answers[task_id]

    def _happens(self, task: SentTask, fate: TaskFate) -> None:
        task.fates.remove(fate)
        self._history.note("redis", "fault", fate.value, task.orders)
        self._fired(fate.value)


@dataclass(frozen=True, slots=True)
class SimulatedTasks:
    """The port with which one process sends tasks. Implements `CreditTasks`."""

    redis: SimulatedRedis
    process: SimulatedProcess

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        """Sends a task."""
        task = SentTask(task_id, json.dumps(list(credits)), tuple(str(credit["order_id"]) for credit in credits))
        self.redis.call(self.process, lambda: self.redis.push(task))
        return self.expect(task_id)

    def expect(self, task_id: str) -> Task:
        """Returns a task that was sent earlier."""
        return _SimulatedTask(self.redis, self.process, task_id)

    def waiting(self) -> int:
        """Returns the number of tasks that wait for a worker."""
        return len(self.redis.call(self.process, self.redis.waiting))

    def is_waiting(self, task_id: str) -> bool:
        """Returns whether a task with this id waits for a worker."""
        return task_id in self.redis.call(self.process, self.redis.waiting)


@dataclass(frozen=True, slots=True)
class _SimulatedTask:
    redis: SimulatedRedis
    process: SimulatedProcess
    task_id: str

    def wait(self, timeout_s: float) -> TaskAnswer | None:
        if (answer := self.redis.answer_of(self.task_id)) is not None:
            return answer
        self.process.threads.wait_for(asyncio.wait([self.redis.arrival_of(self.task_id)], timeout=timeout_s))
        return self.redis.answer_of(self.task_id)

    def forget(self) -> None:
        self.redis.forget(self.task_id)

    def stop_expecting(self) -> None:
        """Does nothing, because there is no subscription to remove."""


class WorkerProcess:
    """A Celery worker with several slots. Each slot takes a task, runs it in its own process, and acknowledges it."""

    def __init__(
        self,
        process: SimulatedProcess,
        redis: SimulatedRedis,
        database: SimulatedDatabase,
        *,
        slots: int,
        new_child: Callable[[], SimulatedProcess],
    ) -> None:
        """`new_child` returns a new process with the same name on the same machine."""
        self._process, self._redis, self._database, self._slots, self._new_child = process, redis, database, slots, new_child

    async def start(self) -> None:
        """Starts to take tasks."""
        for _ in range(self._slots):
            self._process.run(self._work())

    async def _work(self) -> None:
        child = self._forked()
        while True:
            delivery, task = await self._redis.take()
            failing = self._redis.failing_in(task)
            if failing is not None and not failing.is_written:
                await self._redis.end(self._process.name, delivery, task, _failed())
                continue
            running = child.process.start_thread(child.write, json.loads(task.argument))
            await asyncio.wait([running], timeout=TASK_TIME_LIMIT_S)
            if not running.done():
                child.process.kill()
                child = self._forked()
                answer = TaskAnswer(error=TimeLimitExceeded(TASK_TIME_LIMIT_S))
            elif (error := running.exception()) is not None:
                answer = TaskAnswer(error=error)
            else:
                answer = TaskAnswer(running.result()) if failing is None else _failed()
            await self._redis.end(self._process.name, delivery, task, answer)

    def _forked(self) -> _Child:
        process = self._new_child()
        self._process.on_death(process.kill)
        return _Child(process, writing_to(Ledger(self._database.engine_for(process), process.world)))


def _failed() -> TaskAnswer:
    return TaskAnswer(error=OrderMakesTaskFail("one of its orders makes the task fail"))


@dataclass(frozen=True, slots=True)
class _Child:
    process: SimulatedProcess
    write: WriteEntries
