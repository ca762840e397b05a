"""Represents the result of a pop."""

from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.message.record import queue_offset_of, read_fields
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle

_RECONSUME_TIMES: Final = 12
"""The index of RECONSUMETIMES in the unpacked header of a record."""


def attempt_of(record: bytes) -> int:
    """Returns the number of the delivery attempt, which is 1 for the first delivery. Attempts of orderly pops are not counted."""
    return read_fields(record)[0][_RECONSUME_TIMES] + 1


@dataclass(frozen=True, slots=True)
class PoppedMessage:
    """A popped message, which is hidden from other consumers of the group until its invisible time ends."""

    record: bytes
    """The stored record, to be decoded with `rocketmq_broker.message.record`.

    Its topic is a retry topic for a retried message.
    """
    topic: str
    """The topic of the pop request."""
    handle: str
    """The receipt handle for `ack` and `change_invisible_time`."""
    attempt: int
    """The number of the delivery attempt, 1 for the first."""
    pop_time_ms: int
    invisible_ms: int


@dataclass(frozen=True, slots=True)
class PoppedQueue:
    """The popped messages of one queue."""

    topic: str
    queue_id: int
    is_retry: bool
    start_offset: int
    records: list[bytes]
    attempt: int
    """The number of the delivery attempt of an orderly pop, else 0."""

    @property
    def offsets(self) -> list[int]:
        """Returns the messages' queue offsets."""
        return [queue_offset_of(record) for record in self.records]


@dataclass(slots=True)
class Popped:
    """The messages of one pop. The response may be sent once all records before `end_position` in the commit log are durable."""

    pop_time_ms: int
    invisible_ms: int
    queues: list[PoppedQueue] = field(default_factory=list)
    end_position: int = 0
    rest: int = 0
    """The approximate number of messages that are left in the queues."""
    room: int = 0
    """The number of messages that may still be added to this result."""
    bytes_left: int = 0
    """The number of bytes that may still be added to this result. A single message may exceed it."""
    filtering_ns: int = 0
    """The estimated time spent on filter expressions, in nanoseconds."""
    has_messages: bool = False
    """True if the queues have messages. Only set if the request is a notification."""
    is_unfinished: bool = False
    """True if a filter skipped messages, and the messages after them have not been read yet."""

    refusal: str | None = None
    """The reason why a queue with messages returned none to the group."""

    @property
    def is_answer(self) -> bool:
        """Returns True if the response can be sent without waiting for messages."""
        return bool(self.queues) or self.has_messages

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
