"""Lists topics with their numbers of messages, and creates topics."""

import msgspec

from rocketmq_broker.admin.broker_requests.figures import system_topics, topic_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import IllegalMessage, topics
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader


class TopicFigures(msgspec.Struct, frozen=True, rename="camel"):
    """The size of a topic on one broker."""

    topic: str
    queues: int
    """The number of read queues."""
    messages: int
    """The number of messages in all queues, not counting expired ones."""
    newest_ms: int | None
    """The store time of the last message, in milliseconds since the epoch; None if there are no messages."""


async def topics_of(broker: BrokerRequests, *, every_one: bool) -> list[TopicFigures]:
    """Returns user topics, sorted by name.

    If `every_one` is True, also returns system and group topics. Raises CannotAsk or Refused.
    """
    own = await system_topics(broker)
    wanted = sorted((name, queues) for name, queues in (await broker.topics()).items() if every_one or _is_user_topic(name, own))
    return [await _figures(broker, name, queues) for name, queues in wanted]


async def create_topic(session: Session, topic: str, queues: int) -> None:
    """Creates a topic on each broker. Raises CannotAsk, or Refused if the topic exists or an argument is invalid."""
    try:
        topics.validate_topic(topic)
    except IllegalMessage as error:
        raise Refused(f"topic {topic!r}: {error}") from None
    if not 1 <= queues <= topics.MAX_QUEUES:
        raise Refused(f"number of queues must be between 1 and {topics.MAX_QUEUES}, not {queues}")
    for broker in session.brokers:
        # The request would change the queues of an existing topic.
        if topic in await broker.topics():
            raise Refused(f"broker {broker.address} already has a topic {topic}")
    for broker in session.brokers:
        await broker.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicRequestHeader.of(topic, queues))


def _is_user_topic(topic: str, of_the_broker: frozenset[str]) -> bool:
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
