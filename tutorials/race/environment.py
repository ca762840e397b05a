"""The parts of a cell that survive its processes: broker, task queue, the files of both databases, and the fault plan."""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tutorials.race.brokers import RacedBroker
from tutorials.race.faults import FaultPlan


class TaskQueueAway(Exception):
    """Redis is down, or its answer was lost."""


class TaskQueue:
    """Models Redis as Celery's broker, with a list of tasks in memory."""

    def __init__(self) -> None:
        """Creates an empty queue."""
        self.is_down = False
        self.answers_to_lose = 0
        self._tasks: deque[str] = deque()

    def push(self, task: str) -> None:
        """Adds a task. Raises TaskQueueAway, after which the task may have been added."""
        if self.is_down:
            raise TaskQueueAway("connection refused")
        self._tasks.append(task)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise TaskQueueAway("the answer was lost")

    def pop(self) -> str | None:
        """Removes and returns the oldest task, or None."""
        return self._tasks.popleft() if self._tasks and not self.is_down else None

    def empty(self) -> None:
        """Removes all waiting tasks, as a kill of Redis does.

        A killed Redis loses unsaved data, and by default it saves after one minute at the earliest.
        """
        self._tasks.clear()


@dataclass(slots=True)
class Environment:
    """The parts of one cell that survive its processes."""

    broker: RacedBroker
    plan: FaultPlan
    folder: Path
    task_queue: TaskQueue = field(default_factory=TaskQueue)
    rows_written: int = 0
    """Number of rows committed to the order database so far."""

    @property
    def order_file(self) -> Path:
        """The file of the order database."""
        return self.folder / "orders.db"

    @property
    def credit_file(self) -> Path:
        """The file of the credit database."""
        return self.folder / "credits.db"

    @property
    def namesrv_addr(self) -> str:
        """The name server's address, also while it is down."""
        return self.broker.namesrv_addr

    @property
    def now_s(self) -> float:
        """Seconds of the cell's time since its start."""
        return self.broker.now_s

    def lose_answer_about(self, order_id: str) -> None:
        """Loses the answer to the order's next message or task, which is stored."""
        self.broker.lose_answer_about(order_id)
        self.task_queue.answers_to_lose += 1
