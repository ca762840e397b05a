"""Delay levels: their lengths, and the places of delayed messages (the first half of RocketMQ's ScheduleMessageService)."""

from typing import Final, NamedTuple

from rocketmq_broker.message import properties, topics
from rocketmq_broker.message.errors import IllegalMessage

SCHEDULE_TOPIC: Final = topics.SCHEDULE_TOPIC.encode()

_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MOST_DIGITS: Final = len(str(topics.MOST_QUEUES))
_DELAY: Final = properties.beginning(properties.DELAY_TIME_LEVEL)


class Place(NamedTuple):
    """The topic and queue of a message, and its properties there."""

    topic: bytes
    queue_id: int
    properties: bytes


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Returns the levels of messageDelayLevel in milliseconds, level 1 first."""
    return tuple(int(level[:-1]) * _UNITS_MS[level[-1]] for level in text.split())


def delay_level(encoded_properties: bytes) -> int:
    """Returns the level that a message asks for; 0 for none. Raises IllegalMessage if it is no number."""
    if encoded_properties.find(_DELAY) < 0:
        return 0
    text = properties.find(encoded_properties, properties.DELAY_TIME_LEVEL)
    try:
        return int(text or "0")
    except ValueError:
        raise IllegalMessage(f"the property DELAY is {text!r}; a delay level is a number") from None


def waiting_place(place: Place, level: int, highest_level: int) -> Place:
    """Returns the message's waiting place, with its own place in REAL_TOPIC and REAL_QID. The highest level is the limit."""
    level = min(level, highest_level)
    encoded = properties.put(place.properties, properties.DELAY_TIME_LEVEL, str(level))
    encoded = properties.put(encoded, properties.REAL_TOPIC, place.topic.decode())
    encoded = properties.put(encoded, properties.REAL_QUEUE_ID, str(place.queue_id))
    return Place(SCHEDULE_TOPIC, level - 1, encoded)


def final_place(waiting_properties: bytes) -> Place:
    """Returns the message's place when it is due. Its level stays readable for consumers.

    Raises IllegalMessage if the properties lack it, or name a topic that takes no sent messages.
    """
    topic = properties.find(waiting_properties, properties.REAL_TOPIC) or ""
    text = properties.find(waiting_properties, properties.REAL_QUEUE_ID) or ""
    queue_id = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else -1
    if not topics.takes_sent_messages(topic) or not 0 <= queue_id < topics.MOST_QUEUES:
        raise IllegalMessage(f"a delayed message cannot be for topic {topic[:200]!r}, queue {text[:20]!r}")
    return Place(topic.encode(), queue_id, waiting_properties)
