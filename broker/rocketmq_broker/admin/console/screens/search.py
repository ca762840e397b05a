"""Searches transactions, messages and the sources of extensions; shows similar messages if nothing is found."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from rocketmq_broker.admin.console.pages import url
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.screens.near import NEWEST, near_messages
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.messages.content import MessageContent
from rocketmq_broker.admin.messages.finding import find_messages
from rocketmq_broker.admin.timeline.evidence import gather

MAX_WORD_LENGTH: Final = 200


class SearchHit(NamedTuple):
    """A row of a search result."""

    what: str
    """The kind of the hit, such as `transaction` or `message`."""
    name: str
    path: str
    """The address of the page that shows the hit."""
    at_ms: int | None
    why: str
    """The reason why the hit matches the word."""


Finder = Callable[[str], Awaitable[list[SearchHit]]]
"""An additional source for the search. It is called with the word and returns hits."""


class SearchFacts(NamedTuple):
    """The result of a search."""

    word: str
    hits: list[SearchHit]
    near: list[SearchHit]
    """Similar messages. Empty if there are hits."""
    elsewhere: str | None = None
    """The address of the page that shows the only hit."""
    newest: int = NEWEST


def screen(finders: Sequence[Finder]) -> Screen:
    """Returns the search screen. `finders` are additional sources, such as a customer database."""

    async def find(visit: Visit) -> SearchFacts:
        """Returns the hits for the word, or similar messages if there are no hits. Raises CannotAsk or Refused."""
        word, session = visit.word("word"), await visit.session()
        if len(word) > MAX_WORD_LENGTH:
            raise Refused(f"word too long: {len(word)} characters, at most {MAX_WORD_LENGTH}")
        if not word:
            return SearchFacts(word, [], [])
        if await session.rows(lambda broker: gather(broker, word)):
            return SearchFacts(word, [], [], url("/transaction", word=word))
        hits = [hit for finder in finders for hit in await finder(word)] + await _messages(visit, word)
        if len({hit.path for hit in hits}) == 1:
            return SearchFacts(word, hits, [], hits[0].path)
        return SearchFacts(word, hits, [] if hits else await _near(visit, word))

    return Screen("/search", "Search", "search.html", find, refresh_s=None, elsewhere=lambda facts: facts.elsewhere)


async def _messages(visit: Visit, word: str) -> list[SearchHit]:
    try:
        found = await find_messages(await visit.session(), word, None)
    except Refused:
        return []
    return [_message_hit(one.message, f"in {one.message.topic}", url("/messages", word=word)) for _, one in found]


async def _near(visit: Visit, word: str) -> list[SearchHit]:
    hits = []
    for message, why_near in await near_messages(await visit.session(), word):
        why = f"{why_near}; keys {' '.join(message.keys)}" if message.keys else why_near
        if message.transaction_id is not None:
            path = url("/transaction", word=message.transaction_id)
            hits.append(SearchHit("transaction", message.transaction_id, path, message.stored_ms, why))
        else:
            hits.append(_message_hit(message, why, url("/messages", word=message.offset_message_id)))
    return hits


def _message_hit(message: MessageContent, why: str, path: str) -> SearchHit:
    return SearchHit("message", message.message_id or message.offset_message_id, path, message.stored_ms, why)
