"""Determines delay levels, and the topics and queues of delayed messages (part of RocketMQ's ScheduleMessageService)."""

from collections.abc import Sequence
from typing import Final

from rocketmq_broker.message import properties, topics
from rocketmq_broker.message.errors import IllegalMessage

SCHEDULE_TOPIC: Final = topics.SCHEDULE_TOPIC.encode()

_UNITS_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_DIGITS: Final = len(str(topics.MAX_QUEUES))
_DELAY: Final = properties.beginning(properties.DELAY_TIME_LEVEL)
TIMER: Final = b"TIMER_D"
"""The prefix of the names of timer properties. Hardly any other property contains it."""
_UNITS_OF_DELAYS_MS: Final = {"TIMER_DELAY_SEC": 1000, "TIMER_DELAY_MS": 1}
_DELIVER_MS: Final = "TIMER_DELIVER_MS"
_RECALLED: Final = "TIMER_DEL_UNIQKEY"
_MAX_DIGITS_OF_A_TIME: Final = 18


class Place:
    """The topic, queue and properties with which a message is stored."""

    __slots__ = ("properties", "queue_id", "topic")

    def __init__(self, topic: bytes, queue_id: int, properties: bytes) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.properties = properties


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Parses messageDelayLevel. Returns the delays in milliseconds, level 1 first."""
    return tuple(int(level[:-1]) * _UNITS_MS[level[-1]] for level in text.split())


def delay_level(encoded_properties: bytes) -> int:
    """Returns the delay level in the message's properties, or 0. Raises IllegalMessage if the level is not a number."""
    if encoded_properties.find(_DELAY) < 0:
        return 0
    text = properties.find(encoded_properties, properties.DELAY_TIME_LEVEL)
    try:
        return int(text or "0")
    except ValueError:
        raise IllegalMessage(f"the property DELAY must be a number, not {text!r}") from None


def level_after(wait_ms: int, levels_ms: Sequence[int]) -> int:
    """Returns the level with the shortest delay of at least `wait_ms` milliseconds.

    Returns 0 if `wait_ms` is not positive, and -1 if all delays are shorter.
    """
    if wait_ms <= 0:
        return 0
    long_enough = [(delay_ms, level) for level, delay_ms in enumerate(levels_ms, 1) if delay_ms >= wait_ms]
    return min(long_enough)[1] if long_enough else -1


def timed_level(encoded_properties: bytes, now_ms: int, levels_ms: Sequence[int]) -> int:
    """Returns the level for the timer properties of RocketMQ 5's clients (HookUtils.transformTimerMessage), or 0 without them.

    Raises IllegalMessage if the wait is longer than the delay of every level, a property is not a number, or the message recalls
    another message.
    """
    wait_ms = _wait_ms(encoded_properties, now_ms)
    level = level_after(wait_ms, levels_ms)
    if level < 0:
        raise IllegalMessage(
            f"delay too long: {wait_ms} ms, but the longest delay level (messageDelayLevel) is {max(levels_ms, default=0)} ms"
        )
    return level


def _wait_ms(encoded_properties: bytes, now_ms: int) -> int:
    if properties.find(encoded_properties, _RECALLED) is not None:
        raise IllegalMessage("this broker does not support recalling delayed messages (property TIMER_DEL_UNIQKEY)")
    for name, unit_ms in _UNITS_OF_DELAYS_MS.items():
        delay = properties.find(encoded_properties, name)
        if delay is not None:
            return _number(name, delay) * unit_ms
    deliver = properties.find(encoded_properties, _DELIVER_MS)
    return 0 if deliver is None else _number(_DELIVER_MS, deliver) - now_ms


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _MAX_DIGITS_OF_A_TIME:
        raise IllegalMessage(
            f"the property {name} must be a number of {'s' if name.endswith('SEC') else 'ms'}, not {text[:100]!r}"
        )
    return int(text)


def waiting_place(place: Place, level: int, highest_level: int) -> Place:
    """Returns the place of a delayed message in the schedule topic.

    The properties of this place contain the original place, as REAL_TOPIC and REAL_QID. A level above `highest_level` is replaced
    by `highest_level`.
    """
    level = min(level, highest_level)
    encoded = properties.put(place.properties, properties.DELAY_TIME_LEVEL, str(level))
    encoded = properties.put(encoded, properties.REAL_TOPIC, place.topic.decode())
    encoded = properties.put(encoded, properties.REAL_QUEUE_ID, str(place.queue_id))
    return Place(SCHEDULE_TOPIC, level - 1, encoded)


def final_place(waiting_properties: bytes) -> Place:
    """Returns the original place of a delayed message. Keeps the level in the properties, so that consumers can read it.

    Raises IllegalMessage if the properties do not contain the place, or if its topic does not accept messages.
    """
    topic = properties.find(waiting_properties, properties.REAL_TOPIC) or ""
    text = properties.find(waiting_properties, properties.REAL_QUEUE_ID) or ""
    queue_id = int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else -1
    if not topics.takes_sent_messages(topic) or not 0 <= queue_id < topics.MAX_QUEUES:
        raise IllegalMessage(f"topic {topic[:200]!r}, queue {text[:20]!r} does not accept delayed messages")
    return Place(topic.encode(), queue_id, waiting_properties)
