"""Finds dead letters by group, id or key. Works with Apache's brokers, too."""

from collections.abc import AsyncIterator, Callable, Iterable
from itertools import groupby
from typing import NamedTuple

import msgspec

from rocketmq_broker.admin.broker_requests.queue_pages import pages
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests, is_stored_at
from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter, read_dead_letter
from rocketmq_broker.admin.dead_letters.treatments import latest_treatments
from rocketmq_broker.admin.errors import NotSupported, Refused
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.message.record import Record


class DeadLetterGroup(msgspec.Struct, frozen=True, rename="camel"):
    """A consumer group with dead letters."""

    consumer_group: str
    untreated: int | None
    """The number of dead letters that were neither retried nor dismissed; None if the broker does not record treatments."""
    total: int
    """The number of stored dead letters."""
    newest_ms: int | None
    """The store time of the newest dead letter, in milliseconds since the epoch."""


class FoundLetter(NamedTuple):
    """A dead letter, its broker and its record."""

    requests: BrokerRequests
    letter: DeadLetter
    record: Record


async def groups_with_dead_letters(requests: BrokerRequests) -> list[DeadLetterGroup]:
    """Returns all groups of a broker that have dead letters, sorted by name."""
    untreated = await _untreated(requests)
    groups = []
    for topic, queues in sorted(await _dead_letter_topics(requests, None)):
        spans = [(queue_id, *await requests.offsets(topic, queue_id)) for queue_id in range(queues)]
        if not (total := sum(end - first for _, first, end in spans)):
            continue
        newest = [await _parked_ms(requests, topic, queue_id, end - 1) for queue_id, first, end in spans if end > first]
        group = topic.removeprefix(topics.DEAD_LETTER_PREFIX)
        groups.append(
            DeadLetterGroup(
                consumer_group=group,
                untreated=None if untreated is None else untreated.get(group, 0),
                total=total,
                newest_ms=max((parked_ms for parked_ms in newest if parked_ms is not None), default=None),
            )
        )
    return groups


async def dead_letters_of(requests: BrokerRequests, group: str, *, newest_first: bool = True) -> AsyncIterator[FoundLetter]:
    """Yields the dead letters of a group, each with its last treatment."""
    for topic, queues in await _dead_letter_topics(requests, group):
        for queue_id in range(queues):
            async for page in pages(requests, topic, queue_id, newest_first=newest_first):
                for found in await _with_treatments(requests, page):
                    yield found


async def first_letters(
    requests: BrokerRequests, group: str, limit: int, is_wanted: Callable[[DeadLetter], bool], *, newest_first: bool = True
) -> list[DeadLetter]:
    """Returns the first `limit` dead letters of a group that `is_wanted` accepts."""
    found: list[DeadLetter] = []
    async for one in dead_letters_of(requests, group, newest_first=newest_first):
        if is_wanted(one.letter):
            found.append(one.letter)
            if len(found) == limit:
                break
    return found


async def find_dead_letters(session: Session, word: str, group: str | None) -> list[FoundLetter]:
    """Returns the dead letters with this id or key, of one or all groups, oldest first. Raises Refused if none exists."""
    answers = await session.ask_each(lambda broker: _with_key(broker, word, group))
    found = [one for _, ones in answers for one in ones] or await _at_offset(session, word)
    found = [one for one in found if group in (None, one.letter.consumer_group)]
    if not found:
        raise Refused(f"dead letter not found: {word}" + (f" in the consumer group {group}" if group else ""))
    return sorted(found, key=lambda one: one.letter.parked_ms)


async def _with_key(requests: BrokerRequests, word: str, group: str | None) -> list[FoundLetter]:
    found: list[FoundLetter] = []
    for topic, _ in await _dead_letter_topics(requests, group):
        records = sorted(await requests.query(topic, word), key=lambda record: record.queue_id)
        for _, of_queue in groupby(records, key=lambda record: record.queue_id):
            found += await _with_treatments(requests, of_queue)
    return found


async def _at_offset(session: Session, word: str) -> list[FoundLetter]:
    """Returns the dead letter with this offset message id, or an empty list."""
    try:
        place = parse_offset_message_id(word)
    except ValueError:
        return []
    for broker in session.brokers:
        if len(session.brokers) > 1 and not is_stored_at(place, broker.address):
            continue
        try:
            record = await broker.view(place.commit_log_offset)
        except Refused:
            continue
        if record.topic.decode(errors="replace").startswith(topics.DEAD_LETTER_PREFIX):
            return await _with_treatments(broker, [record])
    return []


async def _dead_letter_topics(requests: BrokerRequests, group: str | None) -> list[tuple[str, int]]:
    """Returns the dead-letter topics of a broker, each with its number of queues."""
    wanted = topics.dead_letter_topic(group) if group is not None else None
    return [
        (topic, queues)
        for topic, queues in (await requests.topics()).items()
        if topic.startswith(topics.DEAD_LETTER_PREFIX) and wanted in (None, topic)
    ]


async def _untreated(requests: BrokerRequests) -> dict[str, int] | None:
    try:
        return (await requests.count_parked()).dead_letters
    except NotSupported:
        return None


async def _parked_ms(requests: BrokerRequests, topic: str, queue_id: int, queue_offset: int) -> int | None:
    records, _ = await requests.pull(topic, queue_id, queue_offset, 1)
    return records[0].store_timestamp if records else None


async def _with_treatments(requests: BrokerRequests, records: Iterable[Record]) -> list[FoundLetter]:
    """Returns the dead letters of one queue, each with its last treatment."""
    letters = [(read_dead_letter(record), record) for record in records]
    treatments = await latest_treatments(requests, [letter for letter, _ in letters])
    return [
        FoundLetter(requests, msgspec.structs.replace(letter, treatment=treatments.get(letter.commit_log_offset)), record)
        for letter, record in letters
    ]
