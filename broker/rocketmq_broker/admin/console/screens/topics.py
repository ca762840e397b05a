"""Screens that show the topics, the queues of a topic, and the newest messages of a topic."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.figures import groups_of_topic, topic_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.messages.content import MessageContent
from rocketmq_broker.admin.messages.following import newest_messages
from rocketmq_broker.admin.progress.topics import TopicFigures, topics_of
from rocketmq_broker.protocol.bodies.topic import TopicOffset

_NEWEST: Final = 30


class TopicsFacts(NamedTuple):
    """The topics of each broker."""

    rows: list[tuple[str, TopicFigures]]
    is_every_one: bool


class QueueRow(NamedTuple):
    """A queue of a topic on one broker."""

    broker: str
    queue_id: int
    extent: TopicOffset


class TopicFacts(NamedTuple):
    """The queues and consumer groups of a topic."""

    topic: str
    queues: list[QueueRow]
    groups: list[tuple[str, str]]
    """Pairs of a broker and a consumer group that consumes the topic or has consumed it."""


class TailFacts(NamedTuple):
    """The newest messages of a topic, newest first."""

    topic: str
    rows: list[tuple[str, MessageContent]]
    max_rows: int = _NEWEST


async def find_topics(visit: Visit) -> TopicsFacts:
    """Returns the user topics, or all topics if the visitor requests them. Raises CannotAsk or Refused."""
    every_one = visit.word("all") == "yes"
    rows = await (await visit.session()).rows(lambda broker: topics_of(broker, every_one=every_one))
    return TopicsFacts(rows, every_one)


async def find_topic(visit: Visit) -> TopicFacts:
    """Returns the queues of a topic. Raises CannotAsk, or Refused if no broker has it."""
    topic, session = visit.word("topic"), await visit.session()
    queues = [row for _, row in await session.rows(lambda broker: _queues(broker, topic))]
    if not queues:
        raise Refused(f"topic not found: {topic}")
    return TopicFacts(topic, queues, await session.rows(lambda broker: groups_of_topic(broker, topic)))


async def find_newest(visit: Visit) -> TailFacts:
    """Returns the newest messages of a topic. Raises CannotAsk, or Refused if no broker has it."""
    topic = visit.word("topic")
    lines = await newest_messages(await visit.session(), topic, _NEWEST)
    return TailFacts(topic, lines[::-1])


async def _queues(broker: BrokerRequests, topic: str) -> list[QueueRow]:
    stats = await topic_stats(broker, topic)
    extents = sorted(stats.offset_table.items()) if stats is not None else []
    return [QueueRow(broker.address, queue.queue_id, extent) for queue, extent in extents]


SCREENS: Final = (
    Screen("/topics", "Topics", "topics.html", find_topics, refresh_s=2.0),
    Screen("/topic", "Topic", "topic.html", find_topic, refresh_s=2.0, heading=lambda visit: f"Topic {visit.word('topic')}"),
    Screen("/topic/tail", "Tail", "tail.html", find_newest, heading=lambda visit: f"Newest messages of {visit.word('topic')}"),
)
