"""The body of a broker's registration: JSON, compressed if there are many topics (compressedRegister of RocketMQ)."""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketmq_broker.message.record import body_crc
from rocketmq_broker.message.topics import OP_HALF_TOPIC
from rocketmq_broker.protocol.bodies import RegisterBrokerBody
from rocketmq_broker.server.topics.config_bodies import TopicsSnapshot, registered_topics, topics_body

MAX_PLAIN_TOPICS: Final = 1000
"""With more topics the registration is compressed: JSON for 80,000 topics or more would be longer than a frame, and no name
server would hear of the broker. Compressed it omits topicSysFlag and order, which hardly anyone reads.
"""
MAX_REGISTERED: Final = 60_000
"""Topics. Our name server takes 65,536. The limits for clients stay far below it; older stores may have more."""


class EncodedRegistration(NamedTuple):
    """The body of REGISTER_BROKER, and its header's fields."""

    body: bytes
    is_compressed: bool
    crc32: int
    """0 if there is none to check: as Apache's brokers do, it is given for compressed bodies alone."""
    left_out: int
    """Topics that had no room in it."""


def encode_registration(topics: TopicsSnapshot, broker_permission: int) -> EncodedRegistration:
    """Encodes the registration of these topics, without the op messages' topic, which RocketMQ does not register either.

    Very many topics take some 0.2 s: call it on another thread than the event loop's.
    """
    everything = topics_body(topics, broker_permission=broker_permission)
    everything.topic_config_table.pop(OP_HALF_TOPIC, None)
    registered = registered_topics(everything, MAX_REGISTERED)
    left_out = len(everything.topic_config_table) - len(registered.topic_config_table)
    body = RegisterBrokerBody(topic_config_serialize_wrapper=registered)
    if len(registered.topic_config_table) <= MAX_PLAIN_TOPICS:
        return EncodedRegistration(body.encode(), is_compressed=False, crc32=0, left_out=left_out)
    compressed = body.encode_compressed()
    return EncodedRegistration(compressed, is_compressed=True, crc32=body_crc(compressed), left_out=left_out)
