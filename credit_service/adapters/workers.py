"""Finds the running workers by their connections to Redis (CLIENT LIST).

A worker waits for tasks on a connection with the worker's name. Redis closes the connection when the worker's
process ends. The end of a worker is therefore detected immediately, without heartbeats. If the worker's machine or
network fails, Redis detects it through TCP keep-alive.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

TAKES_NONE_AFTER_S: Final = 40.0
"""The time in seconds without a request for a task after which a worker counts as stuck.

It is longer than the 30 s for which all processes of a worker can be busy.
"""
_PREFIX: Final = "credit_worker"
_WAITS: Final = "brpop"
"""The command with which a worker waits for tasks."""


@dataclass(frozen=True, slots=True)
class LivingWorker:
    """A worker with a connection to Redis."""

    name: str
    """The worker's name: CREDIT_WORKER_NAME, or the name of its machine."""
    pid: int
    processes: int
    """The number of tasks that the worker can run at a time."""
    age_s: float
    """The age of the worker's connection in seconds."""
    idle_s: float
    """The time in seconds since the worker last asked for a task."""
    takes_tasks: bool
    """True if the worker has asked for a task within TAKES_NONE_AFTER_S seconds."""


def connection_name(name: str, pid: int, processes: int) -> str:
    """Returns the name of a worker's connections."""
    return f"{_PREFIX}:{quote(name, safe='')}:{pid}:{processes}"


def redis_client(redis_url: str, timeout_s: float) -> Redis:
    """Returns a client that does not connect yet, and does not retry. `timeout_s` is the timeout of each step.

    Raises ValueError for an invalid URL.
    """
    return Redis.from_url(redis_url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0))


@dataclass(frozen=True, slots=True)
class Workers:
    """Reads the workers' connections."""

    redis: Redis

    def living(self) -> list[LivingWorker]:
        """Returns the workers, sorted by name and process id.

        Raises RedisError, for example if the user of the URL may not run CLIENT LIST.
        """
        found = [_worker(connection) for connection in self.redis.client_list(_type="normal")]
        return sorted(
            {(one.name, one.pid): one for one in found if one is not None}.values(), key=lambda one: (one.name, one.pid)
        )

    def why_unready(self) -> str | None:
        """Returns the reason why no task is taken now, in one line; None if a worker takes tasks."""
        try:
            living = self.living()
        except RedisError as error:
            return f"Redis does not answer: {error}"
        if not living:
            return "no worker is alive"
        return None if any(worker.takes_tasks for worker in living) else "no worker takes the waiting tasks"


def _worker(connection: dict[str, str]) -> LivingWorker | None:
    prefix, *rest = connection.get("name", "").split(":")
    if prefix != _PREFIX or len(rest) != 3 or connection.get("cmd") != _WAITS or not (rest[1] + rest[2]).isdecimal():
        return None
    name, pid, processes = rest
    age_s, idle_s = float(connection["age"]), float(connection["idle"])
    return LivingWorker(unquote(name), int(pid), int(processes), age_s, idle_s, takes_tasks=idle_s < TAKES_NONE_AFTER_S)
