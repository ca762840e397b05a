"""The places of a worker, with a Redis of two tables that can refuse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest
from kombu import Connection
from redis import ConnectionPool, Redis, RedisError, ResponseError

from credit_service.adapters import redis_transport
from credit_service.adapters.celery_app import create_celery
from credit_service.adapters.redis_transport import MAX_OWED, ReturningQoS, Transport
from rocketmq_broker.world import World, in_world

PLACES = 2
VISIBILITY_S = 60


class Tables:
    """What kombu keeps in Redis of tasks that have no end yet. It is its own pipeline."""

    def __init__(self) -> None:
        self.unacked: dict[str, str] = {}
        self.index: dict[str, float] = {}
        self.error: Exception | None = None
        self._changes: list[Any] = []

    def zadd(self, _key: str, scores: dict[str, float]) -> Self:
        self._changes.append(lambda: self.index.update(scores))
        return self

    def hset(self, _key: str, tag: str, value: str) -> Self:
        self._changes.append(lambda: self.unacked.update({tag: value}))
        return self

    def zrem(self, _key: str, *tags: str) -> Self:
        self._changes += [lambda tag=tag: self.index.pop(tag, None) for tag in tags]
        return self

    def hdel(self, _key: str, *tags: str) -> Self:
        self._changes += [lambda tag=tag: self.unacked.pop(tag, None) for tag in tags]
        return self

    def pipeline(self) -> Self:
        self._changes = []
        return self

    def execute(self) -> None:
        if self.error is not None:
            raise self.error
        for change in self._changes:
            change()


class Channel:
    """As much of kombu's channel as places need."""

    unacked_key, unacked_index_key, visibility_timeout = "unacked", "unacked_index", VISIBILITY_S

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @contextmanager
    def conn_or_acquire(self, _client: object = None) -> Iterator[Tables]:
        yield self._tables


class Message:
    _raw = "a task"
    delivery_info = {"exchange": "", "routing_key": "credits"}


class Places(ReturningQoS):
    """With a clock of the test."""

    time_s = 0.0


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
def places(tables: Tables) -> Places:
    with in_world(World(steady_ns=lambda: int(made.time_s * 1e9))):
        made = Places(Channel(tables), PLACES)
    made._on_collect.cancel()
    return made


def take(places: Places, *tags: str) -> None:
    for tag in tags:
        places.append(Message(), tag)


def test_a_worker_takes_as_many_tasks_as_it_has_places(places: Places, tables: Tables) -> None:
    take(places, "1", "2")
    assert (places.can_consume(), set(tables.unacked)) == (False, {"1", "2"})
    places.ack("1")
    assert (places.can_consume(), set(tables.unacked), set(tables.index)) == (True, {"2"}, {"2"})


@pytest.mark.parametrize("error", [RedisError("it hangs"), ResponseError("READONLY"), OSError("broken pipe")])
def test_a_place_comes_back_although_redis_cannot_be_told(places: Places, tables: Tables, error: Exception) -> None:
    take(places, "1", "2")
    tables.error = error
    places.ack("1")
    places.ack("2")
    assert places.can_consume()


def test_what_redis_could_not_be_told_it_is_told_with_the_next_end(places: Places, tables: Tables) -> None:
    take(places, "1", "2")
    tables.error = RedisError("it hangs")
    places.ack("1")
    tables.error = None
    assert set(tables.unacked) == {"1", "2"}
    places.ack("2")
    assert (tables.unacked, tables.index) == ({}, {})


def test_a_task_that_redis_gave_out_again_is_not_ended_by_its_first_end(places: Places, tables: Tables) -> None:
    take(places, "1")
    tables.error = RedisError("it hangs")
    places.ack("1")
    tables.error = None
    take(places, "1", "2")
    places.ack("2")
    assert set(tables.unacked) == {"1"}


def test_a_task_whose_end_is_never_told_holds_its_place_no_longer_than_redis_waits(places: Places) -> None:
    take(places, "1")
    places.time_s = 30
    take(places, "2")
    places.time_s = VISIBILITY_S
    assert not places.can_consume()
    places.time_s = VISIBILITY_S + 1
    assert places.can_consume()


def test_a_late_end_gives_no_second_place(places: Places) -> None:
    take(places, "1", "2")
    places.time_s = VISIBILITY_S + 1
    assert places.can_consume()
    take(places, "3", "4")
    places.ack("1")
    places.ack("2")
    assert not places.can_consume()


def test_a_place_that_redis_did_not_confirm_is_not_taken(places: Places, tables: Tables) -> None:
    tables.error = ResponseError("OOM command not allowed")
    with pytest.raises(ResponseError):
        take(places, "1")
    tables.error = None
    take(places, "2")
    assert places.can_consume()


@pytest.mark.parametrize("requeue", [False, True])
def test_a_refused_task_gives_its_place_back_although_redis_cannot_be_told(places: Places, tables: Tables, requeue: bool) -> None:
    take(places, "1", "2")
    tables.error = RedisError("it hangs")
    places.reject("1", requeue=requeue)
    assert places.can_consume()


@pytest.mark.slow
def test_what_is_owed_to_redis_has_a_bound(places: Places, tables: Tables) -> None:
    for number in range(MAX_OWED + 10):
        tables.error = None
        take(places, str(number))
        tables.error = ResponseError("NOPERM")
        places.ack(str(number))
    tables.error = None
    take(places, "last")
    places.ack("last")
    assert len(tables.unacked) == 10


@pytest.mark.parametrize("url", ["redis://127.0.0.1:6379/0", "rediss://:secret@127.0.0.1:6379/0?ssl_cert_reqs=CERT_REQUIRED"])
def test_celery_goes_to_redis_by_this_transport(url: str) -> None:
    connection: Connection = create_celery(url).connection_for_read()
    assert isinstance(connection.transport, Transport)
    assert bool(connection.ssl) == url.startswith("rediss")


def test_a_channel_makes_one_client_of_redis_for_all_commands_by_one_pool() -> None:
    channel = redis_transport.Channel.__new__(redis_transport.Channel)  # kombu's constructor connects
    channel.Client, channel._pool = Redis, ConnectionPool()
    with channel.conn_or_acquire() as first, channel.conn_or_acquire() as second:
        assert first is second
    channel._pool = ConnectionPool()
    with channel.conn_or_acquire() as other:
        assert other is not first
