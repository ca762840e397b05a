"""The topics of a broker, and the number of messages in each."""

from __future__ import annotations

import msgspec

from rocketmq_broker.admin.asking.figures import system_topics, topic_stats
from rocketmq_broker.admin.asking.requests import BrokerRequests
from rocketmq_broker.message import topics


class TopicFigures(msgspec.Struct, frozen=True, rename="camel"):
    """A topic at one broker."""

    topic: str
    queues: int
    """The number of queues to read from."""
    messages: int
    """The number of messages in the queues, without expired ones."""
    newest_ms: int | None
    """The store time of the last message; None without messages."""


async def topics_of(broker: BrokerRequests, *, every_one: bool) -> list[TopicFigures]:
    """Returns topics by name: those of programs, or with `every_one` also system and group topics. Raises CannotAsk, Refused."""
    own = await system_topics(broker)
    wanted = sorted((name, queues) for name, queues in (await broker.topics()).items() if every_one or _is_of_programs(name, own))
    return [await _figures(broker, name, queues) for name, queues in wanted]


def _is_of_programs(topic: str, of_the_broker: frozenset[str]) -> bool:
    is_of_a_group = topic.startswith((topics.RETRY_PREFIX, topics.DEAD_LETTER_PREFIX))
    return not (is_of_a_group or topic in of_the_broker or topics.is_system_topic(topic))


async def _figures(broker: BrokerRequests, topic: str, queues: int) -> TopicFigures:
    stats = await topic_stats(broker, topic)
    extents = list(stats.offset_table.values()) if stats is not None else []
    return TopicFigures(
        topic=topic,
        queues=queues,
        messages=sum(max(0, extent.max_offset - max(0, extent.min_offset)) for extent in extents),
        newest_ms=max((extent.last_update_timestamp for extent in extents), default=0) or None,
    )
