"""Revives popped messages after their invisible time (RocketMQ's PopReviveService), or moves them to the dead-letter topic."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.dead_letters import with_origin
from rocketmq_broker.message.record import decode_record, moved_message, queue_offset_of
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.server.popping.check_points import CheckPoints
from rocketmq_broker.server.popping.hidden_messages import Hidden
from rocketmq_broker.server.popping.pop_log import GroupQueue
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import MessageStore

_INT32_MAX: Final = (1 << 31) - 1
_RETRY_MAX_TIMES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviver:
    """Stores a message again, in the group's pop retry topic, or in its dead-letter topic after the last attempt.

    The copy is appended before the entry that settles the original. If a crash loses this entry, the message is delivered twice.
    In the reverse order a crash could lose the message.
    """

    store: MessageStore
    check_points: CheckPoints
    group_commit: GroupCommit
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    statistics: BrokerStatistics
    clock: Callable[[], int]

    def revive(self, queue: GroupQueue, offset: int, hidden: Hidden) -> int:
        """Stores a message for another delivery. Returns the copy's end in the commit log. Raises StoreUnwritable."""
        return self._move(queue, offset, hidden, is_given_up=False)

    def give_up(self, queue: GroupQueue, offset: int, hidden: Hidden) -> int:
        """Stores a message in the group's dead-letter topic. Returns the copy's end in the commit log. Raises StoreUnwritable."""
        return self._move(queue, offset, hidden, is_given_up=True)

    def read(self, queue: GroupQueue, offset: int) -> bytes | None:
        """Returns the message's record, or None if it is no longer in the store."""
        found = self.store.pull(queue.topic.encode(), queue.queue_id, offset, 1, 1).records
        return found[0] if found and queue_offset_of(found[0]) == offset else None

    def _move(self, queue: GroupQueue, offset: int, hidden: Hidden, *, is_given_up: bool) -> int:
        data = self.read(queue, offset)
        if data is not None:
            record = decode_record(data)
            attempts = record.reconsume_times + max(hidden.check_point.entry.attempt - 1, 0)
            settings = self.subscription_groups.groups.get(queue.group)
            max_attempts = settings.retry_max_times if settings is not None else _RETRY_MAX_TIMES
            encoded = with_origin(record)
            if props.find(encoded, props.FIRST_POP_TIME) is None:
                encoded = props.put_if_it_fits(encoded, props.FIRST_POP_TIME, str(hidden.check_point.entry.pop_time_ms))
            if is_given_up or attempts >= max_attempts:
                topic = self.topic_table.dead_letter_topic(queue.group).topic_name
            else:
                topic = self.topic_table.read_by_others(topics.pop_retry_topic(queue.group, queue.topic), 1).topic_name
                self.statistics.flows.sent_back(queue.topic.encode(), queue.group)
            message = moved_message(record, topic.encode(), 0, encoded, min(attempts + 1, _INT32_MAX))
            self.store.append(message, self.clock(), was_accepted=True, may_use_reserve=True)
        end_position = self.check_points.settle(queue, [offset])
        self.group_commit.appended()
        return end_position
