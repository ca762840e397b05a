"""The cases that are measured, and the results of the measurements."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Delivery(StrEnum):
    """The mechanisms that deliver orders to the credit service."""

    TRANSACTIONAL = "transactional message"
    OUTBOX_POLLED = "outbox, polled each second"
    OUTBOX_NOTIFIED = "outbox, relay notified"


@dataclass(frozen=True, slots=True)
class Case:
    """A measured combination of delivery, broker and database."""

    delivery: Delivery
    broker: str
    """The name of the broker, `ours` or `Apache`."""
    database: str
    """The name of the database, `SQLite` or `PostgreSQL`."""

    @property
    def name(self) -> str:
        """The name of the case in tables."""
        return f"{self.delivery}, {self.broker}, {self.database}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The results of a measurement. Times are in milliseconds."""

    orders_per_s: float
    """The orders per second with a constant number of requests in flight."""
    post_ms: Sequence[float]
    """The 50th and 99th percentiles of the time from the request to its answer, at the fixed rate."""
    credit_ms: Sequence[float]
    """The 50th and 99th percentiles of the time from the request to the credit row, at the fixed rate."""
    cpu_ms: Mapping[str, float]
    """The CPU time per order of each process, with a constant number of requests in flight."""
    refused: int
    missing: int
    """The number of orders that had no credit at the time limit."""


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the percentile of the values by the nearest-rank method. Returns 0 if there are no values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
