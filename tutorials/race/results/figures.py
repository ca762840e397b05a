"""The results of one way under one fault: wrong orders, latency and extra writes."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one way under one fault. In the cell's time a database commit takes 2 ms, and the network no time."""

    way: str
    fault: str
    orders: int
    """Number of orders requested."""
    struck: int
    """How often the fault struck. For BROKER_DOWN, the number of orders while the broker was down."""
    stored: int
    missing: int
    phantom: int
    doubled: int
    """Number of orders that a consumer without a unique key would have credited twice. Not counted as wrong."""
    asked_while_down: int
    """Number of orders requested while the broker was down."""
    taken_while_down: int
    """Number of these orders that were stored."""
    p50_ms: float
    p99_ms: float
    extra_rows: float
    """Rows written to the order database per order, besides the order's row."""
    extra_records: float
    """Records that the broker stored per order, besides the consumed one."""

    @property
    def wrong(self) -> int:
        """Number of orders on which the two databases disagree."""
        return self.missing + self.phantom


def percentile(ascending: Sequence[float], share: float) -> float:
    """Returns the percentile `share` (0 to 1) of the sorted values; 0 if there are none."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]
