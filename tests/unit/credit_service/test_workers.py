"""Tests that workers are found by their connections, with a Redis that the test controls."""

from typing import Any

import pytest

from credit_service.adapters import workers
from credit_service.adapters.workers import TAKES_NONE_AFTER_S, LivingWorker, Workers, connection_name, redis_client

Connections = list[dict[str, str]]


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Returns the connections that CLIENT LIST reports. Tests fill the list."""
    found: Connections = []

    class Redis:
        @staticmethod
        def from_url(_url: str, **_: object) -> Any:
            return Redis()

        def client_list(self, _type: str) -> Connections:
            assert _type == "normal"
            return found

    monkeypatch.setattr(workers, "Redis", Redis)
    return found


def connection(name: str, *, pid: int = 7, cmd: str = "brpop", age: int = 60, idle: int = 0) -> dict[str, str]:
    return {"name": connection_name(name, pid, 2), "cmd": cmd, "age": str(age), "idle": str(idle)}


def living() -> list[LivingWorker]:
    return Workers(redis_client("redis://127.0.0.1:1/0", 1)).living()


@pytest.mark.parametrize("name", ["one", "two words", "a:b:c", "李雷", "%20", "-", "x" * 200])
def test_a_worker_is_found_by_any_name(connections: Connections, name: str) -> None:
    connections.append(connection(name, idle=3))
    assert living() == [LivingWorker(name, pid=7, processes=2, age_s=60, idle_s=3, takes_tasks=True)]
    sent = connection_name(name, 7, 2)
    assert sent.isascii()
    assert " " not in sent, "Redis refuses such a name"


def test_only_connections_that_ask_for_tasks_are_workers(connections: Connections) -> None:
    connections += [
        connection("one", cmd="lpush"),
        connection("one", cmd="ping"),
        {"name": "", "cmd": "brpop", "age": "1", "idle": "0"},
        {"name": "another:one:7:2", "cmd": "brpop", "age": "1", "idle": "0"},
        {"name": "credit_worker:one:7", "cmd": "brpop", "age": "1", "idle": "0"},
        {"name": "credit_worker:one:x:2", "cmd": "brpop", "age": "1", "idle": "0"},
        {"cmd": "brpop", "age": "1", "idle": "0"},
    ]
    assert living() == []


def test_workers_are_sorted_and_each_process_counts_once(connections: Connections) -> None:
    connections += [connection("two"), connection("one", pid=9), connection("one", pid=8), connection("one", pid=9)]
    assert [(worker.name, worker.pid) for worker in living()] == [("one", 8), ("one", 9), ("two", 7)]


@pytest.mark.parametrize(("idle_s", "takes_tasks"), [(0, True), (TAKES_NONE_AFTER_S - 1, True), (TAKES_NONE_AFTER_S, False)])
def test_a_worker_that_asks_for_no_task_for_long_takes_none(connections: Connections, idle_s: float, takes_tasks: bool) -> None:
    connections.append(connection("one", idle=int(idle_s)))
    assert [worker.takes_tasks for worker in living()] == [takes_tasks]
