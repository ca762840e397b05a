"""Models Redis and Celery: the list in which tasks wait, and a worker whose child processes execute them.

A task has no content. It makes a worker credit the messages in the inbox, with the real drain on the real ledger. Redis removes a
task when a worker takes it, so a task is lost with its worker, and the credit service sends another one. Each slot of a worker is
a separate process (prefork). It ends with its worker, or when a task exceeds the time limit.

The model omits Redis' protocol and memory, the code of kombu and Celery, and the connections by which /healthz finds workers.
"""

import asyncio
import contextvars
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, cast

from celery import Celery
from redis import Redis
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import TimeoutError as RedisTimeout
from sqlmodel import Session

from credit_service.adapters.drain_task import CAREFUL_S, TASK_TIME_LIMIT_S, TaskSender
from credit_service.adapters.ledger import Ledger
from credit_service.domain.credit import Credit, CreditOutcome
from credit_service.settings import WorkerSettings
from credit_service.worker.process import drain_of
from lab.simulation.databases.database import ShopDatabase
from order_messages.states import EntryKind
from rocketmq_broker.databases.inbox import BaseInbox, DrainResult
from rocketmq_broker.testing.simulation.databases.gate import die_here
from rocketmq_broker.testing.simulation.history import History
from rocketmq_broker.testing.simulation.process import SimulatedProcess
from rocketmq_broker.testing.simulation.upcoming import Upcoming
from rocketmq_broker.world import Chance
from service_runtime.database.database_errors import DatabaseFailure

_CALL_TIMEOUT_S: Final = 2.0
_MAX_CALL_S: Final = 0.003
_MAX_TAKING_S: Final = 0.05
_RECONNECTS_WITHIN_S: Final = 4.0
"""The maximum time in seconds until a worker has reconnected to Redis after an outage."""
_FOREVER_S: Final = 1e9


class TaskFault(StrEnum):
    """A fault that affects one task."""

    IS_LOST = "lose_task"
    IS_DOUBLED = "double_task"
    IS_LATE = "late_task"


class OrderFault(StrEnum):
    """The effect of an order that cannot be credited."""

    RAISES = "raises"
    """Crediting it raises an error."""
    DIES = "dies"
    """Crediting it ends the child process, as with kill -9."""
    HANGS = "hangs"
    """The first attempt to credit it does not end."""


class OrderFails(Exception):
    """The error of an order that cannot be credited."""


@dataclass(slots=True)
class FailingOrder:
    """A fault that affects each attempt to credit one order, until `ends_s`."""

    nth: int
    """The number of the order, counted in the sequence in which orders reach workers."""
    ends_s: float
    effect: OrderFault
    is_written: bool
    """True if the attempt fails after writing the entries, before the database commit. False if it fails before writing them."""
    order_id: str | None = None
    """The order, or None before workers have seen `nth` orders."""
    _seen: dict[str, None] = field(default_factory=dict)

    @property
    def is_unending(self) -> bool:
        """True if the order can never be credited."""
        return self.ends_s == math.inf

    def is_among(self, credits: Sequence[Credit], now_s: float) -> bool:
        """Returns True if one of these entries belongs to the order and its fault has not ended.

        An order that can never be credited can be reversed: no other cancellation may come beside which a failure counts.
        """
        order_ids = dict.fromkeys(each.order_id for each in credits if each.kind is EntryKind.CREDIT or not self.is_unending)
        self._seen.update(order_ids)
        if self.order_id is None and now_s < self.ends_s and len(self._seen) >= self.nth:
            self.order_id = list(self._seen)[self.nth - 1]
        return now_s < self.ends_s and self.order_id in order_ids


class SimulatedRedis:
    """A model of Redis, with the waiting tasks. It is not a simulated process: only `go_away` makes it lose all tasks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        history: History,
        chance: Chance,
        *,
        on_fault: Callable[[str], object] = lambda word: None,
    ) -> None:
        """Creates a model without tasks. `on_fault` is called each time a fault has an effect.

        Its argument is a TaskFault, "hang", "away" or "fail_order".
        """
        self.loop, self._history, self._chance, self._fired = loop, history, chance, on_fault
        self._now_s = loop.time
        self._waiting = 0
        self._has_tasks = asyncio.Event()
        self._hangs_until_s = self._away_until_s = 0.0
        self._planned: Upcoming[tuple[TaskFault, float]] = Upcoming()
        """The planned faults of tasks, each with its delay in seconds."""
        self.failing: list[FailingOrder] = []
        """The orders that cannot be credited, including those whose fault has ended."""

    # faults

    def hang(self, for_s: float) -> None:
        """Delays the responses to all calls for `for_s` seconds. If periods overlap, the latest end applies.

        A call that times out in the meantime may still be executed later.
        """
        self._hangs_until_s = max(self._hangs_until_s, self._now_s() + for_s)

    def go_away(self, for_s: float) -> None:
        """Loses all tasks, and refuses connections for `for_s` seconds. If periods overlap, the latest end applies."""
        self._waiting = 0
        self._away_until_s = max(self._away_until_s, self._now_s() + for_s)

    def plan(self, fault: TaskFault, nth: int = 1, delay_s: float = 0.0) -> None:
        """Plans a fault of the `nth` task from now. `delay_s` is the delay of a late or doubled task."""
        self._planned.add(nth, (fault, delay_s))

    def fail_order(self, nth: int, for_s: float, effect: OrderFault = OrderFault.RAISES, *, is_written: bool = False) -> None:
        """Makes each attempt to credit the `nth` order from now fail for `for_s` seconds, which may be infinite."""
        self.failing.append(FailingOrder(nth, self._now_s() + for_s, effect, is_written))

    def failing_among(self, credits: Sequence[Credit]) -> FailingOrder | None:
        """Returns the fault of the order of one of these entries, or None."""
        return next((failing for failing in self.failing if failing.is_among(credits, self._now_s())), None)

    def met(self, failing: FailingOrder) -> None:
        """Records that the fault has affected an attempt."""
        self._history.note("redis", "fault", f"an order {failing.effect}", (failing.order_id or "",))
        self._fired("fail_order")

    @property
    def failing_orders(self) -> set[str]:
        """The orders that could not be credited for some time."""
        return {failing.order_id for failing in self.failing if failing.order_id is not None}

    def end_all(self) -> None:
        """Ends all faults, including pending ones. An order that can never be credited stays so, once a worker has met it."""
        self._hangs_until_s = self._away_until_s = 0.0
        self._planned.clear()
        for failing in self.failing:
            if not failing.is_unending or failing.order_id is None:
                failing.ends_s = 0.0

    @property
    def has_unending(self) -> bool:
        """True if an order can never be credited."""
        return any(failing.is_unending for failing in self.failing)

    # calls in threads of a process

    def call(self, process: SimulatedProcess, work: Callable[[], Any]) -> Any:
        """Executes a call after its transit time. Raises redis-py's errors if Redis is down or does not respond in time."""
        process.threads.sleep(self._chance.random() * _MAX_CALL_S)
        if self._now_s() < self._away_until_s:
            self._fired("away")
            raise RedisAway("Connection refused")
        hangs_for_s = self._hangs_until_s - self._now_s()
        if hangs_for_s <= 0:
            return work()
        self._fired("hang")
        if hangs_for_s < _CALL_TIMEOUT_S:
            process.threads.sleep(hangs_for_s)
            return work()
        if self._chance.random() < 0.5:
            # The call stays in the connection's buffer, and is executed when Redis continues.
            self._later(hangs_for_s, work)
        process.threads.sleep(_CALL_TIMEOUT_S)
        raise RedisTimeout("Timeout reading from socket")

    def push(self) -> None:
        """Adds a task, subject to planned faults."""
        self.note("a task waits")
        due = self._planned.occur()
        for fault, _ in due:
            self._history.note("redis", "fault", fault.value)
            self._fired(fault.value)
        faults = dict(due)
        if TaskFault.IS_LOST in faults:
            return
        if TaskFault.IS_DOUBLED in faults:
            self._later(faults[TaskFault.IS_DOUBLED], self._put)
        if TaskFault.IS_LATE in faults:
            self._later(faults[TaskFault.IS_LATE], self._put)
        else:
            self._put()

    def note(self, text: str) -> None:
        """Adds a line about tasks to the history."""
        self._history.note("redis", "task", text)

    def waiting(self) -> int:
        """Returns the number of waiting tasks."""
        return self._waiting

    # calls of workers, on the event loop

    async def take(self) -> None:
        """Waits for a task."""
        while True:
            await asyncio.sleep(self._chance.random() * _MAX_TAKING_S)
            if (away_for_s := self._away_until_s - self._now_s()) > 0:
                self._fired("away")
                await asyncio.sleep(away_for_s + self._chance.random() * _RECONNECTS_WITHIN_S)
            elif (hangs_for_s := self._hangs_until_s - self._now_s()) > 0:
                self._fired("hang")
                await asyncio.sleep(hangs_for_s)
            elif self._waiting:
                self._waiting -= 1
                return
            else:
                self._has_tasks.clear()
                await self._has_tasks.wait()

    def _put(self) -> None:
        self._waiting += 1
        self._has_tasks.set()

    def _later(self, seconds: float, work: Callable[[], object]) -> None:
        """Calls `work` after `seconds`, even if the calling process has been killed by then."""
        self.loop.call_later(seconds, work, context=contextvars.Context())


@dataclass(frozen=True, slots=True)
class _Client:
    """The calls of Celery and redis-py that the service and the worker use."""

    redis: SimulatedRedis
    process: SimulatedProcess

    def send_task(self, name: str) -> None:
        self.redis.call(self.process, self.redis.push)

    def llen(self, queue: str) -> int:
        return int(self.redis.call(self.process, self.redis.waiting))


def task_sender(redis: SimulatedRedis, process: SimulatedProcess, inbox: BaseInbox[Any]) -> TaskSender:
    """Returns the credit service's sender of tasks for the threads of a process, with the models of Celery and Redis."""
    client = _Client(redis, process)
    return TaskSender(cast(Celery, client), cast(Redis, client), inbox)


class WorkerProcess:
    """A Celery worker with several slots. Each slot takes a task, and executes it in its own process."""

    def __init__(
        self,
        process: SimulatedProcess,
        redis: SimulatedRedis,
        database: ShopDatabase,
        settings: WorkerSettings,
        *,
        new_child: Callable[[], SimulatedProcess],
        on_error: Callable[[BaseException], object],
    ) -> None:
        """Creates the worker. `new_child` returns a new process with the same name on the same machine.

        `on_error` is called with each error of a task, except database errors.
        """
        self._process, self._redis, self._database, self._settings = process, redis, database, settings
        self._new_child, self._on_error = new_child, on_error
        self._careful_until_s = 0.0

    async def start(self) -> None:
        """Starts to take tasks."""
        for _ in range(self._settings.processes):
            self._process.run(self._work())

    async def _work(self) -> None:
        child = self._forked()
        while True:
            await self._redis.take()
            running = child.process.start_thread(child.drain, self._redis.loop.time() < self._careful_until_s)
            ends: list[asyncio.Future[Any]] = [running, child.death]
            await asyncio.wait(ends, timeout=TASK_TIME_LIMIT_S, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                error = running.exception()
                if error is not None and not isinstance(error, DatabaseFailure):
                    self._on_error(error)
                continue
            child.process.kill()
            child = self._forked()
            # Perhaps a message has ended the process; see `drain_task.register_drain_task`.
            self._careful_until_s = self._redis.loop.time() + CAREFUL_S
            self._redis.note(f"{self._process.name} tries each message alone")

    def _forked(self) -> "_Child":
        process = self._new_child()
        self._process.on_death(process.kill)
        death: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        process.on_death(lambda: death.set_result(None))
        ledger = _ChildLedger(self._database, process, self._redis)
        return _Child(process, drain_of(self._settings, ledger), death)


@dataclass(frozen=True, slots=True)
class _Child:
    process: SimulatedProcess
    drain: Callable[[bool], DrainResult]
    death: asyncio.Future[None]


class _ChildLedger(Ledger):
    """The ledger of a child process, in which single orders may fail."""

    def __init__(self, database: ShopDatabase, process: SimulatedProcess, redis: SimulatedRedis) -> None:
        super().__init__(database.engine_for(process), process.world)
        self._process, self._redis = process, redis

    def write(self, session: Session, credits: Sequence[Credit]) -> list[CreditOutcome]:
        failing = self._redis.failing_among(credits)
        if failing is not None and not failing.is_written:
            self._fail(failing)
        outcomes = super().write(session, credits)
        if failing is not None:
            self._fail(failing)
        return outcomes

    def _fail(self, failing: FailingOrder) -> None:
        self._redis.met(failing)
        if failing.effect is OrderFault.DIES:
            die_here(self._redis.loop, self._process.kill)
        if failing.effect is OrderFault.HANGS:
            self._process.threads.sleep(_FOREVER_S)
        raise OrderFails(f"order {failing.order_id} cannot be credited")
