"""The parts of a run that survive its processes: the task queue, both databases' files, and the fault plan."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tutorials.race.calls import Service
from tutorials.race.faults import FaultPlan


class TaskQueueAway(Exception):
    """Raised if Redis is down or its response was lost."""


class TaskQueue:
    """A model of Redis as Celery's broker: a list of tasks in memory."""

    def __init__(self) -> None:
        """Creates an empty queue."""
        self.is_down = False
        self.answers_to_lose = 0
        self._tasks: deque[str] = deque()

    def push(self, task: str) -> None:
        """Adds a task. Raises TaskQueueAway if Redis is down, or if the response was lost after the task was added."""
        if self.is_down:
            raise TaskQueueAway("connection refused")
        self._tasks.append(task)
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            raise TaskQueueAway("Redis added the task, but its response was lost")

    def pop(self) -> str | None:
        """Removes and returns the oldest task. Returns None if Redis is empty or down."""
        return self._tasks.popleft() if self._tasks and not self.is_down else None

    def empty(self) -> None:
        """Removes all waiting tasks, as a kill of Redis does.

        A killed Redis loses unsaved data. By default Redis saves its data after one minute at the earliest.
        """
        self._tasks.clear()


@dataclass(slots=True)
class Environment:
    """The parts of one run that survive its processes."""

    namesrv_addr: str
    """The address of the name server. It is also valid while the name server is down."""
    now_s: Callable[[], float]
    """Returns the time since the start of the run in seconds."""
    plan: FaultPlan
    folder: Path
    task_queue: TaskQueue = field(default_factory=TaskQueue)
    order_service: Service = field(default_factory=Service)
    """The order process as a service that the credit process can call."""
    credit_service: Service = field(default_factory=Service)
    """The credit process as a service that the order process can call."""
    rows_written: int = 0
    """The number of rows that processes have committed to the order database, counted when each process ends."""

    @property
    def order_file(self) -> Path:
        """The path of the order database."""
        return self.folder / "orders.db"

    @property
    def credit_file(self) -> Path:
        """The path of the credit database."""
        return self.folder / "credits.db"

    def lose_answer(self) -> None:
        """Drops the response to the next task or call, after the task is stored or the work is done."""
        self.task_queue.answers_to_lose += 1
        self.credit_service.answers_to_lose += 1
