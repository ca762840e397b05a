"""Receipt handles: the texts by which a consumer acknowledges a popped message (RocketMQ's ExtraInfoUtil).

    startOffset popTime invisibleTime reviveQid retry brokerName queueId offset

`retry` is 0 for a message of the topic itself, 1 for one of the group's pop retry topic. `reviveQid` is 999 for an orderly pop.
Times are milliseconds, popTime since the epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.protocol.codes import PopResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.popping.errors import IllegalHandle

ORDERED: Final = 999
"""The revive queue of orderly pops (KeyBuilder.POP_ORDER_REVIVE_QUEUE)."""
LONGEST: Final = 1024
"""Characters. The longest broker name leaves a handle far below it."""
MAX_INVISIBLE_MS: Final = 12 * 3600 * 1000
"""Twelve hours, as RocketMQ's proxy allows at most: far less than messages are kept."""

_NORMAL, _RETRY = "0", "1"


@dataclass(frozen=True, slots=True)
class ReceiptHandle:
    """One delivery of one message."""

    start_offset: int
    pop_time_ms: int
    invisible_ms: int
    is_ordered: bool
    is_retry: bool
    broker_name: str
    queue_id: int
    offset: int

    def __str__(self) -> str:
        """Returns the text for the consumer (the property POP_CK)."""
        revive_queue, retry = ORDERED if self.is_ordered else 0, retry_mark(is_retry=self.is_retry)
        return (
            f"{self.start_offset} {self.pop_time_ms} {self.invisible_ms} {revive_queue} {retry} {self.broker_name} "
            f"{self.queue_id} {self.offset}"
        )

    @classmethod
    def parse(cls, text: str, offset: int | None = None) -> ReceiptHandle:
        """Reads a handle. `offset` stands for the last number where a request holds it apart. Raises IllegalHandle."""
        parts = text.split(" ") if len(text) <= LONGEST else []
        try:
            start, pop_time, invisible, revive_queue = map(int, parts[:4])
            retry, broker_name, queue_id = parts[4:7]
            found = int(parts[7]) if len(parts) == 8 else offset
            if found is None or len(parts) > 8 or retry not in (_NORMAL, _RETRY):
                raise ValueError
            is_ordered, is_retry = revive_queue == ORDERED, retry == _RETRY
            return cls(start, pop_time, invisible, is_ordered, is_retry, broker_name, int(queue_id), found)
        except ValueError:
            raise IllegalHandle(f"{text[:100]!r} is no receipt handle of a popped message") from None

    @property
    def expires_ms(self) -> int:
        """Returns when the invisible time ends, in milliseconds since the epoch."""
        return self.pop_time_ms + self.invisible_ms

    def stored_in(self, group: str, topic: str) -> bytes:
        """Returns the topic whose queue holds the message: the topic itself, or the group's pop retry topic."""
        return (topics.pop_retry_topic(group, topic) if self.is_retry else topic).encode()

    def renewed(self, pop_time_ms: int, invisible_ms: int) -> ReceiptHandle:
        """Returns the handle after a change of the invisible time."""
        return replace(self, pop_time_ms=pop_time_ms, invisible_ms=invisible_ms)


def refuse_invisible_time(invisible_ms: int, *, least_ms: int) -> None:
    """Raises RequestRefused for an invisible time that no pop or change may ask for."""
    if not least_ms <= invisible_ms <= MAX_INVISIBLE_MS:
        remark = f"an invisible time of {invisible_ms} ms; {least_ms} to {MAX_INVISIBLE_MS} are possible"
        raise RequestRefused(PopResponseCode.INVALID_PARAMETER, remark)


def retry_mark(*, is_retry: bool) -> str:
    """Returns the mark of a retried message in handles and in answers to pops."""
    return _RETRY if is_retry else _NORMAL
