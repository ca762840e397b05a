"""Headers of pulls and of requests for offsets."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int32, Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class PullMessageRequestHeader(CommandHeader, kw_only=True):
    """The header of PULL_MESSAGE. `sys_flag` contains the bits of RocketMQ's PullSysFlag."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    subscription: str | None = None
    sub_version: Int64
    expression_type: str | None = None
    broker_name: str | None = msgspec.field(name="bname", default=None)


class PullMessageResponseHeader(CommandHeader):
    """The header of the response to PULL_MESSAGE, with the offset of the next pull."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64


class QueryConsumerOffsetRequestHeader(CommandHeader):
    """The header of QUERY_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class QueryConsumerOffsetResponseHeader(CommandHeader):
    """The header of the response to QUERY_CONSUMER_OFFSET, with the group's offset in a queue."""

    offset: Int64


class UpdateConsumerOffsetRequestHeader(CommandHeader):
    """The header of UPDATE_CONSUMER_OFFSET."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMaxOffsetRequestHeader(CommandHeader):
    """The header of GET_MAX_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMaxOffsetResponseHeader(CommandHeader):
    """The header of the response to GET_MAX_OFFSET, with the offset of the queue's next message."""

    offset: Int64


class GetMinOffsetRequestHeader(CommandHeader):
    """The header of GET_MIN_OFFSET."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetMinOffsetResponseHeader(CommandHeader):
    """The header of the response to GET_MIN_OFFSET, with the offset of the queue's oldest message."""

    offset: Int64


class SearchOffsetRequestHeader(CommandHeader):
    """The header of SEARCH_OFFSET_BY_TIMESTAMP."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    broker_name: str | None = msgspec.field(name="bname", default=None)


class SearchOffsetResponseHeader(CommandHeader):
    """The header of the response to SEARCH_OFFSET_BY_TIMESTAMP."""

    offset: Int64


class GetEarliestMsgStoretimeRequestHeader(CommandHeader):
    """The header of GET_EARLIEST_MSG_STORETIME."""

    topic: str
    queue_id: Int32
    broker_name: str | None = msgspec.field(name="bname", default=None)


class GetEarliestMsgStoretimeResponseHeader(CommandHeader):
    """The header of the response to GET_EARLIEST_MSG_STORETIME, with the store timestamp of the queue's oldest message."""

    timestamp: Int64
