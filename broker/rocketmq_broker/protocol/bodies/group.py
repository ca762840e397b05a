"""Consumer and producer groups: who is in them, what they consume, how far they are, and which queues they have locked."""

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
    """LOCK_BATCH_MQ: a member wants queues for itself."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueueData] = []


class LockBatchResponseBody(Body):
    """The queues that it has now."""

    lock_ok_mq_set: list[MessageQueueData] = msgspec.field(name="lockOKMQSet", default_factory=list)


class UnlockBatchRequestBody(Body):
    """UNLOCK_BATCH_MQ: a member gives queues back."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueueData] = []


class ClientConnection(BodyPart):
    """A client of a group, as its broker sees it (RocketMQ's Connection)."""

    client_id: str
    client_addr: str
    language: str | int = "JAVA"
    version: int = 0


class ConsumerConnection(Body):
    """The answer to GET_CONSUMER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []
    subscription_table: dict[str, SubscriptionData] = {}
    """By topic."""
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


class ProducerConnection(Body):
    """The answer to GET_PRODUCER_CONNECTION_LIST."""

    connection_set: list[ClientConnection] = []


class ProducerInfo(BodyPart):
    """A producer, as its broker sees it."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str | int = "JAVA"
    version: int = 0
    last_update_timestamp: int = 0
    """When its last heartbeat came, in milliseconds since the epoch."""


class ProducerTableInfo(Body):
    """The answer to GET_ALL_PRODUCER_INFO."""

    data: dict[str, list[ProducerInfo]] = {}
    """By producer group."""


class CheckClientRequestBody(Body):
    """CHECK_CLIENT_CONFIG: is this subscription legal?"""

    client_id: str
    group: str
    subscription_data: SubscriptionData


class OffsetWrapper(BodyPart):
    """How far a group is on one queue."""

    broker_offset: int = 0
    consumer_offset: int = 0
    last_timestamp: int = 0
    """When the message consumed last was stored, in milliseconds since the epoch."""


class ConsumeStats(Body):
    """The answer to GET_CONSUME_STATS. Only tools read it."""

    lenient_limit = None
    offset_table: QueueTable[OffsetWrapper] = msgspec.field(default_factory=QueueTable)
    consume_tps: float = 0.0


class ConsumeStatsList(Body):
    """The answer to GET_BROKER_CONSUME_STATS."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = []
    """Each of the maps is from a group."""
    broker_addr: str | None = None
    total_diff: int = 0


class ConsumerOffsetSerializeWrapper(Body):
    """All offsets of all groups: the answer to GET_ALL_CONSUMER_OFFSET."""

    offset_table: dict[str, dict[int, int]] = {}
    """topic@group -> queue id -> offset."""


class ResetOffsetBody(Body):
    """RESET_CONSUMER_CLIENT_OFFSET, and the answer to INVOKE_BROKER_TO_RESET_OFFSET: where to go on. Only clients read it."""

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
    """Where each member of a group is: the answer to GET_CONSUMER_STATUS_FROM_CLIENT and to its broker's."""

    message_queue_table: QueueTable[int] = msgspec.field(default_factory=QueueTable)
    consumer_table: dict[str, QueueTable[int]] = {}
    """By client id."""


class QueryCorrectionOffsetBody(Body):
    """The answer to QUERY_CORRECTION_OFFSET."""

    correction_offsets: dict[int, int] = {}
