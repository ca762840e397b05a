"""The Redis user of docker-compose.yml has the permissions of the credit service and its workers, and no administrative ones."""

import re
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import NoPermissionError

from credit_service.adapters.drain_task import DRAIN_TASK, QUEUE, create_celery
from credit_service.adapters.workers import Workers, connection_name, redis_client
from demo.ports import free_ports
from demo.processes import PROJECT_ROOT, Processes, prints
from demo.system import redis_command

pytestmark = pytest.mark.e2e


@pytest.fixture
def redis_url(processes: Processes, tmp_path: Path) -> str:
    """Starts a Redis with the user of docker-compose.yml. Returns its URL."""
    (permissions,) = re.findall(r'echo "user default on #\$\$hash (.+?)"', (PROJECT_ROOT / "docker-compose.yml").read_text())
    (port,), settings = free_ports(1), tmp_path / "redis.conf"
    settings.write_text(f"user default on >secret {permissions}\n")
    server, *options = redis_command(port, tmp_path)
    processes.add("redis", [server, str(settings), *options], is_ready=prints("Ready to accept connections")).start()
    return f"redis://:secret@127.0.0.1:{port}/0"


def test_tasks_are_sent_and_taken_and_workers_are_found(redis_url: str) -> None:
    with create_celery(redis_url) as app, Redis.from_url(redis_url, client_name=connection_name("one", 7, 2)) as worker:
        app.send_task(DRAIN_TASK)
        assert worker.brpop([QUEUE], 5) is not None
        (found,) = Workers(redis_client(redis_url, 5)).living()
        assert (found.name, found.takes_tasks) == ("one", True)


def test_nothing_is_administered(redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        for command in ("CONFIG GET *", "CLIENT KILL TYPE normal", "ACL LIST", "SHUTDOWN"):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command.split())
