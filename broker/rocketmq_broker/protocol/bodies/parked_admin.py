"""Parked messages as operators see them: the answers to the requests of our own (AdminRequestCode)."""

from __future__ import annotations

from rocketmq_broker.protocol.body import Body, BodyPart


class ParkedCounts(Body):
    """The answer to COUNT_PARKED_MESSAGES: those that nobody has treated yet."""

    dead_letters: dict[str, int] = {}
    """By consumer group."""
    discarded: dict[str, int] = {}
    """By producer group."""


class MarkInfo(BodyPart):
    """What somebody did about one message."""

    queue_offset: int
    treatment: str
    """`retried`, `dismissed` or `resumed`."""
    at_ms: int
    by: str
    """The address that the request came from."""
    reason: str = ""
    retries: int = 0
    """How often the message had been retried by then."""


class MarkList(Body):
    """The answer to LIST_MARKS, RETRY_DEAD_LETTER and DISMISS_DEAD_LETTER."""

    marks: list[MarkInfo] = []
