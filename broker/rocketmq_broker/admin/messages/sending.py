"""Sends one message for the command `send`."""

from collections.abc import Sequence
from typing import Final

import msgspec

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import CannotAsk
from rocketmq_broker.admin.session import Session
from rocketmq_broker.client.errors import MessageRefused
from rocketmq_broker.client.producer.wire_message import check_message, to_wire, with_unique_id
from rocketmq_broker.message import IllegalMessage, Message, topics
from rocketmq_broker.message.ids import UniqueIdMaker
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2
from rocketmq_broker.world import World

PRODUCER_GROUP: Final = "rocketmq-admin"
_QUEUES_OF_A_NEW_TOPIC: Final = 4
_ANY_QUEUE: Final = -1
"""The queue id that lets the broker choose the queue."""


class SentMessage(msgspec.Struct, frozen=True, rename="camel"):
    """The ids and the position of a stored message."""

    topic: str
    queue_id: int
    queue_offset: int
    message_id: str
    offset_message_id: str


def new_message(topic: str, body: bytes, keys: Sequence[str], tag: str | None, properties: Sequence[str]) -> Message:
    """Returns a new message. Each property has the form NAME=VALUE. Raises CannotAsk for an invalid message."""
    named = {}
    for one in properties:
        name, equals, value = one.partition("=")
        if not (name and equals):
            raise CannotAsk(f"invalid property {one}: expected NAME=VALUE")
        named[name] = value
    try:
        message = Message.of(topic, body, keys=keys, tags=tag, user_properties=named)
        check_message(message)
    except (IllegalMessage, MessageRefused, TypeError) as error:
        raise CannotAsk(str(error)) from None
    return message


async def send(session: Session, message: Message, world: World) -> tuple[str, SentMessage]:
    """Sends a message to a broker that has the topic, or else to the first broker.

    Returns the broker's address, and the ids and position of the stored message.

    Raises CannotAsk or Refused.
    """
    broker, now_ms = await _broker_for(session, message.topic), world.wall_ms()
    try:
        wire = to_wire(with_unique_id(message, UniqueIdMaker(world).make(now_ms)))
    except MessageRefused as error:
        raise CannotAsk(str(error)) from None
    header = SendMessageRequestHeaderV2(
        producer_group=PRODUCER_GROUP,
        topic=wire.topic,
        default_topic=topics.AUTO_CREATE_TOPIC,
        default_topic_queue_nums=_QUEUES_OF_A_NEW_TOPIC,
        queue_id=_ANY_QUEUE,
        sys_flag=wire.sys_flag,
        born_timestamp=now_ms,
        flag=wire.flag,
        properties=wire.properties,
    )
    stored = await broker.send(header, wire.body)
    return broker.address, SentMessage(
        topic=wire.topic,
        queue_id=stored.queue_id,
        queue_offset=stored.queue_offset,
        message_id=wire.unique_id,
        offset_message_id=stored.msg_id,
    )


async def _broker_for(session: Session, topic: str) -> BrokerRequests:
    if len(session.brokers) > 1:
        for broker, names in await session.ask_each(lambda broker: broker.topics()):
            if topic in names:
                return broker
    return session.brokers[0]
