"""One measurement of one way to report orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Way(StrEnum):
    """The way by which the credit service learns of an order."""

    TRANSACTIONAL = "transactional message"
    OUTBOX_POLLED = "outbox, polled each second"
    OUTBOX_NOTIFIED = "outbox, relay notified"


@dataclass(frozen=True, slots=True)
class Case:
    """A measured combination of way, broker and database."""

    way: Way
    broker: str
    """`ours` or `Apache`."""
    database: str
    """`SQLite` or `PostgreSQL`."""

    @property
    def name(self) -> str:
        """The name for people."""
        return f"{self.way}, {self.broker}, {self.database}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The results of a measurement; times in milliseconds."""

    orders_per_s: float
    """With requests in flight all the time."""
    post_ms: Sequence[float]
    """p50 and p99 from the request to its answer, at the fixed rate."""
    credit_ms: Sequence[float]
    """p50 and p99 from the request to the credit row, at the fixed rate."""
    cpu_ms: Mapping[str, float]
    """CPU time for one order, by process, with requests in flight all the time."""
    refused: int
    missing: int
    """Orders without a credit when the wait for it was over."""


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the smallest value that at least so many percent do not exceed; 0 without values."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
