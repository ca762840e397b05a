"""The health of the credit service for orchestrators and operators: /readyz and /healthz."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from flask import Blueprint, Response, current_app
from pydantic import BaseModel
from redis import RedisError

from credit_service.adapters.worker_heartbeats import LivingWorker
from rocketmq_broker.client import QueueProgress
from service_runtime.failing.dead_letters import DeadLetters, attention_for
from service_runtime.failing.holds import HasHolding, HoldCause, Holding, NoOutage
from service_runtime.http.health import NeedsAttention, ReadyResponse, Status, Word, http_status, status_of, word
from service_runtime.http.readiness import FOR_S, Need, Needed, Readiness, not_ready, word_of
from service_runtime.http.responses import json_response

health_api = Blueprint("health", __name__)

STILL_AFTER_S: Final = 120.0
"""A queue that has not moved for so long stands still. A batch takes no longer than its task's time-out, and is held then."""


class Workers(Protocol):
    """The port to the workers' heartbeats."""

    def living(self) -> Sequence[LivingWorker]:
        """Returns the living workers. Raises RedisError."""


class ConsumerQueues(Protocol):
    """The port to the consumer's queues."""

    def progress(self) -> Sequence[QueueProgress] | None:
        """Returns the progress of each queue; None if it is unknown."""


_MEANWHILE: Final = "Orders wait at the broker meanwhile, and none is lost."
_OF_DATABASE: Final = (
    f"an end of what locks it, room on its disk, the right to write, the standby that its commits wait for. {_MEANWHILE}"
)


@dataclass(frozen=True, slots=True)
class _LivingWorkers:
    """The living workers, as a need of credits."""

    workers: Workers

    def why_unready(self) -> str | None:
        try:
            living = self.workers.living()
        except RedisError as error:
            return f"Redis cannot be asked: {error}"
        if not living:
            return "no worker is alive"
        return None if any(worker.takes_tasks for worker in living) else "no worker takes the tasks that wait"


@dataclass(frozen=True)
class HealthSources:
    """The sources of the health report."""

    database: Needed
    broker: Needed
    workers: Workers
    holds: HasHolding
    queues: ConsumerQueues
    dead_letters: DeadLetters
    now_s: Callable[[], float]
    readiness_counts_s: float = FOR_S
    """For how long what they said of their readiness counts."""
    results: NeedsAttention | None = None
    """Whether the database went back in time."""

    @cached_property
    def readiness(self) -> Readiness:
        """The readiness to credit an order now."""
        return Readiness(
            [
                Need("database", self.database, f"Give the credit database what it lacks: {_OF_DATABASE}"),
                Need("broker", self.broker, f"Look at name server and broker with rocketmq-admin doctor. {_MEANWHILE}"),
                Need("workers", _LivingWorkers(self.workers), f"Start Redis, or a credit_service.worker. {_MEANWHILE}"),
                Need("orders", NoOutage(self.holds), f"Each is tried again until it works. {_MEANWHILE}"),
            ],
            steady_s=self.now_s,
            for_s=self.readiness_counts_s,
        )


class WorkerHealth(BaseModel):
    """A worker that is alive."""

    name: str
    host: str
    pid: int
    processes: int
    age_s: float
    """How long it has run."""
    heard_s_ago: float
    tasks_taken: int | None
    """null from a worker of an older version."""
    taken_s_ago: float | None
    takes_none_for_s: float | None
    """For how long tasks have waited without this worker taking one; 0 if none waits, or it takes them."""


class HeldOrdersHealth(BaseModel):
    """Orders that the consumer keeps and tries again and again; the log says why."""

    orders: int
    batches: int
    for_s: float
    cause: HoldCause
    """refusal: the database refuses them, and has taken no other since. suspicion: their task fails, and no other has passed."""


class QueueHealth(BaseModel):
    """A queue of orders that does not move, although nothing is held: no pull makes sense, or a batch never ends."""

    topic: str
    broker: str
    queue_id: int
    unacknowledged: int
    for_s: float


class CreditHealthResponse(BaseModel):
    """All in detail.

    degraded: something is away, no worker takes tasks, an outage holds orders, the database refuses several and takes none,
    or a queue stands still;
    attention: single orders are held, messages are dead letters, or the database went back in time.
    """

    status: Status
    database: Word
    redis: Word
    broker: Word
    workers: list[WorkerHealth]
    held: HeldOrdersHealth | None
    queues: int | None
    """How many queues of orders this service has; null if nobody knows, as with Apache's client of RocketMQ 5."""
    standing_still: list[QueueHealth]
    attention: list[str]
    """What a person has to look after, with the command for it."""
    missing: list[str]
    """What keeps orders from being credited, and what to do about it."""


@health_api.get("/readyz")
def get_readyz() -> Response:
    """Whether an order could be credited now: 200, or 503 with what is missing and what to do."""
    missing = _sources().readiness.missing()
    return not_ready(missing) if missing else json_response(ReadyResponse())


@health_api.get("/healthz")
def get_healthz() -> Response:
    """Database, Redis, broker, each worker, each queue, what is held, dead letters: 503 if that is degraded, for monitoring."""
    sources = _sources()
    workers = _living(sources.workers)
    holding = sources.holds.state()
    missing = sources.readiness.missing()
    database, broker = word_of("database", missing), word_of("broker", missing)
    redis = word(workers is not None)
    progress = sources.queues.progress()
    # Held orders explain a queue that stands still, and show whether it is an outage.
    still = [] if holding is not None else [_queue_health(one) for one in progress or () if one.stands_still_s > STILL_AFTER_S]
    of_results = [] if sources.results is None else sources.results.attention()
    attention = [*of_results, *attention_for(sources.dead_letters)]
    is_whole = any(worker.takes_tasks for worker in workers or ()) and not still and {database, broker, redis} == {"ok"}
    return _answer(
        CreditHealthResponse(
            status=status_of(is_whole, holding, attention),
            database=database,
            redis=redis,
            broker=broker,
            workers=[_worker_health(worker) for worker in workers or ()],
            held=None if holding is None else _held_health(holding),
            queues=None if progress is None else len(progress),
            standing_still=still,
            attention=attention,
            missing=[str(one) for one in missing],
        )
    )


def _sources() -> HealthSources:
    sources: HealthSources = current_app.extensions["health"]
    return sources


def _living(workers: Workers) -> Sequence[LivingWorker] | None:
    """Returns the living workers; None if Redis is away."""
    try:
        return workers.living()
    except RedisError:
        return None


def _worker_health(worker: LivingWorker) -> WorkerHealth:
    said = worker.heartbeat
    return WorkerHealth(
        name=said.name,
        host=said.host,
        pid=said.pid,
        processes=said.processes,
        age_s=round(said.age_s, 1),
        heard_s_ago=round(worker.heard_s_ago, 1),
        tasks_taken=said.tasks_taken,
        taken_s_ago=None if said.taken_s_ago is None else round(said.taken_s_ago, 1),
        takes_none_for_s=None if said.takes_none_for_s is None else round(said.takes_none_for_s, 1),
    )


def _held_health(holding: Holding) -> HeldOrdersHealth:
    return HeldOrdersHealth(
        orders=holding.orders,
        batches=holding.batches,
        for_s=round(holding.held_for_s, 1),
        cause=holding.cause,
    )


def _queue_health(progress: QueueProgress) -> QueueHealth:
    queue = progress.queue
    return QueueHealth(
        topic=queue.topic,
        broker=queue.broker_name,
        queue_id=queue.queue_id,
        unacknowledged=progress.unacknowledged,
        for_s=round(progress.stands_still_s, 1),
    )


def _answer(report: CreditHealthResponse) -> Response:
    return json_response(report, http_status(report))
