"""The heartbeat, which contains the groups of a client (RocketMQ's HeartbeatData).

The enums list their members in Java's order, because some C++ clients write constants as ordinals.
"""

from collections.abc import Mapping
from enum import Enum
from typing import ClassVar, Final

import msgspec

from rocketmq_broker.protocol.body import Body, BodyPart

SUBSCRIBE_ALL: Final = "*"
EXPRESSION_TAG: Final = "TAG"
EXPRESSION_SQL92: Final = "SQL92"


class ConsumeType(Enum):
    """The modes of consumption.

    The program pulls messages itself (actively), or the client library pulls them for a listener (passively).
    """

    CONSUME_ACTIVELY = "CONSUME_ACTIVELY"
    CONSUME_PASSIVELY = "CONSUME_PASSIVELY"
    CONSUME_POP = "CONSUME_POP"


class MessageModel(Enum):
    """The models of distribution. The members of a group share the messages, or each member gets all messages."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFromWhere(Enum):
    """The positions at which a group can start to consume a queue for which it has no offset."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    CONSUME_FROM_MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    CONSUME_FROM_MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


class SubscriptionData(BodyPart):
    """The subscription of a group to a topic."""

    topic: str
    sub_string: str = SUBSCRIBE_ALL
    """The filter expression: `*`, tags separated by `||`, or SQL92."""
    tags_set: list[str] = []
    code_set: list[int] = []
    """The hash codes of the tags in the filter expression."""
    sub_version: int = 0
    expression_type: str | None = EXPRESSION_TAG
    class_filter_mode: bool = False


class ProducerData(BodyPart):
    """A producer group of the client."""

    group_name: str


class ConsumerData(BodyPart):
    """A consumer group of the client, with its subscriptions."""

    group_name: str
    consume_type: ConsumeType | None = ConsumeType.CONSUME_PASSIVELY
    message_model: MessageModel | None = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere | None = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    subscription_data_set: list[SubscriptionData] = []
    unit_mode: bool = False


class HeartbeatData(Body):
    """The body of HEART_BEAT."""

    constants: ClassVar[Mapping[str, type[Enum]]] = {
        "consumeType": ConsumeType,
        "messageModel": MessageModel,
        "consumeFromWhere": ConsumeFromWhere,
    }
    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[ProducerData] = []
    consumer_data_set: list[ConsumerData] = []
