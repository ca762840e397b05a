"""Heartbeats in a Redis of a few lines, whose clock belongs to the test; and the step of Celery's consumer that beats."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest
from redis import RedisError

from credit_service.adapters import worker_heartbeats
from credit_service.adapters.celery_app import QUEUE
from credit_service.adapters.worker_heartbeats import HEARTBEAT_INTERVAL_S, Heartbeat, WorkerHeartbeats
from credit_service.worker.heartbeat import LOOP_TIMEOUT_S, START_AGAIN_AFTER_S, heartbeat_step
from credit_service.worker.taking import Taking
from rocketmq_broker.world import World


class SmallRedis:
    """Keys with a life, and sets. It is its own pipeline, whose commands answer when they are executed."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.values: dict[str, tuple[bytes, int]] = {}
        self.sets: dict[str, set[str]] = {}
        self.is_away = False
        self.waiting = 0
        self._answers: list[object] = []

    def __enter__(self) -> Self:
        self._answers = []
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def pipeline(self) -> Self:
        return self

    def set(self, key: str, value: str, px: int) -> None:
        self.values[key] = (value.encode(), self.now_ms + px)

    def sadd(self, name: str, key: str) -> None:
        self.sets.setdefault(name, set()).add(key)

    def srem(self, name: str, *keys: str) -> None:
        self.sets.get(name, set()).difference_update(keys)

    def smembers(self, name: str) -> set[str]:
        return set(self.sets.get(name, ()))

    def delete(self, key: str) -> None:
        self.values.pop(key, None)

    def get(self, key: str) -> None:
        self._answers.append(self.values[key][0] if self._left_ms(key) > 0 else None)

    def llen(self, name: str) -> None:
        self._answers.append(self.waiting)

    def pttl(self, key: str) -> None:
        self._answers.append(self._left_ms(key))

    def execute(self) -> list[object]:
        if self.is_away:
            raise RedisError("away")
        return self._answers

    def close(self) -> None:
        self.is_away = True

    def _left_ms(self, key: str) -> int:
        return self.values[key][1] - self.now_ms if key in self.values else -2


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> SmallRedis:
    made = SmallRedis()

    class FromUrl:
        @staticmethod
        def from_url(_url: str, **_: object) -> SmallRedis:
            return made

    monkeypatch.setattr(worker_heartbeats, "Redis", FromUrl)
    return made


@pytest.fixture
def heartbeats(redis: SmallRedis) -> WorkerHeartbeats:
    return WorkerHeartbeats("redis://here", timeout_s=1, life_s=20)


def a_heartbeat(name: str = "one", pid: int = 1) -> Heartbeat:
    return Heartbeat(name=name, host="here", pid=pid, processes=2, age_s=60)


def test_who_beats_learns_how_many_tasks_wait(heartbeats: WorkerHeartbeats, redis: SmallRedis) -> None:
    redis.waiting = 12
    assert heartbeats.beat(a_heartbeat(), QUEUE) == 12


def test_the_time_since_the_heartbeat_counts_for_the_last_task_as_well(heartbeats: WorkerHeartbeats, redis: SmallRedis) -> None:
    heartbeats.beat(a_heartbeat().model_copy(update={"tasks_taken": 3, "taken_s_ago": 4.0, "takes_none_for_s": 0.0}), QUEUE)
    redis.now_ms = 2_000
    (worker,) = heartbeats.living()
    assert (worker.heartbeat.tasks_taken, worker.heartbeat.taken_s_ago, worker.takes_tasks) == (3, 6.0, True)


def names(heartbeats: WorkerHeartbeats) -> list[str]:
    return [worker.heartbeat.name for worker in heartbeats.living()]


def test_a_worker_lives_as_long_as_redis_keeps_its_heartbeat(heartbeats: WorkerHeartbeats, redis: SmallRedis) -> None:
    heartbeats.beat(a_heartbeat(), QUEUE)
    redis.now_ms = 19_999
    assert names(heartbeats) == ["one"]
    redis.now_ms = 20_000
    assert names(heartbeats) == []


def test_a_heartbeat_says_how_old_the_worker_is_now(heartbeats: WorkerHeartbeats, redis: SmallRedis) -> None:
    heartbeats.beat(a_heartbeat(), QUEUE)
    redis.now_ms = 3_000
    (worker,) = heartbeats.living()
    assert (worker.heard_s_ago, worker.heartbeat.age_s) == (3, 63)


def test_a_worker_that_is_gone_leaves_the_set_of_workers(heartbeats: WorkerHeartbeats, redis: SmallRedis) -> None:
    heartbeats.beat(a_heartbeat(), QUEUE)
    redis.now_ms = 60_000
    heartbeats.living()
    assert redis.sets["credit_service:workers"] == set()


def test_workers_come_by_name_and_process(heartbeats: WorkerHeartbeats) -> None:
    for name, pid in (("two", 1), ("one", 2), ("one", 1)):
        heartbeats.beat(a_heartbeat(name, pid), QUEUE)
    assert [(worker.heartbeat.name, worker.heartbeat.pid) for worker in heartbeats.living()] == [
        ("one", 1),
        ("one", 2),
        ("two", 1),
    ]


def test_a_worker_that_leaves_is_not_missed_first(heartbeats: WorkerHeartbeats) -> None:
    heartbeats.beat(a_heartbeat("one"), QUEUE)
    heartbeats.beat(a_heartbeat("two"), QUEUE)
    heartbeats.leave("one", 1)
    assert names(heartbeats) == ["two"]


def test_a_heartbeat_that_cannot_be_read_is_no_worker(heartbeats: WorkerHeartbeats, redis: SmallRedis) -> None:
    heartbeats.beat(a_heartbeat(), QUEUE)
    redis.set("credit_service:worker:one:1", '{"name": 1}', px=20_000)
    assert heartbeats.living() == []


def test_a_redis_that_is_away_is_an_error_of_its_own(heartbeats: WorkerHeartbeats) -> None:
    heartbeats.close()
    with pytest.raises(RedisError):
        heartbeats.beat(a_heartbeat(), QUEUE)


class Timer:
    """Celery's timer: calls when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []
        self.is_cancelled = False

    def call_repeatedly(self, interval_s: float, call: Callable[[], None]) -> Self:
        self.calls.append((interval_s, call))
        return self

    def cancel(self) -> None:
        self.is_cancelled = True


class CeleryConsumer:
    def __init__(self) -> None:
        self.timer = Timer()


@pytest.fixture
def consumer() -> CeleryConsumer:
    return CeleryConsumer()


class Worker:
    """What the step is told of its worker, and what it asks of it."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.taking = Taking(now_s=lambda: self.now_s)
        self.reasons: list[str] = []


@pytest.fixture
def worker() -> Iterator[Worker]:
    yield Worker()
    signal.alarm(0)


@pytest.fixture
def step(heartbeats: WorkerHeartbeats, consumer: CeleryConsumer, worker: Worker) -> Any:
    return heartbeat_step(heartbeats, World(), name="one", processes=2, taking=worker.taking, start_again=worker.reasons.append)(
        consumer
    )


def test_the_step_beats_at_once_and_then_every_few_seconds(
    step: Any, consumer: CeleryConsumer, heartbeats: WorkerHeartbeats, redis: SmallRedis
) -> None:
    step.start(consumer)
    (worker,) = heartbeats.living()
    assert (worker.heartbeat.name, worker.heartbeat.pid, worker.heartbeat.host) == ("one", os.getpid(), socket.gethostname())
    ((interval_s, beat),) = consumer.timer.calls
    redis.now_ms = 60_000
    beat()
    assert (interval_s, names(heartbeats)) == (HEARTBEAT_INTERVAL_S, ["one"])


def test_the_step_takes_its_worker_out_when_it_stops(step: Any, consumer: CeleryConsumer, heartbeats: WorkerHeartbeats) -> None:
    step.start(consumer)
    step.stop(consumer)
    assert (consumer.timer.is_cancelled, names(heartbeats)) == (True, [])
    step.stop(consumer)


def test_the_step_goes_on_without_redis(
    step: Any, consumer: CeleryConsumer, redis: SmallRedis, caplog: pytest.LogCaptureFixture
) -> None:
    redis.is_away = True
    step.start(consumer)
    step.stop(consumer)
    assert caplog.messages == ["no heartbeat: away"]


def test_a_worker_that_takes_none_of_the_tasks_that_wait_is_told_to_start_again(
    step: Any, consumer: CeleryConsumer, worker: Worker, redis: SmallRedis, heartbeats: WorkerHeartbeats
) -> None:
    redis.waiting = 12
    step.start(consumer)
    ((_, beat),) = consumer.timer.calls
    worker.now_s += START_AGAIN_AFTER_S - 1
    beat()
    (seen,) = heartbeats.living()
    assert (seen.takes_tasks, worker.reasons) == (False, [])
    worker.now_s += 1
    beat()
    assert worker.reasons == ["12 tasks wait in Redis, and it has taken none for 60 s"]


def test_a_worker_that_takes_one_task_in_time_goes_on(
    step: Any, consumer: CeleryConsumer, worker: Worker, redis: SmallRedis
) -> None:
    redis.waiting = 12
    step.start(consumer)
    ((_, beat),) = consumer.timer.calls
    for _ in range(20):
        worker.now_s += START_AGAIN_AFTER_S / 2
        worker.taking.take()
        beat()
    assert worker.reasons == []


def test_each_turn_of_the_loop_puts_the_alarm_off_that_ends_a_hang(step: Any, consumer: CeleryConsumer) -> None:
    step.start(consumer)
    assert signal.alarm(LOOP_TIMEOUT_S // 2) in (LOOP_TIMEOUT_S, LOOP_TIMEOUT_S - 1)
    ((_, beat),) = consumer.timer.calls
    beat()
    assert signal.alarm(0) in (LOOP_TIMEOUT_S, LOOP_TIMEOUT_S - 1)
