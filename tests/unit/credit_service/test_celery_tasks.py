"""Tasks on their way to a worker, with a Celery and a Redis that answer as a test says."""

from collections.abc import Sequence
from typing import Any

import pytest
from celery.exceptions import TimeoutError as ResultTimeout

from credit_service.adapters import celery_tasks
from credit_service.adapters.celery_app import CREDIT_TASK, QUEUE
from credit_service.adapters.celery_tasks import CeleryTasks, TaskAnswer


class Result:
    """Celery's AsyncResult."""

    def __init__(self, task_id: str, answer: object) -> None:
        self.task_id = task_id
        self.answer = answer
        self.is_forgotten = False

    def get(self, *, timeout: float, propagate: bool) -> object:
        if isinstance(self.answer, ResultTimeout):
            raise self.answer
        return self.answer

    def forget(self) -> None:
        self.is_forgotten = True
        raise ConnectionError("Redis is away")


class Backend:
    def remove_pending_result(self, result: Result) -> None:
        raise ConnectionError("Redis is away")


class App:
    """What CeleryTasks uses of Celery."""

    def __init__(self, answer: object = None) -> None:
        self.answer = answer
        self.sent: list[tuple[str, Sequence[Any], str]] = []
        self.backend = Backend()
        self.is_closed = False

    def send_task(self, name: str, *, args: Sequence[Any], task_id: str) -> Result:
        self.sent.append((name, args, task_id))
        return Result(task_id, self.answer)

    def AsyncResult(self, task_id: str) -> Result:
        return Result(task_id, self.answer)

    def close(self) -> None:
        self.is_closed = True


class Redis:
    """A list of tasks that wait."""

    waiting = (b'{"id": "task-1"}', b'{"id": "task-2"}')

    def llen(self, name: str) -> int:
        return len(self.waiting) if name == QUEUE else 0

    def lrange(self, name: str, _first: int, _last: int) -> list[bytes]:
        return list(self.waiting) if name == QUEUE else []

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def redis(monkeypatch: pytest.MonkeyPatch) -> None:
    class FromUrl:
        @staticmethod
        def from_url(_url: str, **_: object) -> Redis:
            return Redis()

    monkeypatch.setattr(celery_tasks, "Redis", FromUrl)


def tasks_of(app: App) -> CeleryTasks:
    return CeleryTasks(app, "redis://here")  # type: ignore[arg-type]


def test_a_task_is_sent_under_the_id_of_its_batch() -> None:
    app = App()
    tasks_of(app).send("task-1", [{"order_id": "1"}])
    assert app.sent == [(CREDIT_TASK, [[{"order_id": "1"}]], "task-1")]


def test_tasks_that_wait_are_counted_and_found_by_their_id() -> None:
    tasks = tasks_of(App())
    assert tasks.waiting() == 2
    assert (tasks.is_waiting("task-2"), tasks.is_waiting("task-3")) == (True, False)


def test_a_task_that_was_sent_before_is_waited_for_and_not_sent_again() -> None:
    app = App(["CREDITED"])
    assert tasks_of(app).expect("task-1").wait(1) == TaskAnswer(["CREDITED"])
    assert app.sent == []


def test_a_task_that_failed_answers_with_its_error() -> None:
    error = ValueError("a bad order")
    assert tasks_of(App(error)).send("task-1", []).wait(1) == TaskAnswer(error=error)


def test_a_task_without_an_answer_yet_has_none() -> None:
    assert tasks_of(App(ResultTimeout())).send("task-1", []).wait(0.1) is None


def test_what_only_saves_memory_raises_nothing_when_redis_is_away() -> None:
    task = tasks_of(App()).send("task-1", [])
    task.forget()
    task.stop_expecting()


def test_closing_closes_celery_too() -> None:
    app = App()
    tasks_of(app).close()
    assert app.is_closed
