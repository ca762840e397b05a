"""Commits the offsets of groups. Adds an entry to the table only for a group and queue that exist or may exist."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.shares import is_full
from rocketmq_broker.server.topics.names import refuse_offsets
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.store import ConsumerOffsets

MAX_OFFSETS: Final = 200_000
"""Queues times groups: a thousand groups that consume two hundred queues each. A restart reads them all."""
MAX_OFFSETS_OF_A_GROUP: Final = 50_000


class OffsetCommits:
    """Takes offsets from clients. Always accepts changes of existing entries: no bound costs a group its offset."""

    def __init__(
        self,
        offsets: ConsumerOffsets,
        topic_table: TopicTable,
        subscription_groups: SubscriptionGroupTable,
        most_offsets: int = MAX_OFFSETS,
    ) -> None:
        self._offsets = offsets
        self._topics = topic_table
        self._groups = subscription_groups
        self._most_offsets = most_offsets

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Sets the group's offset in the queue.

        Raises RequestRefused if the topic or queue does not exist, or the group cannot exist.

        Like RocketMQ's brokers it creates no group: a group's settings begin with its first heartbeat.
        """
        refuse_offsets(group, topic)
        if self._offsets.get(group, topic, queue_id) is None:
            self._refuse_unless_there_is(group, topic, queue_id)
            self.refuse_if_full(group, 1)
        self._offsets.commit(group, topic, queue_id, offset)

    def advance(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commits the offset unless the group's is higher. Raises RequestRefused like `commit`."""
        known = self._offsets.get(group, topic, queue_id)
        if known is None or offset > known:
            self.commit(group, topic, queue_id, offset)

    def refuse_if_full(self, group: str, new: int) -> None:
        """Raises RequestRefused if `new` more offsets of the group are too many."""
        of_group = self._offsets.count_of(group)
        if new > 0 and of_group + new > MAX_OFFSETS_OF_A_GROUP:
            remark = f"the group {group} has {of_group} offsets, and {MAX_OFFSETS_OF_A_GROUP} are the most of one group"
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)
        if new > 0 and is_full(self._offsets.count + new - 1, self._most_offsets, of_group + new - 1):
            remark = (
                f"the broker keeps {self._offsets.count} offsets of consumer groups, and {self._most_offsets} are the most: "
                "delete groups that nobody needs, with their offsets (deleteSubGroup -r true)"
            )
            raise RequestRefused(ResponseCode.SYSTEM_BUSY, remark)

    def _refuse_unless_there_is(self, group: str, topic: str, queue_id: int) -> None:
        config = self._topics.existing(topic)
        queues = max(config.read_queue_nums, config.write_queue_nums)
        if not 0 <= queue_id < queues:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the topic[{topic}] has no queue {queue_id}, it has {queues}")
        if not self._offsets.has_offsets(group):
            self._groups.refuse_unless_possible(group, self._offsets.group_count)
