"""Validates the names of groups and topics in requests (RocketMQ's Validators), and protects names that the broker uses."""

from collections.abc import Callable

from rocketmq_broker.message import topics
from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused


def refuse_unless(validate: Callable[[str], None], name: str) -> None:
    """Calls `validate` with the name. Raises RequestRefused if `validate` raises IllegalMessage."""
    try:
        validate(name)
    except IllegalMessage as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None


def refuse_illegal_topic(topic: str) -> None:
    """Raises RequestRefused if the topic name is illegal."""
    refuse_unless(topics.validate_topic, topic)


def refuse_illegal_producer_group(group: str) -> None:
    """Raises RequestRefused if the producer group name is illegal."""
    refuse_unless(topics.validate_group, group)


def refuse_illegal_consumer_group(group: str) -> None:
    """Raises RequestRefused if the consumer group name is illegal."""
    refuse_unless(topics.validate_consumer_group, group)


def refuse_as_consumer(group: str) -> None:
    """Raises RequestRefused if clients cannot consume as this group, because its name is illegal or the broker uses it."""
    refuse_illegal_consumer_group(group)
    if topics.is_system_group(group):
        remark = f"group[{group}] is a system group: clients cannot consume with it, or change its offsets or settings"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)


def refuse_offsets(group: str, topic: str) -> None:
    """Raises RequestRefused if clients cannot set the group's offsets in the topic."""
    refuse_as_consumer(group)
    refuse_illegal_topic(topic)
    if topic in topics.CONSUMED_BY_THE_BROKER:
        remark = f"only the broker consumes topic[{topic}]: clients can read it, but groups cannot have offsets in it"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)


def refuse_message_of_the_broker(topic: bytes) -> None:
    """Raises RequestRefused if only the broker consumes the topic. Messages of such a topic are not sent to consumers."""
    name = topic.decode(errors="replace")
    if name in topics.CONSUMED_BY_THE_BROKER:
        remark = f"only the broker consumes topic[{name}]: no group can have received a message of it"
        raise RequestRefused(ResponseCode.NO_PERMISSION, remark)
