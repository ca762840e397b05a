"""Counts incoming and outgoing messages and bytes of each topic, for metrics (RocketMQ 5's BrokerMetricsManager)."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class Traffic:
    """A counter of messages and bytes. It never decreases."""

    messages: int = 0
    size: int = 0
    """The size of the records in the commit log, in bytes."""


@dataclass(slots=True)
class TrafficCounts:
    """Messages sent by producers, for each message type, and messages pulled by consumer groups."""

    normal: dict[bytes, Traffic] = field(default_factory=dict)
    delayed: dict[bytes, Traffic] = field(default_factory=dict)
    transactional: dict[bytes, Traffic] = field(default_factory=dict)
    """Half messages, keyed by the topic in which their messages become visible after a commit."""
    pulled: dict[tuple[bytes, str], Traffic] = field(default_factory=dict)
    """Pulled messages, keyed by topic and consumer group."""
    pops_refused: dict[tuple[bytes, str], int] = field(default_factory=dict)
    """The number of pops refused because a group had too many unacknowledged messages, keyed by topic and consumer group."""


def count(counts: dict[Key, Traffic], key: Key, messages: int, size: int) -> None:
    """Adds messages and bytes to a counter."""
    traffic = counts.get(key)
    if traffic is None:
        traffic = counts[key] = Traffic()
    traffic.messages += messages
    traffic.size += size
