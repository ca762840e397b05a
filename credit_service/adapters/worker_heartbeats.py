"""Tracks living workers by their heartbeats in Redis, which expire unless they are renewed.

    credit_service:workers             set of the workers' keys
    credit_service:worker:NAME:PID     the worker's status as JSON; expires

The age of a heartbeat follows from its remaining time to live in Redis, so that no two clocks are compared.
"""

from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

HEARTBEAT_INTERVAL_S: Final = 5.0
HEARTBEAT_LIFE_S: Final = 20.0
"""The time in seconds after which a heartbeat expires. A worker that misses three heartbeats counts as gone."""
TAKES_NONE_AFTER_S: Final = 40.0
"""The time in seconds after which a worker counts as stuck if it takes no task although some wait.

It is longer than the 30 s that a task may take.
"""
_ALL: Final = "credit_service:workers"
_ONE: Final = "credit_service:worker:"


class Heartbeat(BaseModel):
    """The status that a worker reports. Unknown fields, which a newer worker may send, are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    """The worker's name: CREDIT_WORKER_NAME, or the name of the machine."""
    host: str
    pid: int
    processes: int
    """The number of tasks that it can run at a time."""
    age_s: float
    """The time in seconds since the worker started."""
    tasks_taken: int | None = None
    """The number of tasks that it has taken from Redis. None, like the fields below, in a heartbeat of an older version."""
    taken_s_ago: float | None = None
    """The time in seconds since it took its last task; None also if it has taken none."""
    takes_none_for_s: float | None = None
    """The time in seconds that tasks have waited in Redis without this worker taking one.

    The value is 0 if no task waits, or if the worker takes the tasks.
    """


@dataclass(frozen=True, slots=True)
class LivingWorker:
    """A worker whose heartbeat has not expired."""

    heartbeat: Heartbeat
    heard_s_ago: float

    @property
    def takes_tasks(self) -> bool:
        """True unless tasks wait, and the worker has taken none for longer than its processes can be busy."""
        return (self.heartbeat.takes_none_for_s or 0.0) < TAKES_NONE_AFTER_S


class WorkerHeartbeats:
    """Writes and reads heartbeats. All methods raise RedisError if Redis does not answer each command within `timeout_s`."""

    def __init__(self, redis_url: str, *, timeout_s: float, life_s: float = HEARTBEAT_LIFE_S) -> None:
        """The constructor does not connect. Raises ValueError if `redis_url` is not a Redis URL."""
        self._life_ms = int(life_s * 1000)
        self._redis = Redis.from_url(
            redis_url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
        )

    def beat(self, heartbeat: Heartbeat, queue: str) -> int:
        """Writes the worker's heartbeat, and returns the number of tasks that wait in `queue`."""
        key = _key(heartbeat.name, heartbeat.pid)
        with self._redis.pipeline() as pipeline:
            pipeline.set(key, heartbeat.model_dump_json(), px=self._life_ms)
            pipeline.sadd(_ALL, key)
            pipeline.llen(queue)
            return int(pipeline.execute()[-1])

    def leave(self, name: str, pid: int) -> None:
        """Removes the heartbeat of a worker that stops, before the heartbeat expires."""
        key = _key(name, pid)
        with self._redis.pipeline() as pipeline:
            pipeline.delete(key)
            pipeline.srem(_ALL, key)
            pipeline.execute()

    def living(self) -> list[LivingWorker]:
        """Returns the workers with a live heartbeat, sorted by name and process id."""
        keys = sorted(self._redis.smembers(_ALL))
        with self._redis.pipeline() as pipeline:
            for key in keys:
                pipeline.get(key)
                pipeline.pttl(key)
            answers = pipeline.execute()
        found = dict(zip(keys, zip(answers[::2], answers[1::2], strict=True), strict=True))
        gone = [key for key, (said, _) in found.items() if said is None]
        if gone:
            self._redis.srem(_ALL, *gone)
        workers = [self._living(said, left_ms) for said, left_ms in found.values() if said is not None]
        return [worker for worker in workers if worker is not None]

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()

    def _living(self, said: bytes, left_ms: int) -> LivingWorker | None:
        try:
            heartbeat = Heartbeat.model_validate_json(said)
        except ValidationError:
            return None
        heard_s_ago = max(0, self._life_ms - left_ms) / 1000
        later = {"age_s": heartbeat.age_s + heard_s_ago}
        if heartbeat.taken_s_ago is not None:
            later["taken_s_ago"] = heartbeat.taken_s_ago + heard_s_ago
        return LivingWorker(heartbeat.model_copy(update=later), heard_s_ago)


def _key(name: str, pid: int) -> str:
    return f"{_ONE}{name}:{pid}"
