"""Finds messages by id or key."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.messages.finding import FoundMessage, find_messages


class MessageRow(NamedTuple):
    """A message and the address of its broker."""

    broker: str
    found: FoundMessage


class MessagesFacts(NamedTuple):
    """The result of a search."""

    word: str
    topic: str
    rows: list[MessageRow]
    refusal: str | None


async def find(visit: Visit) -> MessagesFacts:
    """Returns the messages whose id or key the visitor entered, oldest first. Raises CannotAsk.

    Returns no messages if the visitor entered nothing. If the search is refused, `refusal` contains the reason.
    """
    word, topic = visit.word("word"), visit.word("topic")
    if not word:
        return MessagesFacts(word, topic, [], None)
    try:
        found = await find_messages(await visit.session(), word, topic or None)
    except Refused as error:
        return MessagesFacts(word, topic, [], str(error))
    return MessagesFacts(word, topic, [MessageRow(broker, one) for broker, one in found], None)


SCREENS: Final = (Screen("/messages", "Messages", "messages.html", find, refresh_s=None),)
