"""Redis, workers and credit database of a simulated credit side, each up or away by a clock that the test owns."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from redis.exceptions import ConnectionError as RedisConnectionError

from credit_service.adapters.celery_tasks import Task, TaskAnswer
from credit_service.adapters.credit_wire import WireCredit, from_wire
from credit_service.adapters.ledger import Ledger, LedgerUnavailable
from credit_service.domain.credit import Credit
from rocketmq_broker.client import ConsumeContext

Poison = Callable[[Sequence[Credit]], BaseException | None]


class Clock:
    """Moves only when somebody waits."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now_s += seconds

    def wait(self, context: ConsumeContext, seconds: float) -> None:
        """As `ConsumeContext.hold`, without losing time."""
        context.hold(0)
        self.advance(seconds)


class NoAnswer(Exception):
    """As poison: the worker dies, and the task with it."""


@dataclass(slots=True)
class CreditSide:
    """See `CreditTasks`. Workers take tasks when somebody waits for an answer: everything happens in the test's own threads."""

    ledger: Ledger
    clock: Clock = field(default_factory=Clock)
    is_redis_up: Callable[[], bool] = lambda: True
    are_workers_up: Callable[[], bool] = lambda: True
    is_database_up: Callable[[], bool] = lambda: True
    poison: Poison = lambda _: None
    """What the worker fails with for these credits, if it does."""
    sent: int = 0
    most_waiting: int = 0
    answers: dict[str, TaskAnswer] = field(default_factory=dict)
    _queue: deque[tuple[str, Sequence[WireCredit]]] = field(default_factory=deque)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        self.reach_redis()
        with self._lock:
            self.sent += 1
            self._queue.append((task_id, credits))
            self.most_waiting = max(self.most_waiting, len(self._queue))
        return SimulatedTask(self, task_id)

    def expect(self, task_id: str) -> Task:
        return SimulatedTask(self, task_id)

    def waiting(self) -> int:
        self.reach_redis()
        return len(self._queue)

    def is_waiting(self, task_id: str) -> bool:
        self.reach_redis()
        with self._lock:
            return any(waiting == task_id for waiting, _ in self._queue)

    def lose_everything(self) -> None:
        """Redis is restarted, and had kept nothing."""
        with self._lock:
            self._queue.clear()
            self.answers.clear()

    def reach_redis(self) -> None:
        if not self.is_redis_up():
            raise RedisConnectionError("connection refused")

    def work(self) -> None:
        """Workers take what waits."""
        with self._lock:
            while self._queue and self.are_workers_up() and self.is_redis_up():
                task_id, credits = self._queue.popleft()
                answer = self._answer([from_wire(credit) for credit in credits])
                if not isinstance(answer.error, NoAnswer):
                    self.answers[task_id] = answer

    def _answer(self, credits: Sequence[Credit]) -> TaskAnswer:
        if not self.is_database_up():
            return TaskAnswer(error=LedgerUnavailable("the database is gone"))
        if (error := self.poison(credits)) is not None:
            return TaskAnswer(error=error)
        return TaskAnswer([outcome.value for outcome in self.ledger.credit(credits)])


@dataclass(frozen=True, slots=True)
class SimulatedTask:
    """See `Task`."""

    side: CreditSide
    task_id: str

    def wait(self, timeout_s: float) -> TaskAnswer | None:
        self.side.reach_redis()
        self.side.work()
        if (answer := self.side.answers.get(self.task_id)) is None:
            self.side.clock.advance(timeout_s)
        return answer

    def forget(self) -> None:
        self.side.answers.pop(self.task_id, None)

    def stop_expecting(self) -> None:
        pass
