"""Finds messages that contain a word or have a similar key."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.queue_pages import pages
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.messages.content import MessageContent, content_of
from rocketmq_broker.admin.messages.following import newest_messages
from rocketmq_broker.admin.progress.topics import topics_of
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import topics

NEWEST: Final = 32
"""The number of newest messages to search in each queue."""
MAX_TOPICS: Final = 30
MAX_FOUND: Final = 20
_MAX_SIMILAR: Final = 5
_MIN_SIMILARITY: Final = 0.7
"""The minimum similarity of a key: 1 for equal keys, 0 for keys without a common letter."""


class NearMessage(NamedTuple):
    """A message, and the reason why it matches."""

    message: MessageContent
    why: str


async def near_messages(session: Session, word: str) -> list[NearMessage]:
    """Returns the matches among the newest messages of each queue, newest first. Includes each transaction only once.

    Raises CannotAsk or Refused.
    """
    searched = sorted(await _newest(session), key=lambda message: message.stored_ms, reverse=True)
    found = [NearMessage(one, why) for one in searched if (why := _place_of(word.lower(), one)) is not None]
    if not found:
        similar = set(get_close_matches(word, {key for one in searched for key in one.keys}, _MAX_SIMILAR, _MIN_SIMILARITY))
        found = [NearMessage(one, "a similar key") for one in searched if not similar.isdisjoint(one.keys)]
    return list(_each_once(found))[:MAX_FOUND]


async def _newest(session: Session) -> list[MessageContent]:
    found = [half for _, half in await session.rows(_newest_halves)]
    of_programs = await session.rows(lambda broker: topics_of(broker, every_one=False))
    holding = sorted({(one.newest_ms or 0, one.topic) for _, one in of_programs if one.messages}, reverse=True)
    for _, topic in holding[:MAX_TOPICS]:
        found += [message for _, message in await newest_messages(session, topic, NEWEST)]
    return found


async def _newest_halves(broker: BrokerRequests) -> list[MessageContent]:
    try:
        async for page in pages(broker, topics.HALF_TOPIC):
            return [content_of(record) for record in page]
    except Refused:
        pass  # Apache's brokers refuse pulls of half messages before their first check of pending transactions
    return []


def _place_of(word: str, message: MessageContent) -> str | None:
    """Returns the place of the word in the message, such as `in a key or id`; None if the message does not contain it.

    `word` must be in lower case.
    """
    if any(word in key.lower() for key in message.keys) or word in (message.message_id or "").lower():
        return "in a key or id"
    if any(word in value.lower() for value in message.properties.values()):
        return "in a property"
    return "in the body" if word in (message.body or "").lower() else None


def _each_once(found: Iterable[NearMessage]) -> Iterator[NearMessage]:
    seen = set()
    for one in found:
        name = one.message.message_id or one.message.offset_message_id
        if name not in seen:
            seen.add(name)
            yield one
