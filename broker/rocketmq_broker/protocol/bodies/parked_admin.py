"""Parked messages for operators: the answers to requests that are not RocketMQ's (AdminRequestCode)."""

from __future__ import annotations

from rocketmq_broker.protocol.body import Body, BodyPart


class ParkedCounts(Body):
    """The answer to COUNT_PARKED_MESSAGES: the number of untreated ones."""

    dead_letters: dict[str, int] = {}
    """Dead letters by consumer group."""
    discarded: dict[str, int] = {}
    """Discarded messages by producer group."""


class MarkInfo(BodyPart):
    """A treatment of one message."""

    queue_offset: int
    treatment: str
    """`retried`, `dismissed` or `resumed`."""
    at_ms: int
    by: str
    """The address from which the request came."""
    reason: str = ""
    retries: int = 0
    """The number of retries of the message at that time."""


class MarkList(Body):
    """The answer to LIST_MARKS, RETRY_DEAD_LETTER and DISMISS_DEAD_LETTER."""

    marks: list[MarkInfo] = []
