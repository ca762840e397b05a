"""Consumer and producer groups: their members, subscriptions, progress, and locked queues."""

from __future__ import annotations

import msgspec

from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData
from rocketmq_broker.protocol.body import Body, BodyPart
from rocketmq_broker.protocol.queue_table import MessageQueueData, QueueTable


class GetConsumerListByGroupResponseBody(Body):
    """The client ids of a consumer group."""

    consumer_id_list: list[str] = []


class GroupList(Body):
    """Names of groups: the answer to QUERY_TOPIC_CONSUME_BY_WHO."""

    group_list: list[str] = []


class LockBatchRequestBody(Body):
    """LOCK_BATCH_MQ: the queues that a member asks to lock."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueueData] = []


class LockBatchResponseBody(Body):
    """The queues that the member has locked now."""

    lock_ok_mq_set: list[MessageQueueData] = msgspec.field(name="lockOKMQSet", default_factory=list)


class UnlockBatchRequestBody(Body):
    """UNLOCK_BATCH_MQ: the queues that a member gives back."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueueData] = []


class ClientConnection(BodyPart):
    """A client of a group in the broker's view (RocketMQ's Connection)."""

    client_id: str
    client_addr: str
    language: str | int = "JAVA"
    version: int = 0


class ConsumerConnection(Body):
    """The answer to GET_CONSUMER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, SubscriptionData] = {}
    """Subscriptions by topic."""
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None
    disagreement: str | None = None
    """How the members' subscriptions differ. RocketMQ's brokers do not compare them, and its tools pass over it."""


class ProducerConnection(Body):
    """The answer to GET_PRODUCER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(BodyPart):
    """A producer in its broker's view."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str | int = "JAVA"
    version: int = 0
    last_update_timestamp: int = 0
    """The time of its last heartbeat, in milliseconds since the epoch."""


class ProducerTableInfo(Body):
    """The answer to GET_ALL_PRODUCER_INFO."""

    data: dict[str, list[ProducerInfo]] = {}
    """Producers by producer group."""


class CheckClientRequestBody(Body):
    """CHECK_CLIENT_CONFIG: a subscription to be checked."""

    client_id: str
    group: str
    subscription_data: SubscriptionData


class PopProgress(BodyPart):
    """What a group popped from one queue and has not acknowledged.

    RocketMQ's answers have no such part, and its tools pass over it.
    """

    oldest_store_time: int | None = None
    """The time at which the first message in hand was stored, in milliseconds since the epoch; None without one."""
    next_visible_time: int | None = None
    """The earliest end of an invisible time, in milliseconds since the epoch; None without a message in hand."""
    attempts: int = 1
    """The most deliveries of one message, among the first ones in hand and the first one that waits for another attempt."""


class OffsetWrapper(BodyPart):
    """The progress of a group on one queue."""

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    """The time at which the message consumed last was stored, in milliseconds since the epoch."""
    pull_offset: int | msgspec.UnsetType = msgspec.UNSET
    """More than `consumer_offset` by the number of messages in hand (inflight). Brokers before RocketMQ 5 do not send it."""
    popped: PopProgress | msgspec.UnsetType = msgspec.UNSET
    """Only where messages are in hand, or wait for another attempt."""

    @property
    def in_hand(self) -> int:
        """Returns the number of messages that the group has got and not acknowledged, as RocketMQ's tools reckon it."""
        return 0 if self.pull_offset is msgspec.UNSET else max(0, self.pull_offset - self.consumer_offset)


class ConsumeStats(Body):
    """The answer to GET_CONSUME_STATS. Only tools read it."""

    lenient_limit = None
    offset_table: QueueTable[OffsetWrapper] = msgspec.field(default_factory=QueueTable)
    consume_tps: float = 0.0


class ConsumeStatsList(Body):
    """The answer to GET_BROKER_CONSUME_STATS."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = []
    """Each of the maps belongs to one group."""
    broker_addr: str | None = None
    total_diff: int = 0


class ConsumerOffsetSerializeWrapper(Body):
    """All offsets of all groups: the answer to GET_ALL_CONSUMER_OFFSET."""

    offset_table: dict[str, dict[int, int]] = {}
    """Offsets by topic@group and queue id."""


class ResetOffsetBody(Body):
    """RESET_CONSUMER_CLIENT_OFFSET, and the answer to INVOKE_BROKER_TO_RESET_OFFSET: the new offsets. Only clients read it."""

    lenient_limit = None
    offset_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)


class MessageQueueForC(BodyPart):
    """A queue and its offset, for clients that cannot read maps from objects."""

    broker_name: str
    offset: int
    queue_id: int
    topic: str


class ResetOffsetBodyForC(Body):
    """A ResetOffsetBody for clients that are not written in Java."""

    offset_table: list[MessageQueueForC] = []


class GetConsumerStatusBody(Body):
    """The offsets of each member of a group: the answer to GET_CONSUMER_STATUS_FROM_CLIENT and to its broker's request."""

    message_queue_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)
    consumer_table: dict[str, QueueTable[int]] = {}
    """Offsets by client id and queue."""


class QueryCorrectionOffsetBody(Body):
    """The answer to QUERY_CORRECTION_OFFSET."""

    correction_offsets: dict[int, int] = {}
