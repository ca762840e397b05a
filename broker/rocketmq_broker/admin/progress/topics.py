"""The topics of a broker, the number of messages in each, and the creation of one."""

from __future__ import annotations

import msgspec

from rocketmq_broker.admin.asking.figures import system_topics, topic_stats
from rocketmq_broker.admin.asking.requests import BrokerRequests
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import IllegalMessage, topics
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import CreateTopicRequestHeader


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


async def create_topic(session: Session, topic: str, queues: int) -> None:
    """Creates a topic at each broker of the session. Raises CannotAsk, and Refused for a bad name or number, or if it exists."""
    try:
        topics.validate_topic(topic)
    except IllegalMessage as error:
        raise Refused(f"topic {topic!r}: {error}") from None
    if not 1 <= queues <= topics.MAX_QUEUES:
        raise Refused(f"a topic has 1 to {topics.MAX_QUEUES} queues, not {queues}")
    for broker in session.brokers:
        # The request would change the queues of an existing topic.
        if topic in await broker.topics():
            raise Refused(f"broker {broker.address} has a topic {topic} already")
    for broker in session.brokers:
        await broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicRequestHeader.of(topic, queues))


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
