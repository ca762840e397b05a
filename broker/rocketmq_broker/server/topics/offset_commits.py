"""Commits consumer offsets. A new offset requires that the queue exists, and that the group exists or may be created."""

from dataclasses import dataclass
from typing import Final

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.shares import is_full
from rocketmq_broker.server.topics.names import refuse_offsets
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets

MAX_OFFSETS: Final = 200_000
"""The maximum number of offsets, one for each group and queue: enough for 1000 groups with 200 queues each.

The broker reads all offsets when it starts.
"""
MAX_OFFSETS_OF_A_GROUP: Final = 50_000


@dataclass(frozen=True, slots=True)
class OffsetCommits:
    """Commits offsets. The limits on the number of offsets do not apply to changes of existing offsets."""

    offsets: ConsumerOffsets
    topic_table: TopicTable
    subscription_groups: SubscriptionGroupTable
    max_offsets: int = MAX_OFFSETS

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Sets the group's offset in the queue.

        Raises RequestRefused if the topic or queue does not exist, if the group does not exist and cannot be created, or
        if the maximum number of offsets is reached.

        Like RocketMQ's brokers, this method does not create the settings of a group. The group's first heartbeat creates
        them.
        """
        refuse_offsets(group, topic)
        if self.offsets.get(group, topic, queue_id) is None:
            self._refuse_unless_existing(group, topic, queue_id)
            self.refuse_if_full(group, 1)
        self.offsets.commit(group, topic, queue_id, offset)

    def advance(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commits the offset unless the current offset is higher. Raises RequestRefused like `commit`."""
        known = self.offsets.get(group, topic, queue_id)
        if known is None or offset > known:
            self.commit(group, topic, queue_id, offset)

    def refuse_if_full(self, group: str, new: int) -> None:
        """Raises RequestRefused if `new` more offsets of the group would exceed a limit."""
        of_group = self.offsets.count_of(group)
        if new > 0 and of_group + new > MAX_OFFSETS_OF_A_GROUP:
            remark = f"too many offsets of group {group}: {of_group}, limit {MAX_OFFSETS_OF_A_GROUP}"
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)
        if new > 0 and is_full(self.offsets.count + new - 1, self.max_offsets, of_group + new - 1):
            remark = (
                f"too many consumer offsets: {self.offsets.count}, limit {self.max_offsets}; "
                "delete unused groups with their offsets (deleteSubGroup -r true)"
            )
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)

    def _refuse_unless_existing(self, group: str, topic: str, queue_id: int) -> None:
        config = self.topic_table.existing(topic)
        queues = max(config.read_queue_nums, config.write_queue_nums)
        if not 0 <= queue_id < queues:
            remark = f"topic[{topic}] has no queue {queue_id}, only {queues} queues"
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)
        if not self.offsets.has_offsets(group):
            self.subscription_groups.refuse_unless_possible(group, self.offsets.group_count)
