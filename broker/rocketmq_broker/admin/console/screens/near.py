"""Finds messages that are near to a word which is no id or key: those that contain it, and those with a key like it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from rocketmq_broker.admin.asking.queue_pages import pages
from rocketmq_broker.admin.asking.requests import BrokerRequests
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.messages.content import MessageContent, content_of
from rocketmq_broker.admin.messages.following import newest_messages
from rocketmq_broker.admin.progress.topics import topics_of
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics

NEWEST: Final = 32
"""The messages of each queue that are looked at."""
MAX_TOPICS: Final = 30
MAX_FOUND: Final = 20
_MAX_ALIKE: Final = 5
_ALIKE: Final = 0.7
"""The least likeness of a key: 1 for the same one, 0 for one without a common letter."""


class NearMessage(NamedTuple):
    """A message, and why it is near."""

    message: MessageContent
    why: str

    @property
    def transaction_id(self) -> str | None:
        """The id of its transaction; None for an ordinary message."""
        return self.message.message_id if props.TRANSACTION_PREPARED in self.message.properties else None


async def near_messages(session: Session, word: str) -> list[NearMessage]:
    """Returns messages among the newest of each queue, newest first; a transaction's message once. Raises CannotAsk, Refused."""
    looked_at = sorted(await _newest(session), key=lambda message: message.stored_ms, reverse=True)
    found = [NearMessage(one, why) for one in looked_at if (why := _place_of(word.lower(), one)) is not None]
    if not found:
        alike = set(get_close_matches(word, {key for one in looked_at for key in one.keys}, _MAX_ALIKE, _ALIKE))
        found = [NearMessage(one, "a key like it") for one in looked_at if not alike.isdisjoint(one.keys)]
    return list(_each_once(found))[:MAX_FOUND]


async def _newest(session: Session) -> list[MessageContent]:
    halves = await session.ask_each(_newest_halves)
    of_programs = await session.ask_each(lambda broker: topics_of(broker, every_one=False))
    holding = sorted(
        {(one.newest_ms or 0, one.topic) for _, figures in of_programs for one in figures if one.messages}, reverse=True
    )
    found = [half for _, ones in halves for half in ones]
    for _, topic in holding[:MAX_TOPICS]:
        found += [message for _, message in await newest_messages(session, topic, NEWEST)]
    return found


async def _newest_halves(broker: BrokerRequests) -> list[MessageContent]:
    try:
        async for page in pages(broker, topics.HALF_TOPIC):
            return [content_of(record) for record in page]
    except Refused:
        pass  # Apache's brokers let nobody read half messages before their first check of pending transactions
    return []


def _place_of(word: str, message: MessageContent) -> str | None:
    """Returns where the message contains the word, which is in small letters; None if it does not."""
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
