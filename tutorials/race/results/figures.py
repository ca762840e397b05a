"""The results of one approach under one fault: wrong orders, latency and additional writes."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The results of one approach under one fault. A database commit takes 2 ms, and the network has no delay."""

    way: str
    fault: str
    orders: int
    """The number of orders requested."""
    struck: int
    """The number of times that the fault occurred. For BROKER_DOWN, the number of orders requested while the broker was down."""
    stored: int
    missing: int
    phantom: int
    doubled: int
    """The number of orders that a consumer without a unique key would have credited more than once. They are not wrong orders."""
    asked_while_down: int
    """The number of orders requested while the broker was down."""
    taken_while_down: int
    """The number of orders that were requested while the broker was down and were stored."""
    p50_ms: float
    p99_ms: float
    extra_rows: float
    """The number of rows written to the order database per order, not counting the row of the order."""
    extra_records: float
    """The number of records that the broker stored per order, not counting the consumed message."""

    @property
    def wrong(self) -> int:
        """The number of orders without a credit plus the number of credits without an order."""
        return self.missing + self.phantom


def percentile(ascending: Sequence[float], share: float) -> float:
    """Returns the percentile `share` (0 to 1) of the sorted values, or 0 if there are no values."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]
