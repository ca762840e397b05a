"""The health of a service with an inbox, for orchestrators and operators: /readyz and /healthz."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol

from flask import Blueprint, Response, current_app
from pydantic import BaseModel, Field

from service_runtime.http.health import ReadyResponse, Status, Word, http_status, status_of
from service_runtime.http.readiness import FOR_S, Need, Needed, Readiness, not_ready, word_of
from service_runtime.http.requests import json_response
from service_runtime.inbox.backlog import InboxBacklog, InboxHealth
from service_runtime.messaging.positions import Positions

_COMMAND: Final = "python -m rocketmq_broker.admin dead-letters retry --group {group} --all"
health_api = Blueprint("health", __name__)

MEANWHILE: Final = "Until then messages wait at the broker or in the inbox, and none is lost."
_OF_DATABASE: Final = "a lock that is held, a full disk, a missing write privilege, or a standby that commits wait for"


class Consumer(Needed, Protocol):
    """The interface of the consumer: whether messages can arrive, and the dead letters of its group."""

    @property
    def group(self) -> str:
        """The name of the consumer group."""

    def count_dead_letters(self) -> int | None:
        """Returns the number of dead letters that have not been retried or dismissed; None if the brokers do not respond."""


def attention_for(consumer: Consumer) -> list[str]:
    """Returns a list with one line for operators. It is empty if there are no dead letters, or if their number is unknown."""
    count = consumer.count_dead_letters()
    if not count:
        return []
    command = _COMMAND.format(group=consumer.group)
    return [
        f"{count} messages of {consumer.group} are dead letters: fix what refused them, then run `{command} --dry-run` "
        "to list them, and without --dry-run to redeliver each once"
    ]


class HealthResponse(BaseModel):
    """The health of the service.

    degraded: something is unavailable, or messages wait in the inbox or the outbox for too long;
    attention: single messages fail, are parked or are dead letters, or the database was reset to an older state.
    """

    status: Status
    database: Word
    broker: Word
    inbox: InboxHealth | None
    """The messages that are acknowledged and not processed yet; null if the database does not answer."""
    attention: list[str] = Field(description="what needs a person's attention, with the command for it")
    missing: list[str]
    """A line for each reason why messages cannot be processed, with advice."""


@dataclass(frozen=True, kw_only=True)
class ServiceHealth:
    """Reports the unavailable dependencies of a service with an inbox, and the problems that need an operator."""

    service: str
    """The first word of the service's name, such as credit."""
    database: Needed
    consumer: Consumer
    backlog: InboxBacklog
    outbox: Need
    results: Positions[Any]
    """The positions stored with the results. They show whether the database was reset to an older state."""
    now_s: Callable[[], float]
    readiness_counts_s: float = FOR_S
    """The time in seconds for which a result of the readiness check is cached."""
    log: ClassVar[str] = "The log"
    """The log that contains the errors of single messages, as named in the advice."""

    @property
    def needs(self) -> list[Need]:
        """The dependencies that are required to process a message."""
        return [
            Need("database", self.database, f"Check the {self.service} database for {_OF_DATABASE}. {MEANWHILE}"),
            Need("broker", self.consumer, f"Run rocketmq-admin doctor to check name server and broker. {MEANWHILE}"),
            Need("orders", self.backlog, f"{self.log} says why. {MEANWHILE}"),
            self.outbox,
        ]

    @cached_property
    def readiness(self) -> Readiness:
        """The readiness check of all dependencies."""
        return Readiness(self.needs, steady_s=self.now_s, for_s=self.readiness_counts_s)

    def report(self) -> HealthResponse:
        """Returns the report."""
        missing = self.readiness.missing()
        database = word_of("database", missing)
        state = self.backlog.state() if database == "ok" else None
        attention = [*self.results.attention(), *self.backlog.attention(state), *attention_for(self.consumer)]
        return HealthResponse(
            status=status_of(not missing, attention),
            database=database,
            broker=word_of("broker", missing),
            inbox=self.backlog.health(state),
            attention=attention,
            missing=[str(one) for one in missing],
        )


@health_api.get("/readyz")
def get_readyz() -> Response:
    """Reports whether messages can be processed now: 200, or 503 with the missing dependencies and advice."""
    missing = _health().readiness.missing()
    return not_ready(missing) if missing else json_response(ReadyResponse())


@health_api.get("/healthz")
def get_healthz() -> Response:
    """Reports the state of the dependencies, the inbox and the dead letters: 200, or 503 if degraded."""
    report = _health().report()
    return json_response(report, http_status(report.status))


def _health() -> ServiceHealth:
    health: ServiceHealth = current_app.extensions["health"]
    return health
