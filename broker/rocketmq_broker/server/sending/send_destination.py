"""The destination of a sent message: its topic, created if allowed, and its queue (AbstractSendMessageProcessor.msgCheck)."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicTable
from rocketmq_broker.world import Chance

SendHeader: TypeAlias = SendMessageRequestHeader | SendMessageRequestHeaderV2

_MULTIPLE_TAGS: Final = "MULTI_TAG"
"""RocketMQ's TopicFilterType of topics whose messages may have several tags each."""


class Destination(NamedTuple):
    """The topic and queue of a message."""

    topic: bytes
    queue_id: int
    topic_bits: int
    """The topic's bit of the message's sysFlag: whether its messages may have several tags each."""


class SendDestination:
    """Finds each message's destination: the dead-letter topic for a consumer's message after its last attempt."""

    def __init__(self, topic_table: TopicTable, subscription_groups: SubscriptionGroupTable, random: Chance) -> None:
        self._topics = topic_table
        self._groups = subscription_groups
        self._random = random

    def of(self, header: SendHeader) -> Destination:
        """Returns the message's destination. Raises RequestRefused."""
        topic, queue_id = header.topic, header.queue_id
        config = self._topics.for_sending(topic, header.default_topic, header.default_topic_queue_nums, header.unit_mode)
        if queue_id >= config.read_queue_nums and queue_id >= config.write_queue_nums:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"request queueId[{queue_id}] is illegal, {config}")
        if topic.startswith(topics.RETRY_PREFIX) and self._is_given_up(header):
            dead_letters = self._topics.dead_letter_topic(topic.removeprefix(topics.RETRY_PREFIX))
            return Destination(dead_letters.topic_name.encode(), 0, 0)
        if queue_id < 0:
            if config.write_queue_nums <= 0:
                raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"the topic has no queue to write to, {config}")
            queue_id = self._random.randrange(config.write_queue_nums)
        topic_bits = sysflag.MULTI_TAGS if config.topic_filter_type == _MULTIPLE_TAGS else 0
        return Destination(topic.encode(), queue_id, topic_bits)

    def _is_given_up(self, header: SendHeader) -> bool:
        """Returns whether a retried message has used up its group's attempts."""
        group = self._groups.for_consuming(header.topic.removeprefix(topics.RETRY_PREFIX))
        most = header.max_reconsume_times if header.max_reconsume_times is not None else group.retry_max_times
        return header.reconsume_times >= most
