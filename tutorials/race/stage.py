"""The parts that survive the order process: broker, task queue, the files of both databases, and the plan of faults."""

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tutorials.race.brokers import RacedBroker
from tutorials.race.faults import FaultPlan


class TaskQueueAway(Exception):
    """Redis does not answer: it is down, or its answer was lost."""


class TaskQueue:
    """Redis in its role for Celery: a list that tasks are pushed to and taken from, kept in memory."""

    def __init__(self) -> None:
        """Starts up and empty."""
        self.is_down = False
        self.answers_to_lose = 0
        self._tasks: deque[str] = deque()

    def push(self, task: str) -> None:
        """Adds a task. Raises TaskQueueAway; then the task may have been added nevertheless."""
        if self.is_down:
            raise TaskQueueAway("connection refused")
        self._tasks.append(task)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise TaskQueueAway("the answer was lost")

    def pop(self) -> str | None:
        """Takes the oldest task, which is then in no other place; None if there is none."""
        return self._tasks.popleft() if self._tasks and not self.is_down else None

    def empty(self) -> None:
        """Empties Redis, as a kill does: waiting tasks are lost.

        A killed Redis loses unsaved data, and by default it saves after a minute at the earliest.
        """
        self._tasks.clear()


@dataclass(slots=True)
class Stage:
    """The stage of one cell."""

    broker: RacedBroker
    plan: FaultPlan
    folder: Path
    task_queue: TaskQueue = field(default_factory=TaskQueue)
    rows_written: int = 0
    """Rows that the order side committed so far."""

    @property
    def order_file(self) -> Path:
        """The order database."""
        return self.folder / "orders.db"

    @property
    def credit_file(self) -> Path:
        """The credit database."""
        return self.folder / "credits.db"

    @property
    def namesrv_addr(self) -> str:
        """The name server's address for clients, also while it is down."""
        return self.broker.namesrv_addr

    @property
    def now_s(self) -> float:
        """Seconds since the cell began, by its own time."""
        return self.broker.now_s

    def lose_answer_about(self, order_id: str) -> None:
        """Stores the order's message, or the next task, but loses the answer to its sender."""
        self.broker.lose_answer_about(order_id)
        self.task_queue.answers_to_lose += 1
