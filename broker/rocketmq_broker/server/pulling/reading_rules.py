"""Checks whether a consumer group may read a queue, by pull or by pop."""

from rocketmq_broker.message import permissions
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable


class ReadingRules:
    """Checks whether the permissions of broker, group and topic allow a group to read."""

    def __init__(self, topic_table: TopicTable, subscription_groups: SubscriptionGroupTable, broker_permission: int) -> None:
        self._topics = topic_table
        self._groups = subscription_groups
        self._broker_permission = broker_permission

    def has_group(self, group: str) -> bool:
        """Returns True if a consumer group with this name exists."""
        return group in self._groups.groups

    def refuse_forbidden(self, group: str, topic: str, queue_id: int, *, verb: str = "pulling") -> int:
        """Returns the number of the topic's queues. Raises RequestRefused unless broker, group and topic allow reading the queue.

        `verb` is the word for the operation in the error text. The texts are RocketMQ's.
        """
        if not permissions.is_readable(self._broker_permission):
            raise RequestRefused(ResponseCode.NO_PERMISSION, f"the broker {verb} message is forbidden")
        if not self._groups.for_consuming(group).consume_enable:
            raise RequestRefused(ResponseCode.NO_PERMISSION, f"subscription group no permission, {group}")
        config = self._topics.existing(topic)
        if not permissions.is_readable(config.perm):
            raise RequestRefused(ResponseCode.NO_PERMISSION, f"the topic[{topic}] {verb} message is forbidden")
        if not 0 <= queue_id < config.read_queue_nums:
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{config.read_queue_nums}]",
            )
        return config.read_queue_nums
