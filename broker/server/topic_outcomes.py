"""How a topic's transactions ended: plain counters for metrics (RocketMQ 5's transaction metrics)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from broker.server.histogram import Histogram

FINISH_LATENCY_S: Final = (5, 60, 600, 3600, 43_200, 86_400)
"""RocketMQ's own bounds: 5 s, a minute, 10 minutes, an hour, 12 hours, a day."""


@dataclass(slots=True)
class TopicOutcomes:
    """Counters; they only grow."""

    commits: int = 0
    rollbacks: int = 0
    finish_latency_s: Histogram = field(default_factory=lambda: Histogram(FINISH_LATENCY_S))
    """From half message to commit."""
