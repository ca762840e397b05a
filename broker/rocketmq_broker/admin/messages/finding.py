"""Finds messages by offset message id, unique id or key. Also finds the groups that have consumed a message."""

from typing import Final

import msgspec

from rocketmq_broker.admin.broker_requests.figures import consume_stats, groups_of_topic
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests, is_stored_at
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.messages.content import MessageContent, content_of
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.message.ids import parse_offset_message_id

MAX_TOPICS: Final = 1000
"""The maximum number of topics to search without --topic."""
_NOT_SEARCHED: Final = frozenset({topics.OP_HALF_TOPIC, topics.SCHEDULE_TOPIC, topics.PARKED_MARK_TOPIC})


class GroupConsumption(msgspec.Struct, frozen=True, rename="camel"):
    """The consumption of a message by one consumer group."""

    group: str
    is_consumed: bool
    """Whether the group's offset in the queue is after the message."""


class FoundMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message and its consumption by each group of its topic."""

    message: MessageContent
    consumed_by: list[GroupConsumption]


async def find_messages(session: Session, word: str, topic: str | None) -> list[tuple[str, FoundMessage]]:
    """Returns the messages with this id or key, each with its broker's address, oldest first. Raises Refused if none is found."""
    found = await _at_offset(session, word)
    if not found:
        answers = await session.ask_each(lambda broker: _with_word(broker, word, topic))
        found = [(broker, one) for broker, ones in answers for one in ones]
    found = [(broker, one) for broker, one in found if topic in (None, one.topic)]
    if not found:
        raise Refused(f"message not found: {word}" + (f" in the topic {topic}" if topic else ""))
    found.sort(key=lambda one: one[1].stored_ms)
    return [(broker.address, FoundMessage(one, await consumed_by(broker, one))) for broker, one in found]


async def consumed_by(broker: BrokerRequests, message: MessageContent) -> list[GroupConsumption]:
    """Returns whether each group of the topic has consumed the message. Raises CannotAsk or Refused."""
    if message.topic in topics.CONSUMED_BY_THE_BROKER:
        return []
    return [
        GroupConsumption(group, is_consumed)
        for group in await groups_of_topic(broker, message.topic)
        if (is_consumed := await _is_consumed(broker, group, message)) is not None
    ]


async def _is_consumed(broker: BrokerRequests, group: str, message: MessageContent) -> bool | None:
    """Returns whether the group has consumed the message; None if it has no offset in the message's queue."""
    table = (await consume_stats(broker, group, message.topic)).offset_table
    for queue, offsets in table.items():
        if _is_same(queue, message):
            return offsets.consumer_offset > message.queue_offset
    return None


def _is_same(queue: MessageQueue, message: MessageContent) -> bool:
    return queue.queue_id == message.queue_id and queue.topic == message.topic


async def _at_offset(session: Session, word: str) -> list[tuple[BrokerRequests, MessageContent]]:
    """Returns the message with this offset message id, or an empty list.

    A unique id may have the same form, but does not contain the address of a broker.
    """
    try:
        place = parse_offset_message_id(word)
    except ValueError:
        return []
    for broker in session.brokers:
        if is_stored_at(place, broker.address):
            try:
                return [(broker, content_of(await broker.view(place.commit_log_offset)))]
            except Refused:
                return []
    return []


async def _with_word(broker: BrokerRequests, word: str, topic: str | None) -> list[MessageContent]:
    if topic is not None:
        return [content_of(record) for record in await broker.query(topic, word)]
    searched = sorted(set(await broker.topics()) | {topics.HALF_TOPIC, topics.CHECK_MAX_TIME_TOPIC})
    if len(searched) > MAX_TOPICS:
        raise CannotAsk(f"broker {broker.address} has {len(searched)} topics, too many to search all: choose one with --topic")
    names = [name for name in searched if name not in _NOT_SEARCHED]
    return [content_of(record) for name in names for record in await broker.query(name, word)]
