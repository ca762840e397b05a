"""The settings of topics and consumer groups, as stored in files and sent in message bodies (RocketMQ's common package)."""

import msgspec

from rocketmq_broker.message import permissions
from rocketmq_broker.message.text.java_numbers import Int32, Int64


class TopicConfig(msgspec.Struct, rename="camel"):
    """The settings of a topic (RocketMQ's TopicConfig)."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = permissions.READ_AND_WRITE
    """The permission bits of the topic: the sum of 4 (read), 2 (write) and 1 (inherit)."""
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """The attributes of RocketMQ 5, such as `{"message.type": "FIFO"}`. Omitted for a topic without attributes, as in 4.9.7."""


class SubscriptionGroupConfig(msgspec.Struct, rename="camel"):
    """The settings of a consumer group (RocketMQ's SubscriptionGroupConfig)."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: Int32 = 1
    retry_max_times: Int32 = 16
    broker_id: Int64 = 0
    which_broker_when_consume_slowly: Int64 = 1
    notify_consumer_ids_changed_enable: bool = True
