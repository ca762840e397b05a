"""Encodes and decodes receipt handles, with which consumers acknowledge popped messages (RocketMQ's ExtraInfoUtil).

    startOffset popTime invisibleTime reviveQid retry brokerName queueId offset

`retry` is 0 for a message of the topic, and 1 for a message of the group's pop retry topic. `reviveQid` is 999 for an orderly
pop. Times are in milliseconds; popTime is since the epoch.
"""

from dataclasses import dataclass, replace
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.protocol.codes import PopResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.popping.errors import IllegalHandle

ORDERED: Final = 999
"""The revive queue id of orderly pops (KeyBuilder.POP_ORDER_REVIVE_QUEUE)."""
MAX_LENGTH: Final = 1024
"""The maximum length of a handle in characters. Even a handle with the longest broker name is much shorter."""
MAX_INVISIBLE_MS: Final = 12 * 3600 * 1000
"""The maximum invisible time, in milliseconds: twelve hours, as in RocketMQ's proxy. Messages are kept much longer."""

_NORMAL, _RETRY = "0", "1"


@dataclass(frozen=True, slots=True)
class ReceiptHandle:
    """Identifies one delivery of one message."""

    start_offset: int
    pop_time_ms: int
    invisible_ms: int
    is_ordered: bool
    is_retry: bool
    broker_name: str
    queue_id: int
    offset: int

    def __str__(self) -> str:
        """Encodes the handle (the property POP_CK)."""
        revive_queue, retry = ORDERED if self.is_ordered else 0, retry_mark(is_retry=self.is_retry)
        return (
            f"{self.start_offset} {self.pop_time_ms} {self.invisible_ms} {revive_queue} {retry} {self.broker_name} "
            f"{self.queue_id} {self.offset}"
        )

    @classmethod
    def parse(cls, text: str, offset: int | None = None) -> "ReceiptHandle":
        """Parses a handle. `offset` is used if the handle does not contain the queue offset. Raises IllegalHandle."""
        parts = text.split(" ") if len(text) <= MAX_LENGTH else []
        try:
            start, pop_time, invisible, revive_queue = map(int, parts[:4])
            retry, broker_name, queue_id = parts[4:7]
            found = int(parts[7]) if len(parts) == 8 else offset
            if found is None or len(parts) > 8 or retry not in (_NORMAL, _RETRY):
                raise ValueError
            is_ordered, is_retry = revive_queue == ORDERED, retry == _RETRY
            return cls(start, pop_time, invisible, is_ordered, is_retry, broker_name, int(queue_id), found)
        except ValueError:
            raise IllegalHandle(f"not a receipt handle of a popped message: {text[:100]!r}") from None

    @property
    def expires_ms(self) -> int:
        """Returns the end of the invisible time, in milliseconds since the epoch."""
        return self.pop_time_ms + self.invisible_ms

    def stored_in(self, group: str, topic: str) -> bytes:
        """Returns the topic whose queue contains the message: the topic itself, or the group's pop retry topic."""
        return (topics.pop_retry_topic(group, topic) if self.is_retry else topic).encode()

    def renewed(self, pop_time_ms: int, invisible_ms: int) -> "ReceiptHandle":
        """Returns the new handle after a change of the invisible time."""
        return replace(self, pop_time_ms=pop_time_ms, invisible_ms=invisible_ms)


def refuse_invisible_time(invisible_ms: int, *, min_ms: int) -> None:
    """Raises RequestRefused if the invisible time is not between `min_ms` and MAX_INVISIBLE_MS."""
    if not min_ms <= invisible_ms <= MAX_INVISIBLE_MS:
        remark = f"the invisible time must be between {min_ms} and {MAX_INVISIBLE_MS} ms, not {invisible_ms}"
        raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)


def retry_mark(*, is_retry: bool) -> str:
    """Returns the text that distinguishes retried messages from others in handles and in responses to pops."""
    return _RETRY if is_retry else _NORMAL
