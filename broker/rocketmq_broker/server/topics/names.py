"""Checks the names of groups and topics in requests (RocketMQ's Validators), and protects the broker's own."""

from __future__ import annotations

from collections.abc import Callable

from rocketmq_broker.message import topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused


def refuse_illegal_topic(topic: str) -> None:
    """Raises RequestRefused if no topic can have this name."""
    _refuse_unless(topics.validate_topic, topic)


def refuse_illegal_producer_group(group: str) -> None:
    """Raises RequestRefused if no producer group can have this name."""
    _refuse_unless(topics.validate_group, group)


def refuse_illegal_consumer_group(group: str) -> None:
    """Raises RequestRefused if no consumer group can have this name."""
    _refuse_unless(topics.validate_consumer_group, group)


def refuse_as_consumer(group: str) -> None:
    """Raises RequestRefused if no client can consume as this group: its name is illegal, or the broker consumes as it."""
    refuse_illegal_consumer_group(group)
    if topics.is_system_group(group):
        remark = f"the group[{group}] is the broker's own: no client may act for it, set its offsets or change its settings"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)


def refuse_offsets(group: str, topic: str) -> None:
    """Raises RequestRefused if no client can set the group's offsets in the topic."""
    refuse_as_consumer(group)
    refuse_illegal_topic(topic)
    if topic in topics.CONSUMED_BY_THE_BROKER:
        remark = f"the topic[{topic}] is consumed by the broker alone: it can be read, but no group has offsets in it"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)


def refuse_message_of_the_broker(topic: bytes) -> None:
    """Raises RequestRefused for a topic whose messages no consumer can have, so that no request passes one to a consumer."""
    name = topic.decode(errors="replace")
    if name in topics.CONSUMED_BY_THE_BROKER:
        remark = f"the topic[{name}] is consumed by the broker alone: no group can have received a message of it"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)


def _refuse_unless(validate: Callable[[str], None], name: str) -> None:
    try:
        validate(name)
    except IllegalMessage as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
