"""Tests when and where a task is sent and which data it carries. The test controls Celery and Redis."""

from contextlib import suppress
from typing import Any

import pytest
from billiard.exceptions import TimeLimitExceeded, WorkerLostError
from celery import Celery, signals
from redis.exceptions import ConnectionError as RedisConnectionError

from credit_service.adapters.drain_task import CAREFUL_S, DRAIN_TASK, QUEUE, TaskSender, create_celery, register_drain_task
from service_runtime.database.database_errors import DatabaseUnavailable

URL = "redis://127.0.0.1:1/0"


class World:
    """The inbox, Celery and Redis in one object."""

    def __init__(self) -> None:
        self.due = True
        self.waiting = 0
        self.is_redis_up = True
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def is_due(self) -> bool:
        return self.due

    def llen(self, name: str) -> int:
        if not self.is_redis_up:
            raise RedisConnectionError("connection refused")
        return self.waiting if name == QUEUE else 0

    def send_task(self, name: str, kwargs: dict[str, Any] | None = None) -> None:
        self.sent.append((name, kwargs or {}))
        self.waiting += 1


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def tasks(world: World) -> TaskSender:
    return TaskSender(world, world, world)  # type: ignore[arg-type]


def test_at_most_one_task_waits_for_as_long_as_no_worker_takes_it(tasks: TaskSender, world: World) -> None:
    for _ in range(1000):
        tasks.send_if_due()
    assert world.sent == [(DRAIN_TASK, {})]
    world.waiting = 0
    tasks.send_if_due()
    assert len(world.sent) == 2


def test_no_task_is_sent_and_redis_is_not_asked_while_nothing_is_due(tasks: TaskSender, world: World) -> None:
    world.due = world.is_redis_up = False
    tasks.send_if_due()
    assert world.sent == []


def test_an_outage_of_redis_is_an_error_of_the_call_and_sends_nothing(tasks: TaskSender, world: World) -> None:
    world.is_redis_up = False
    with pytest.raises(RedisConnectionError):
        tasks.send_if_due()
    assert world.sent == []


@pytest.fixture
def app(world: World, monkeypatch: pytest.MonkeyPatch) -> Celery:
    app = create_celery(URL)
    monkeypatch.setattr(app, "send_task", world.send_task)
    return app


@pytest.mark.parametrize("error", [WorkerLostError("signal 9"), TimeLimitExceeded(30)])
def test_after_a_task_that_ended_its_process_messages_are_tried_one_by_one_for_a_minute(app: Celery, error: Exception) -> None:
    drained: list[bool] = []
    now_s = 1000.0
    register_drain_task(app, drained.append, lambda: now_s)
    task = app.tasks[DRAIN_TASK]
    task()
    signals.task_failure.send(sender=app, exception=error)
    task()
    now_s += CAREFUL_S
    task()
    assert drained == [False, True, False]


@pytest.mark.parametrize("error", [DatabaseUnavailable("away"), ValueError("a bug"), None])
def test_another_failure_changes_nothing(app: Celery, error: Exception | None) -> None:
    drained: list[bool] = []
    register_drain_task(app, drained.append, lambda: 1000.0)
    signals.task_failure.send(sender=app, exception=error)
    app.tasks[DRAIN_TASK]()
    assert drained == [False]


def test_a_task_passes_over_arguments_of_a_newer_version(app: Celery) -> None:
    drained: list[bool] = []
    register_drain_task(app, drained.append, lambda: 1000.0)
    app.tasks[DRAIN_TASK](shards=3)
    assert drained == [False]


def test_a_failure_of_the_database_is_logged_once_for_as_long_as_it_stays_the_same(
    app: Celery, caplog: pytest.LogCaptureFixture
) -> None:
    failures = iter(["it is locked", "it is locked", "it is full", None, "it is full"])

    def drain(_one_by_one: bool) -> None:
        failure = next(failures)
        if failure is not None:
            raise DatabaseUnavailable(failure)

    register_drain_task(app, drain, lambda: 1000.0)
    for _ in range(5):
        with suppress(DatabaseUnavailable):
            app.tasks[DRAIN_TASK]()
    assert caplog.messages == [
        f"cannot credit messages; they stay in the inbox: it is {what}" for what in ("locked", "full", "full")
    ]


@pytest.mark.parametrize(
    "variable", ["CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL", "CELERY_RESULT_BACKEND"]
)
def test_a_variable_that_is_meant_for_another_program_does_not_move_the_tasks(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Celery reads its own environment variables, which take precedence over the program's settings."""
    monkeypatch.setenv(variable, "redis://another-program:6379/0")
    conf = create_celery(URL).conf
    assert {conf.broker_url, conf.broker_read_url, conf.broker_write_url} == {URL}
    assert conf.result_backend is None, "no task has a result"


@pytest.fixture(autouse=True)
def _no_receivers_are_left() -> Any:
    before = list(signals.task_failure.receivers)
    yield
    signals.task_failure.receivers = before
