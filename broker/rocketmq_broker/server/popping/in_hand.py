"""Reports the messages that a group has popped and not yet acknowledged (RocketMQ's PopInflightMessageCounter)."""

import heapq
from collections import Counter
from itertools import islice
from typing import Final

from rocketmq_broker.message import topics
from rocketmq_broker.protocol.bodies.group import PopProgress
from rocketmq_broker.server.popping.hidden_messages import HiddenMessages
from rocketmq_broker.server.popping.pop_log import GroupQueue
from rocketmq_broker.server.popping.popped import attempt_of
from rocketmq_broker.store import ConsumerOffsets, MessageStore

_REFUSALS_SHOWN: Final = 5
_INSPECTED: Final = 16
"""The maximum number of unacknowledged messages of a queue for which the delivery attempts are determined."""


class InHand:
    """Reports unacknowledged popped messages to operators. A report about one queue takes up to a millisecond."""

    def __init__(self, hidden: HiddenMessages, offsets: ConsumerOffsets, store: MessageStore) -> None:
        self._hidden = hidden
        self._offsets = offsets
        self._store = store

    def count(self, group: str, topic: str, queue_id: int) -> int:
        """Returns the number of the queue's messages that the group has popped but not acknowledged."""
        return len(self._hidden.of(GroupQueue(group, topic, queue_id)))

    def counts(self) -> dict[tuple[str, str], int]:
        """Returns the number of unacknowledged messages, keyed by group and topic.

        Redelivered messages count for the retry topic.
        """
        found: Counter[tuple[str, str]] = Counter()
        for queue, messages in self._hidden.counts():
            found[queue.group, queue.topic] += messages
        return found

    def refusals(self) -> list[str]:
        """Returns the reasons why pops are refused now, at most five."""
        return list(islice(self._hidden.refusals(), _REFUSALS_SHOWN))

    def progress(self, group: str, topic: str, queue_id: int) -> PopProgress | None:
        """Returns the progress of the queue's unacknowledged messages.

        Returns None if there are no unacknowledged messages and no messages that wait for redelivery.
        """
        queue = GroupQueue(group, topic, queue_id)
        hidden = self._hidden.of(queue)
        is_pop_retry = topic.startswith(topics.RETRY_PREFIX) and topic != topics.retry_topic(group)
        waiting = self._attempt(queue, self._offsets.get(*queue) or 0) if is_pop_retry else None
        if not hidden:
            return None if waiting is None else PopProgress(attempts=waiting)
        first = heapq.nsmallest(_INSPECTED, hidden)
        attempts = [hidden[offset].check_point.entry.attempt or 1 for offset in first]
        if topic.startswith(topics.RETRY_PREFIX):
            attempts += [self._attempt(queue, offset) or 1 for offset in first]
        return PopProgress(
            oldest_store_time=max(self._store.store_time(topic.encode(), queue_id, first[0]), 0) or None,
            next_visible_time=min(message.visible_ms for message in hidden.values()),
            attempts=max(*attempts, waiting or 1),
        )

    def _attempt(self, queue: GroupQueue, offset: int) -> int | None:
        """Returns the attempt number of the message's next or current delivery, or None if there is no message."""
        found = self._store.pull(queue.topic.encode(), queue.queue_id, offset, 1, 1).records
        return attempt_of(found[0]) if found else None
