"""Counts the outcomes of a topic's transactions, for metrics (RocketMQ 5's transaction metrics)."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.server.statistics.histogram import Histogram

FINISH_LATENCY_S: Final = (5, 60, 600, 3600, 43_200, 86_400)
"""The upper bounds of the histogram of commit latencies, in seconds. RocketMQ uses the same bounds, from 5 s to 1 day."""

_BOUNDS_MS: Final = tuple(bound * 1000 for bound in FINISH_LATENCY_S)
_PROMPT_MS: Final = _BOUNDS_MS[0]


@dataclass(slots=True)
class TopicOutcomes:
    """Monotonic counters of the outcomes of one topic's transactions. Each transaction increments one counter."""

    rollbacks: int = 0
    prompt_commits: int = 0
    """The number of commits within the first bound. Nearly all commits are within this bound."""
    late_commits: list[int] = field(default_factory=lambda: [0] * len(_BOUNDS_MS))
    """The number of later commits for each bound above the first one. The last counter is for commits above all bounds."""
    latency_ms: int = 0
    """The sum of the times from half message to commit, in milliseconds."""

    @property
    def commits(self) -> int:
        """The number of all commits, prompt and late."""
        return self.prompt_commits + sum(self.late_commits)

    def committed(self, latency_ms: int) -> None:
        """Counts a commit.

        `latency_ms` is the time since the transaction's half message. It is negative if the system time was set back.
        """
        if latency_ms <= _PROMPT_MS:
            self.prompt_commits += 1
            if latency_ms < 0:
                return
        else:
            self.late_commits[bisect_left(_BOUNDS_MS, latency_ms) - 1] += 1
        self.latency_ms += latency_ms

    def finish_latency_s(self) -> Histogram:
        """Returns a histogram of the seconds from half message to commit."""
        histogram = Histogram(FINISH_LATENCY_S)
        histogram.counts = [self.prompt_commits, *self.late_commits]
        histogram.total = self.latency_ms / 1000
        return histogram
