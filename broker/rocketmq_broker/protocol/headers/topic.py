"""Headers of requests about topics, single messages and the broker itself. Operators send these requests."""

import msgspec

from rocketmq_broker.message import permissions, topics
from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class CreateTopicRequestHeader(CommandHeader):
    """The header of UPDATE_AND_CREATE_TOPIC."""

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    """Changes of attributes, such as `+NAME=VALUE,-NAME` (RocketMQ 5)."""

    @classmethod
    def of(cls, topic: str, queues: int) -> "CreateTopicRequestHeader":
        """Returns the header for an ordinary topic with `queues` readable and writeable queues."""
        return cls(
            topic=topic,
            default_topic=topics.AUTO_CREATE_TOPIC,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=permissions.READ_AND_WRITE,
            topic_filter_type="SINGLE_TAG",
            topic_sys_flag=0,
        )


class DeleteTopicRequestHeader(CommandHeader):
    """The header of DELETE_TOPIC_IN_BROKER."""

    topic: str


class GetTopicConfigRequestHeader(CommandHeader):
    """The header of GET_TOPIC_CONFIG."""

    topic: str


class GetTopicStatsInfoRequestHeader(CommandHeader):
    """The header of GET_TOPIC_STATS_INFO."""

    topic: str


class QueryMessageRequestHeader(CommandHeader):
    """The header of QUERY_MESSAGE.

    The request finds messages by key, or by the producer's message id if `unique_key_query` is set.
    """

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    unique_key_query: bool = msgspec.field(name="_UNIQUE_KEY_QUERY", default=False)


class QueryMessageResponseHeader(CommandHeader):
    """The header of the response to QUERY_MESSAGE.

    It contains the time and the commit log offset up to which the index is complete.
    """

    index_last_update_timestamp: Int64
    index_last_update_phy_offset: Int64 = msgspec.field(name="indexLastUpdatePhyoffset")


class ViewMessageRequestHeader(CommandHeader):
    """The header of VIEW_MESSAGE_BY_ID."""

    offset: Int64


class QueryConsumeQueueRequestHeader(CommandHeader):
    """The header of QUERY_CONSUME_QUEUE."""

    topic: str | None = None
    queue_id: Int32 = 0
    index: Int64 = 0
    count: Int32 = 0
    consumer_group: str | None = None


class ViewBrokerStatsDataRequestHeader(CommandHeader):
    """The header of VIEW_BROKER_STATS_DATA."""

    stats_name: str
    stats_key: str


class GetBrokerConfigResponseHeader(CommandHeader):
    """The header of the response to GET_BROKER_CONFIG, with the version of the broker's settings."""

    version: str
