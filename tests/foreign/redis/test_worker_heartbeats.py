"""A worker by its heartbeats in a real Redis that goes away and comes back."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from credit_service.adapters.worker_heartbeats import WorkerHeartbeats
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


def test_a_worker_that_lost_redis_fails_its_check_and_is_seen_again_when_redis_is_back(
    start_worker: StartWorker, heartbeats: WorkerHeartbeats, redis: tuple[Process, str]
) -> None:
    worker = start_worker("one")
    wait_until(lambda: check(worker).returncode == 0)
    redis[0].kill()
    without_redis = check(worker)
    assert without_redis.returncode == 1
    assert "Redis does not answer" in without_redis.stderr
    assert "Traceback" not in without_redis.stderr
    redis[0].start()
    wait_until(lambda: [living.heartbeat.name for living in heartbeats.living()] == ["one"])
    assert check(worker).returncode == 0
