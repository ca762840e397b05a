"""Bodies about consumer and producer groups: members, subscriptions, progress, and locked queues."""

import msgspec

from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable


class GetConsumerListByGroupResponseBody(Body):
    """The response body of GET_CONSUMER_LIST_BY_GROUP, with the client ids of a consumer group."""

    consumer_id_list: list[str] = []


class GroupList(Body):
    """The response body of QUERY_TOPIC_CONSUME_BY_WHO, with the names of groups."""

    group_list: list[str] = []


class LockBatchRequestBody(Body):
    """The body of LOCK_BATCH_MQ, with the queues to lock for a member."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueueData] = []


class LockBatchResponseBody(Body):
    """The response body of LOCK_BATCH_MQ, with the queues that the member has locked."""

    lock_ok_mq_set: list[MessageQueueData] = msgspec.field(name="lockOKMQSet", default_factory=list)


class UnlockBatchRequestBody(Body):
    """The body of UNLOCK_BATCH_MQ, with the queues to unlock."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueueData] = []


class ClientConnection(BodyPart):
    """A client of a group, as registered at the broker (RocketMQ's Connection)."""

    client_id: str
    client_addr: str
    language: str | int = "JAVA"
    version: int = 0


class ConsumerConnection(Body):
    """The response body of GET_CONSUMER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, SubscriptionData] = {}
    """Subscriptions keyed by topic."""
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None
    disagreement: str | None = None
    """A description of how the subscriptions of the group's members differ.

    RocketMQ's brokers do not set this field, and its tools ignore it.
    """


class ProducerConnection(Body):
    """The response body of GET_PRODUCER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(BodyPart):
    """A producer, as registered at the broker."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str | int = "JAVA"
    version: int = 0
    last_update_timestamp: int = 0
    """The time of the producer's last heartbeat, in milliseconds since the epoch."""


class ProducerTableInfo(Body):
    """The response body of GET_ALL_PRODUCER_INFO."""

    data: dict[str, list[ProducerInfo]] = {}
    """Producers keyed by producer group."""


class CheckClientRequestBody(Body):
    """The body of CHECK_CLIENT_CONFIG, with a subscription to check."""

    client_id: str
    group: str
    subscription_data: SubscriptionData


class PopProgress(BodyPart):
    """The messages of one queue that a group has popped but not acknowledged.

    RocketMQ's brokers do not send this object, and its tools ignore it.
    """

    oldest_store_time: int | None = None
    """The store time of the first unacknowledged message, in milliseconds since the epoch, or None."""
    next_visible_time: int | None = None
    """The earliest time at which one of the messages becomes visible again, in milliseconds since the epoch, or None."""
    attempts: int = 1
    """The highest number of deliveries among the first unacknowledged messages and the first message to be redelivered."""


class OffsetWrapper(BodyPart):
    """The progress of a group on one queue."""

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    """The store time of the last consumed message, in milliseconds since the epoch."""
    pull_offset: int | msgspec.UnsetType = msgspec.UNSET
    """`consumer_offset` plus the number of unacknowledged messages (inflight). Brokers before RocketMQ 5 do not send it."""
    popped: PopProgress | msgspec.UnsetType = msgspec.UNSET
    """The unacknowledged messages. Set only if there are such messages, or messages that wait for redelivery."""

    @property
    def in_hand(self) -> int:
        """Returns the number of delivered but unacknowledged messages, computed as in RocketMQ's tools."""
        return 0 if self.pull_offset is msgspec.UNSET else max(0, self.pull_offset - self.consumer_offset)


class ConsumeStats(Body):
    """The response body of GET_CONSUME_STATS, with the progress of a group on each queue."""

    lenient_limit = None
    offset_table: QueueTable[OffsetWrapper] = msgspec.field(default_factory=QueueTable)
    consume_tps: float = 0.0


class ConsumeStatsList(Body):
    """The response body of GET_BROKER_CONSUME_STATS."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = []
    """One map for each group, from the group's name to its statistics."""
    broker_addr: str | None = None
    total_diff: int = 0


class ConsumerOffsetSerializeWrapper(Body):
    """The response body of GET_ALL_CONSUMER_OFFSET, with all offsets of all groups."""

    offset_table: dict[str, dict[int, int]] = {}
    """Offsets keyed by `topic@group` and then by queue id."""


class ResetOffsetBody(Body):
    """New offsets, in the body of RESET_CONSUMER_CLIENT_OFFSET and in the response to INVOKE_BROKER_TO_RESET_OFFSET."""

    lenient_limit = None
    offset_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)


class MessageQueueForC(BodyPart):
    """A queue and its offset, for clients that cannot read maps with objects as keys."""

    broker_name: str
    offset: int
    queue_id: int
    topic: str


class ResetOffsetBodyForC(Body):
    """The equivalent of ResetOffsetBody for clients that are not written in Java."""

    offset_table: list[MessageQueueForC] = []


class GetConsumerStatusBody(Body):
    """The response to GET_CONSUMER_STATUS_FROM_CLIENT and INVOKE_BROKER_TO_GET_CONSUMER_STATUS, with the offsets of members."""

    message_queue_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)
    consumer_table: dict[str, QueueTable[int]] = {}
    """Offsets keyed by client id and then by queue."""


class QueryCorrectionOffsetBody(Body):
    """The response body of QUERY_CORRECTION_OFFSET."""

    correction_offsets: dict[int, int] = {}
