"""Acknowledges popped messages, and changes their invisible time. Receipt handles identify the messages.

Implements RocketMQ's AckMessageProcessor and ChangeInvisibleTimeProcessor.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.popping.check_points import CheckPoints
from rocketmq_broker.server.popping.errors import HandleExpired, IllegalHandle
from rocketmq_broker.server.popping.hidden_messages import Hidden
from rocketmq_broker.server.popping.pop_log import GroupQueue, PopEntry
from rocketmq_broker.server.popping.receipt_handle import ReceiptHandle, refuse_invisible_time
from rocketmq_broker.server.popping.reviver import Reviver
from rocketmq_broker.server.topics.names import refuse_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """Acknowledges popped messages, changes their invisible time, or moves them to the dead-letter topic.

    Each method returns the commit log offset after the pop log entry that it appends. Each method raises IllegalHandle,
    HandleExpired, RequestRefused and StoreUnwritable.

    `alarm` is rung when an invisible time has changed.
    """

    check_points: CheckPoints
    reviver: Reviver
    group_commit: GroupCommit
    broker_name: str
    clock: Callable[[], int]
    alarm: Alarm

    def settle(self, group: str, topic: str, handle: ReceiptHandle) -> int | None:
        """Acknowledges a message. Returns None if it is already acknowledged."""
        queue, offset, hidden = self._find(group, topic, handle)
        if hidden is None:
            return None
        end_position = self.check_points.settle(queue, [offset])
        self.group_commit.appended()
        return end_position

    def renew(self, group: str, topic: str, handle: ReceiptHandle, invisible_ms: int) -> tuple[ReceiptHandle, int]:
        """Changes the end of a message's invisible time. Returns the new handle and the commit log offset after the entry."""
        refuse_invisible_time(invisible_ms, min_ms=0)
        queue, offset, hidden = self._find(group, topic, handle)
        if hidden is None:
            raise HandleExpired(f"message {handle.offset} of queue {handle.queue_id} is already acknowledged")
        now_ms, entry = self.clock(), hidden.check_point.entry
        if hidden.check_point.is_ordered:
            renewed = handle.renewed(entry.pop_time_ms, now_ms + invisible_ms - entry.pop_time_ms)
            start_offset = entry.start_offset
        else:
            # The pop time must differ even within one millisecond, because it distinguishes the new handle from the old one.
            renewed = handle.renewed(max(now_ms, entry.pop_time_ms + 1), invisible_ms)
            start_offset = entry.next_offset  # the group's offset does not change
        end_position = self.check_points.hide(
            PopEntry(*queue, start_offset, entry.next_offset, [offset], renewed.pop_time_ms, renewed.invisible_ms, entry.attempt),
            hidden.check_point.attempt_id,
        )
        self.group_commit.appended()
        self.alarm.ring()
        return renewed, end_position

    def give_up(self, group: str, topic: str, handle: ReceiptHandle) -> int | None:
        """Stores a message in the group's dead-letter topic, and settles it. Returns None if it is already acknowledged."""
        queue, offset, hidden = self._find(group, topic, handle)
        return None if hidden is None else self.reviver.give_up(queue, offset, hidden)

    def _find(self, group: str, topic: str, handle: ReceiptHandle) -> tuple[GroupQueue, int, Hidden | None]:
        """Returns the queue and the offset of the handle's message, and its hidden state.

        The hidden state is None if the message was acknowledged before its invisible time ended.
        """
        refuse_offsets(group, topic)
        if handle.broker_name != self.broker_name:
            raise IllegalHandle(f"the handle belongs to broker {handle.broker_name}, not to {self.broker_name}")
        queue = GroupQueue(group, handle.stored_in(group, topic).decode(), handle.queue_id)
        hidden = self.check_points.hidden.of(queue).get(handle.offset)
        message = f"message {handle.offset} of queue {handle.queue_id}"
        if hidden is None and not 0 <= handle.offset < self.check_points.popped_up_to(queue):
            raise HandleExpired(f"{message} of topic {queue.topic} was not popped by group {group}")
        if hidden is None and self.clock() >= handle.expires_ms:
            raise HandleExpired(f"the invisible time of {message} of topic {queue.topic} has ended")
        if hidden is not None and hidden.check_point.entry.pop_time_ms != handle.pop_time_ms:
            raise HandleExpired(f"the handle is out of date: {message} of topic {queue.topic} has a newer one")
        return queue, handle.offset, hidden
