"""Encodes the body of a broker's registration as JSON, which is compressed if there are many topics (compressedRegister)."""

from __future__ import annotations

from typing import Final, NamedTuple

from rocketmq_broker.message.record import body_crc
from rocketmq_broker.message.topics import OP_HALF_TOPIC
from rocketmq_broker.protocol.bodies.register_broker import RegisterBrokerBody
from rocketmq_broker.server.topics.config_bodies import TopicsSnapshot, registered_topics, topics_body

MAX_PLAIN_TOPICS: Final = 1000
"""The maximum number of topics in an uncompressed registration. JSON for 80,000 topics would exceed the frame limit.

The compressed form omits topicSysFlag and order, which are rarely used.
"""
MAX_REGISTERED: Final = 60_000
"""The maximum number of registered topics.

This project's name server accepts 65,536. Only stores of older brokers can contain so many topics.
"""


class EncodedRegistration(NamedTuple):
    """The body of REGISTER_BROKER, and values for its header."""

    body: bytes
    is_compressed: bool
    crc32: int
    """The checksum of a compressed body. It is 0 for an uncompressed body, as in Apache's brokers."""
    left_out: int
    """The number of topics that are omitted because of MAX_REGISTERED."""


def encode_registration(topics: TopicsSnapshot, broker_permission: int) -> EncodedRegistration:
    """Encodes the registration of these topics. Omits the op topic, as RocketMQ does.

    Do not call this function on the event loop's thread, because it takes about 0.2 s for very many topics.
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
