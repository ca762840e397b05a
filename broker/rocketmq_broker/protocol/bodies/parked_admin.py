"""Response bodies about parked messages, for this project's own operator requests (AdminRequestCode)."""

from rocketmq_broker.protocol.body import Body, BodyPart


class ParkedCounts(Body):
    """The response body of COUNT_PARKED_MESSAGES, with the numbers of messages that no operator has handled."""

    dead_letters: dict[str, int] = {}
    """The number of dead letters, keyed by consumer group."""
    discarded: dict[str, int] = {}
    """The number of discarded messages, keyed by producer group."""


class MarkInfo(BodyPart):
    """An operator's action on one parked message."""

    queue_offset: int
    treatment: str
    """The action: `retried`, `dismissed` or `resumed`."""
    at_ms: int
    by: str
    """The address from which the request came."""
    reason: str = ""
    retries: int = 0
    """The number of retries of the message when the action was taken."""


class MarkList(Body):
    """The response body of LIST_MARKS, RETRY_DEAD_LETTER and DISMISS_DEAD_LETTER."""

    marks: list[MarkInfo] = []
