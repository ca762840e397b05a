"""The figures of a cell."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One way under one fault. Times are the cell's, in which a database commit takes 2 ms and the network nothing."""

    way: str
    fault: str
    orders: int
    """Orders that customers asked for."""
    struck: int
    """The number of the fault's strikes; for a broker that is down, the number of orders meanwhile."""
    stored: int
    missing: int
    phantom: int
    doubled: int
    """Orders that a consumer without a unique key would have credited twice. It counts against no way."""
    asked_while_down: int
    """Orders asked for while the broker was down."""
    taken_while_down: int
    """Those of them that were stored."""
    p50_ms: float
    p99_ms: float
    extra_rows: float
    """Rows written to the order database for each order, beside the order's own."""
    extra_records: float
    """Records that the broker stored for each order, beside the one that is consumed."""

    @property
    def wrong(self) -> int:
        """The number of orders whose two databases disagree."""
        return self.missing + self.phantom


def percentile(ascending: Sequence[float], share: float) -> float:
    """Returns the value below which that share of the values lies; 0 without values."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]
