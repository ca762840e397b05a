"""Workers by their heartbeats, with a real Redis: who sees them, and when they are missed."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from credit_service.adapters.celery_app import QUEUE
from credit_service.adapters.worker_heartbeats import Heartbeat, WorkerHeartbeats
from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Process, Processes, prints
from demo.system import redis_command
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

StartWorker = Callable[[str], Process]


@pytest.fixture
def redis(processes: Processes, tmp_path: Path) -> tuple[Process, str]:
    """The process, and its URL."""
    (port,) = free_ports(1)
    process = processes.add("redis", redis_command(port, tmp_path), is_ready=prints("Ready to accept connections"))
    process.start()
    return process, f"redis://127.0.0.1:{port}/0"


@pytest.fixture
def heartbeats(redis: tuple[Process, str]) -> Iterator[WorkerHeartbeats]:
    reader = WorkerHeartbeats(redis[1], timeout_s=10)
    yield reader
    reader.close()


@pytest.fixture
def start_worker(processes: Processes, redis: tuple[Process, str], tmp_path: Path) -> StartWorker:
    def start(name: str) -> Process:
        environment = {
            "REDIS_URL": redis[1],
            "CREDIT_DATABASE_URL": f"sqlite:///{tmp_path}/credits.db",
            "CREDIT_WORKER_NAME": name,
            "CREDIT_WORKER_PROCESSES": "3",
        }
        command = [sys.executable, "-m", "credit_service.worker"]
        worker = processes.add(f"worker-{name}", command, environment=environment, is_ready=prints("credit worker ready: "))
        worker.start()
        return worker

    return start


def check(worker: Process) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "credit_service.worker", "--check"]
    return subprocess.run(
        command, cwd=PROJECT_ROOT, env={**os.environ, **worker.environment}, capture_output=True, text=True, timeout=60
    )


def test_a_worker_is_seen_while_it_lives_and_its_check_is_satisfied_by_no_other(
    start_worker: StartWorker, heartbeats: WorkerHeartbeats
) -> None:
    one, two = start_worker("one"), start_worker("two")
    wait_until(lambda: len(heartbeats.living()) == 2)
    seen = [worker.heartbeat for worker in heartbeats.living()]
    assert [(worker.name, worker.pid, worker.processes) for worker in seen] == [("one", one.pid, 3), ("two", two.pid, 3)]
    assert check(one).returncode == check(two).returncode == 0
    assert f"worker one (process {one.pid}) was heard" in check(one).stdout

    one.kill()
    killed = check(one)
    assert (killed.returncode, killed.stdout) == (1, "")
    assert killed.stderr == "credit_service.worker --check: no worker named one has been heard of for some seconds\n"
    assert check(two).returncode == 0

    two.stop()
    assert "two" not in [worker.heartbeat.name for worker in heartbeats.living()]


def test_a_worker_that_lost_redis_fails_its_check_and_is_seen_again_when_redis_is_back(
    start_worker: StartWorker, heartbeats: WorkerHeartbeats, redis: tuple[Process, str]
) -> None:
    worker = start_worker("one")
    wait_until(lambda: check(worker).returncode == 0)
    redis[0].kill()
    without_redis = check(worker)
    assert without_redis.returncode == 1
    assert "Redis cannot be asked" in without_redis.stderr
    assert "Traceback" not in without_redis.stderr
    redis[0].start()
    wait_until(lambda: [living.heartbeat.name for living in heartbeats.living()] == ["one"])
    assert check(worker).returncode == 0


def test_a_heartbeat_is_forgotten_when_the_next_one_does_not_come(redis: tuple[Process, str]) -> None:
    short = WorkerHeartbeats(redis[1], timeout_s=10, life_s=0.2)
    short.beat(Heartbeat(name="one", host="here", pid=1, processes=1, age_s=0), QUEUE)
    wait_until(lambda: short.living() == [])
    client = Redis.from_url(redis[1])
    assert list(client.scan_iter("credit_service:*")) == []
    client.close()
    short.close()


def test_how_long_ago_a_heartbeat_came_counts_for_the_age(redis: tuple[Process, str]) -> None:
    heartbeats = WorkerHeartbeats(redis[1], timeout_s=10, life_s=1_000)
    heartbeats.beat(Heartbeat(name="one", host="here", pid=1, processes=1, age_s=60), QUEUE)
    client = Redis.from_url(redis[1])
    client.pexpire("credit_service:worker:one:1", 900_000)
    (worker,) = heartbeats.living()
    assert 100 <= worker.heard_s_ago < 160
    assert 160 <= worker.heartbeat.age_s < 220
    client.close()
    heartbeats.close()


def test_what_others_write_in_place_of_a_heartbeat_is_passed_over(redis: tuple[Process, str]) -> None:
    heartbeats = WorkerHeartbeats(redis[1], timeout_s=10)
    client = Redis.from_url(redis[1])
    for key, value in (("a", b"{"), ("b", b'{"name": 7}'), ("c", b"\xff")):
        client.set(key, value)
        client.sadd("credit_service:workers", key)
    heartbeats.beat(Heartbeat(name="one", host="here", pid=1, processes=1, age_s=0), QUEUE)
    assert [worker.heartbeat.name for worker in heartbeats.living()] == ["one"]
    client.close()
    heartbeats.close()
