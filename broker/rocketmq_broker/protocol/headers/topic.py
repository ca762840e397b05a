"""Topics, single messages and the broker itself, as operators see them."""

import msgspec

from rocketmq_broker.message.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class CreateTopicRequestHeader(CommandHeader):
    """UPDATE_AND_CREATE_TOPIC."""

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    """Changes of attributes, `+NAME=VALUE,-NAME`; of RocketMQ 5."""


class DeleteTopicRequestHeader(CommandHeader):
    """DELETE_TOPIC_IN_BROKER."""

    topic: str


class GetTopicConfigRequestHeader(CommandHeader):
    """GET_TOPIC_CONFIG."""

    topic: str


class GetTopicStatsInfoRequestHeader(CommandHeader):
    """GET_TOPIC_STATS_INFO."""

    topic: str


class QueryMessageRequestHeader(CommandHeader):
    """QUERY_MESSAGE: by key, or with `unique_key_query` by the id its producer gave it."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    unique_key_query: bool = msgspec.field(name="_UNIQUE_KEY_QUERY", default=False)


class QueryMessageResponseHeader(CommandHeader):
    """How far the index reaches."""

    index_last_update_timestamp: Int64
    index_last_update_phy_offset: Int64 = msgspec.field(name="indexLastUpdatePhyoffset")


class ViewMessageRequestHeader(CommandHeader):
    """VIEW_MESSAGE_BY_ID."""

    offset: Int64


class QueryConsumeQueueRequestHeader(CommandHeader):
    """QUERY_CONSUME_QUEUE."""

    topic: str | None = None
    queue_id: Int32 = 0
    index: Int64 = 0
    count: Int32 = 0
    consumer_group: str | None = None


class ViewBrokerStatsDataRequestHeader(CommandHeader):
    """VIEW_BROKER_STATS_DATA."""

    stats_name: str
    stats_key: str


class GetBrokerConfigResponseHeader(CommandHeader):
    """The version of a broker's settings."""

    version: str
