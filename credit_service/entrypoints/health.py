"""The health of the credit service, including its workers and stalled queues."""

from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

from pydantic import BaseModel
from redis import RedisError

from credit_service.adapters.workers import LivingWorker, Workers
from rocketmq_broker.client import QueueProgress
from service_runtime.http.health import Word, word
from service_runtime.http.readiness import Need
from service_runtime.inbox.health import MEANWHILE, Consumer, HealthResponse, ServiceHealth

STILL_AFTER_S: Final = 120.0
"""The time in seconds without progress after which a queue counts as stalled."""


class QueueHealth(BaseModel):
    """A queue without progress: no pull succeeds, or a batch does not end."""

    topic: str
    broker: str
    queue_id: int
    unacknowledged: int
    for_s: float


class CreditHealthResponse(HealthResponse):
    """The health of the service.

    degraded: something is unavailable, no worker takes tasks, orders wait in the inbox for too long, or a queue is
    stalled;
    attention: some orders fail, messages are parked or became dead letters, or the database was reset to an older state.
    """

    redis: Word
    workers: list[LivingWorker]
    queues: int | None
    """The number of queues of orders that this service consumes; null if the consumer does not answer."""
    standing_still: list[QueueHealth]


class ConsumerWithQueues(Consumer, Protocol):
    """The interface of a consumer that also reports the progress of its queues."""

    def progress(self) -> list[QueueProgress] | None:
        """Returns the progress of each queue; None if it is unknown."""


@dataclass(frozen=True, kw_only=True)
class CreditHealth(ServiceHealth):
    """Reports the health of the credit service."""

    consumer: ConsumerWithQueues
    workers: Workers
    log: ClassVar[str] = "The workers' log"

    @property
    def needs(self) -> list[Need]:
        """Everything that is required to credit an order."""
        return [*super().needs, Need("workers", self.workers, f"Start Redis, or a credit_service.worker. {MEANWHILE}")]

    def report(self) -> CreditHealthResponse:
        """Returns the report. Its status is also `degraded` if a queue is stalled."""
        common = dict(super().report())
        try:
            workers = self.workers.living()
        except RedisError:
            workers = None
        progress = self.consumer.progress()
        still = [_queue_health(one) for one in progress or () if one.stands_still_s > STILL_AFTER_S]
        return CreditHealthResponse(
            **common | ({"status": "degraded"} if still else {}),
            redis=word(workers is not None),
            workers=workers or [],
            queues=None if progress is None else len(progress),
            standing_still=still,
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
