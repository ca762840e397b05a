"""The answer to a pop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.message.record import queue_offset_of, read_fields
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle

_RECONSUME_TIMES: Final = 12
"""The position of RECONSUMETIMES in a record's head."""


def attempt_of(record: bytes) -> int:
    """Returns which delivery the record is for, 1 for the first one; orderly pops count theirs elsewhere."""
    return read_fields(record)[0][_RECONSUME_TIMES] + 1


@dataclass(frozen=True, slots=True)
class PoppedMessage:
    """A message, hidden from all others of its group until its invisible time ends."""

    record: bytes
    """The whole record: `rocketmq_broker.message.record` reads it. A retried message's own topic is another."""
    topic: str
    """The topic that was asked for."""
    handle: str
    """The receipt handle, for `ack` and `change_invisible_time`."""
    attempt: int
    """1 for the first delivery."""
    pop_time_ms: int
    invisible_ms: int


@dataclass(frozen=True, slots=True)
class PoppedQueue:
    """The messages of one queue."""

    topic: str
    queue_id: int
    is_retry: bool
    start_offset: int
    records: list[bytes]
    attempt: int
    """0 unless the pop is orderly."""

    @property
    def offsets(self) -> list[int]:
        """Returns the messages' offsets."""
        return [queue_offset_of(record) for record in self.records]


@dataclass(slots=True)
class Popped:
    """The messages of one pop. They may be given away once everything before `end_position` in the commit log is durable."""

    pop_time_ms: int
    invisible_ms: int
    queues: list[PoppedQueue] = field(default_factory=list)
    end_position: int = 0
    rest: int = 0
    """About how many more messages there are."""
    room: int = 0
    """How many more messages are wanted."""
    bytes_left: int = 0
    """How many more bytes the answer may have; one message may be larger."""
    filtering_ns: int = 0
    """The estimated time of expressions so far, in nanoseconds."""
    is_told: bool = False
    """Whether a pop that only asks found messages."""
    is_unfinished: bool = False
    """Whether messages were passed over because of a filter, and others behind them are not looked at yet."""

    refusal: str | None = None
    """Why the group gets no other message of a queue that has some."""

    @property
    def is_answer(self) -> bool:
        """Returns whether the pop need not wait."""
        return bool(self.queues) or self.is_told

    def messages(self, topic: str, broker_name: str) -> list[PoppedMessage]:
        """Returns the messages, each with its receipt handle."""
        return [
            PoppedMessage(record, topic, str(handle), attempt, self.pop_time_ms, self.invisible_ms)
            for queue in self.queues
            for record, handle, attempt in self._handles(queue, broker_name)
        ]

    def _handles(self, queue: PoppedQueue, broker_name: str) -> list[tuple[bytes, ReceiptHandle, int]]:
        found = []
        for record, offset in zip(queue.records, queue.offsets, strict=True):
            handle = ReceiptHandle(
                queue.start_offset, self.pop_time_ms, self.invisible_ms, queue.attempt > 0, queue.is_retry, broker_name,
                queue.queue_id, offset,
            )  # fmt: skip
            attempt = queue.attempt or attempt_of(record)
            found.append((record, handle, attempt))
        return found
