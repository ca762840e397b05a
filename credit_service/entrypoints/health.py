"""The health endpoints of the credit service, for orchestrators and operators: /readyz and /healthz."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Final, Protocol

from flask import Blueprint, Response, current_app
from pydantic import BaseModel
from redis import RedisError

from credit_service.adapters.workers import LivingWorker, Workers
from rocketmq_broker.client import QueueProgress
from service_runtime.failing.dead_letters import DeadLetters, attention_for
from service_runtime.http.health import NeedsAttention, ReadyResponse, Status, Word, http_status, status_of, word
from service_runtime.http.readiness import FOR_S, Need, Needed, Readiness, not_ready, word_of
from service_runtime.http.requests import json_response
from service_runtime.inbox.backlog import InboxBacklog, InboxHealth

health_api = Blueprint("health", __name__)

STILL_AFTER_S: Final = 120.0
"""The time in seconds without progress after which a queue counts as stalled."""


class ConsumerQueues(Protocol):
    """The interface that reads the progress of the consumer's queues."""

    def progress(self) -> Sequence[QueueProgress] | None:
        """Returns the progress of each queue; None if it is unknown."""


_MEANWHILE: Final = "Until then orders wait at the broker or in the inbox, and none is lost."
_OF_DATABASE: Final = (
    f"a lock that is held, a full disk, a missing write privilege, or a standby that commits wait for. {_MEANWHILE}"
)


@dataclass(frozen=True, slots=True)
class _LivingWorkers:
    """A readiness check that fails unless a worker is alive and takes tasks."""

    workers: Workers

    def why_unready(self) -> str | None:
        try:
            living = self.workers.living()
        except RedisError as error:
            return f"Redis does not answer: {error}"
        if not living:
            return "no worker is alive"
        return None if any(worker.takes_tasks for worker in living) else "no worker takes the waiting tasks"


@dataclass(frozen=True)
class HealthSources:
    """The sources of the health report."""

    database: Needed
    broker: Needed
    workers: Workers
    backlog: InboxBacklog
    refusals: InboxBacklog
    queues: ConsumerQueues
    dead_letters: DeadLetters
    now_s: Callable[[], float]
    readiness_counts_s: float = FOR_S
    """The time in seconds for which a result of the readiness check is cached."""
    results: NeedsAttention | None = None
    """The source of warnings that the database was reset to an older state."""

    @cached_property
    def readiness(self) -> Readiness:
        """The check of all dependencies that are required to credit an order."""
        return Readiness(
            [
                Need("database", self.database, f"Check the credit database for {_OF_DATABASE}"),
                Need("broker", self.broker, f"Run rocketmq-admin doctor to check name server and broker. {_MEANWHILE}"),
                Need("workers", _LivingWorkers(self.workers), f"Start Redis, or a credit_service.worker. {_MEANWHILE}"),
                Need("orders", self.backlog, f"The workers' log says why. {_MEANWHILE}"),
                Need("refusals", self.refusals, "They are sent to the order service when the broker takes them."),
            ],
            steady_s=self.now_s,
            for_s=self.readiness_counts_s,
        )


class WorkerHealth(BaseModel):
    """A worker that is connected to Redis."""

    name: str
    pid: int
    processes: int
    age_s: float
    """The age of the worker's connection in seconds."""
    idle_s: float
    """The time in seconds since it last asked for a task."""
    takes_tasks: bool


class QueueHealth(BaseModel):
    """A queue without progress: no pull succeeds, or a batch does not end."""

    topic: str
    broker: str
    queue_id: int
    unacknowledged: int
    for_s: float


class CreditHealthResponse(BaseModel):
    """The health of the service.

    degraded: something is unavailable, no worker takes tasks, orders wait in the inbox for too long, or a queue is stalled;
    attention: single orders fail, messages are parked or dead letters, or the database was reset to an older state.
    """

    status: Status
    database: Word
    redis: Word
    broker: Word
    workers: list[WorkerHealth]
    inbox: InboxHealth | None
    """The orders that are acknowledged and not credited yet; null if the database does not answer."""
    queues: int | None
    """The number of queues of orders that this service consumes; null if the consumer does not answer."""
    standing_still: list[QueueHealth]
    attention: list[str]
    """A line for each problem that needs manual action, with the command to run."""
    missing: list[str]
    """A line for each reason why orders cannot be credited, with what to do about it."""


@health_api.get("/readyz")
def get_readyz() -> Response:
    """Reports whether orders can be credited now: 200, or 503 with what is missing and how to fix it."""
    missing = _sources().readiness.missing()
    return not_ready(missing) if missing else json_response(ReadyResponse())


@health_api.get("/healthz")
def get_healthz() -> Response:
    """Reports database, Redis, broker, workers, queues, inbox and dead letters: 200, or 503 if degraded."""
    sources = _sources()
    workers = _living(sources.workers)
    missing = sources.readiness.missing()
    database, broker = word_of("database", missing), word_of("broker", missing)
    state = sources.backlog.state() if database == "ok" else None
    progress = sources.queues.progress()
    still = [_queue_health(one) for one in progress or () if one.stands_still_s > STILL_AFTER_S]
    of_results = [] if sources.results is None else sources.results.attention()
    attention = [*of_results, *sources.backlog.attention(state), *attention_for(sources.dead_letters)]
    report = CreditHealthResponse(
        status=status_of(not missing and not still, attention),
        database=database,
        redis=word(workers is not None),
        broker=broker,
        workers=[WorkerHealth(takes_tasks=worker.takes_tasks, **asdict(worker)) for worker in workers or ()],
        inbox=sources.backlog.health(state),
        queues=None if progress is None else len(progress),
        standing_still=still,
        attention=attention,
        missing=[str(one) for one in missing],
    )
    return json_response(report, http_status(report))


def _sources() -> HealthSources:
    sources: HealthSources = current_app.extensions["health"]
    return sources


def _living(workers: Workers) -> Sequence[LivingWorker] | None:
    """Returns the workers that are alive; None if Redis is unavailable."""
    try:
        return workers.living()
    except RedisError:
        return None


def _queue_health(progress: QueueProgress) -> QueueHealth:
    queue = progress.queue
    return QueueHealth(
        topic=queue.topic,
        broker=queue.broker_name,
        queue_id=queue.queue_id,
        unacknowledged=progress.unacknowledged,
        for_s=round(progress.stands_still_s, 1),
    )
