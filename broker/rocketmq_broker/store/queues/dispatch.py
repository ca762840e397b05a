"""The data of a stored record that is dispatched to its consume queue and to the index (RocketMQ's DispatchRequest)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from rocketmq_broker.message import properties as message_properties
from rocketmq_broker.message import sysflag, topics
from rocketmq_broker.message.tags import tags_code

_SCHEDULE_TOPIC: Final = topics.SCHEDULE_TOPIC.encode()
_TAGS: Final = message_properties.beginning(message_properties.TAGS)
_MAX_REMEMBERED_LENGTH: Final = 255
"""The maximum length of tags whose code is cached, in characters. Clients choose the length of their tags."""


class DispatchRequest:
    """A record's data for its consume queue and for the index."""

    __slots__ = (
        "commit_log_offset", "is_indexed", "is_queued", "properties", "queue_id", "queue_offset", "size", "store_timestamp",
        "tags_code", "topic",
    )  # fmt: skip

    def __init__(
        self,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        commit_log_offset: int,
        size: int,
        tags_code: int,
        store_timestamp: int,
        properties: bytes,
        is_queued: bool,
        is_indexed: bool,
    ) -> None:
        """`is_queued` is whether a consume queue contains the record. It is False for prepared and rollback records."""
        self.topic = topic
        self.queue_id = queue_id
        self.queue_offset = queue_offset
        self.commit_log_offset = commit_log_offset
        self.size = size
        self.tags_code = tags_code
        self.store_timestamp = store_timestamp
        self.properties = properties
        self.is_queued = is_queued
        self.is_indexed = is_indexed


def is_queued(sys_flag: int) -> bool:
    """Returns whether consume queues contain records with this sysFlag. Only prepared and rollback records are not queued.

    See CommitLogDispatcherBuildConsumeQueue.
    """
    return sys_flag & sysflag.TRANSACTION_MASK in (sysflag.TRANSACTION_NOT_TYPE, sysflag.TRANSACTION_COMMIT_TYPE)


def is_indexed(sys_flag: int) -> bool:
    """Returns whether the index contains records with this sysFlag. Only rollback records are not indexed.

    See IndexService.buildIndex.
    """
    return sys_flag & sysflag.TRANSACTION_MASK != sysflag.TRANSACTION_ROLLBACK_TYPE


VISIBILITY: Final = {kind: (is_queued(kind), is_indexed(kind)) for kind in range(sysflag.TRANSACTION_MASK + 1)}
"""Maps the transaction bits of a sysFlag to a pair with the results of `is_queued` and `is_indexed`."""


def unit_tags_code(topic: bytes, properties: bytes, store_timestamp: int, delay_levels_ms: Sequence[int]) -> int:
    """Returns the tags code of a consume queue unit (CommitLog.checkMessageAndReturnSize).

    It is the tag's hash code or, for a delayed message in the schedule topic, the time at which the message is due.
    """
    if topic == _SCHEDULE_TOPIC:
        level = _delay_level(properties)
        if level > 0:
            return store_timestamp + delay_levels_ms[min(level, len(delay_levels_ms)) - 1]
    if properties.find(_TAGS) < 0:
        return 0
    tags = message_properties.find(properties, message_properties.TAGS)
    return _remembered_tags_code(tags) if tags is None or len(tags) <= _MAX_REMEMBERED_LENGTH else tags_code(tags)


@lru_cache(maxsize=4096)
def _remembered_tags_code(tags: str | None) -> int:
    return tags_code(tags)


def _delay_level(properties: bytes) -> int:
    try:
        return int(message_properties.find(properties, message_properties.DELAY_TIME_LEVEL) or "0")
    except ValueError:
        return 0
