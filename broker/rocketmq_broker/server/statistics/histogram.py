"""A histogram of plain integers. It is cheap to update on the event loop, and any thread can read it."""

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts values by upper bounds. The last bucket has no bound. One thread may observe values, and any thread may read."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """Creates empty buckets. `bounds` must ascend. Each bucket includes its bound."""
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        """The sum of all values."""

    def observe(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, int]]:
        """Returns the number of values less than or equal to each bound, with `+Inf` as the last bound."""
        counts = list(self.counts)
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return [(name, sum(counts[: index + 1])) for index, name in enumerate(names)]
