"""Delay levels: how long each is, and where a delayed message waits (the first half of RocketMQ's ScheduleMessageService)."""

from typing import Final, NamedTuple

from broker.message import properties, topics
from broker.message.errors import IllegalMessage

SCHEDULE_TOPIC: Final = topics.SCHEDULE_TOPIC.encode()

_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DELAY: Final = properties.DELAY_TIME_LEVEL.encode() + b"\x01"


class Place(NamedTuple):
    """Where a message goes, and its properties there."""

    topic: bytes
    queue_id: int
    properties: bytes


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """The levels of messageDelayLevel in milliseconds, level 1 first."""
    return tuple(int(level[:-1]) * _UNITS_MS[level[-1]] for level in text.split())


def delay_level(encoded_properties: bytes) -> int:
    """The level a message asks for; 0 for none. Raises IllegalMessage if it is no number."""
    if encoded_properties.find(_DELAY) < 0:
        return 0
    text = properties.find(encoded_properties, properties.DELAY_TIME_LEVEL)
    try:
        return int(text or "0")
    except ValueError:
        raise IllegalMessage(f"the property DELAY is {text!r}; a delay level is a number") from None


def waiting_place(place: Place, level: int, highest_level: int) -> Place:
    """Where the message waits, its own place kept in REAL_TOPIC and REAL_QID; a level too high counts as the highest."""
    level = min(level, highest_level)
    encoded = properties.put(place.properties, properties.DELAY_TIME_LEVEL, str(level))
    encoded = properties.put(encoded, properties.REAL_TOPIC, place.topic.decode())
    encoded = properties.put(encoded, properties.REAL_QUEUE_ID, str(place.queue_id))
    return Place(SCHEDULE_TOPIC, level - 1, encoded)


def final_place(waiting_properties: bytes) -> Place:
    """Where the message goes when it is due. Raises IllegalMessage if it does not say."""
    topic = properties.find(waiting_properties, properties.REAL_TOPIC)
    queue_id = properties.find(waiting_properties, properties.REAL_QUEUE_ID)
    if not topic or topic == topics.HALF_TOPIC or queue_id is None or not queue_id.isdigit():
        raise IllegalMessage(f"a delayed message does not say where it is for: topic {topic}, queue {queue_id}")
    return Place(topic.encode(), int(queue_id), properties.remove(waiting_properties, (properties.DELAY_TIME_LEVEL,)))
