"""Headers about consumer and producer groups: members, progress, and operators' changes."""

import msgspec

from rocketmq_broker.message.text.java_numbers import Int64
from rocketmq_broker.protocol.command_header import CommandHeader


class UnregisterClientRequestHeader(CommandHeader):
    """The header of UNREGISTER_CLIENT."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListByGroupRequestHeader(CommandHeader):
    """The header of GET_CONSUMER_LIST_BY_GROUP."""

    consumer_group: str


class NotifyConsumerIdsChangedRequestHeader(CommandHeader):
    """The header of NOTIFY_CONSUMER_IDS_CHANGED, which notifies a consumer that the members of its group have changed."""

    consumer_group: str


class GetConsumerConnectionListRequestHeader(CommandHeader):
    """The header of GET_CONSUMER_CONNECTION_LIST."""

    consumer_group: str


class GetProducerConnectionListRequestHeader(CommandHeader):
    """The header of GET_PRODUCER_CONNECTION_LIST."""

    producer_group: str


class GetConsumeStatsRequestHeader(CommandHeader):
    """The header of GET_CONSUME_STATS."""

    consumer_group: str
    topic: str | None = None


class GetConsumeStatsInBrokerHeader(CommandHeader):
    """The header of GET_BROKER_CONSUME_STATS."""

    is_order: bool


class GetConsumerRunningInfoRequestHeader(CommandHeader):
    """The header of GET_CONSUMER_RUNNING_INFO."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class GetConsumerStatusRequestHeader(CommandHeader):
    """The header of INVOKE_BROKER_TO_GET_CONSUMER_STATUS and GET_CONSUMER_STATUS_FROM_CLIENT."""

    topic: str
    group: str
    client_addr: str | None = None


class ConsumeMessageDirectlyResultRequestHeader(CommandHeader):
    """The header of CONSUME_MESSAGE_DIRECTLY."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None


class ResetOffsetRequestHeader(CommandHeader):
    """The header of INVOKE_BROKER_TO_RESET_OFFSET and RESET_CONSUMER_CLIENT_OFFSET."""

    topic: str
    group: str
    timestamp: Int64
    is_force: bool


class CloneGroupOffsetRequestHeader(CommandHeader):
    """The header of CLONE_GROUP_OFFSET."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


class DeleteSubscriptionGroupRequestHeader(CommandHeader):
    """The header of DELETE_SUBSCRIPTIONGROUP."""

    group_name: str
    remove_offset: bool = False


class QueryConsumeTimeSpanRequestHeader(CommandHeader):
    """The header of QUERY_CONSUME_TIME_SPAN."""

    topic: str
    group: str


class QueryCorrectionOffsetHeader(CommandHeader, kw_only=True):
    """The header of QUERY_CORRECTION_OFFSET."""

    filter_groups: str | None = None
    compare_group: str
    topic: str


class QueryTopicConsumeByWhoRequestHeader(CommandHeader):
    """The header of QUERY_TOPIC_CONSUME_BY_WHO."""

    topic: str
