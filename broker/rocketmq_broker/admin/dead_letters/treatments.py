"""Reads the treatments of dead letters from this broker's marks, or from the retry topic of Apache's brokers."""

from typing import Final

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.dead_letters.dead_letter import DeadLetter, Treated
from rocketmq_broker.admin.errors import NotSupported
from rocketmq_broker.message import topics
from rocketmq_broker.message.dead_letters import RETRIES, retries_of
from rocketmq_broker.protocol.bodies.parked_admin import MarkInfo
from rocketmq_broker.protocol.headers.parked_admin import ListMarksRequestHeader

_MARKS_AT_ONCE: Final = 1000


async def latest_treatments(requests: BrokerRequests, letters: list[DeadLetter]) -> dict[int, Treated]:
    """Returns the last treatment of each dead letter, keyed by commit log offset. All letters must belong to one queue."""
    if not letters:
        return {}
    try:
        marks = await _marks(requests, letters)
    except NotSupported:
        seen = {letter.commit_log_offset: await _retry_seen(requests, letter) for letter in letters}
        return {offset: treatment for offset, treatment in seen.items() if treatment is not None}
    places = {letter.queue_offset: letter.commit_log_offset for letter in letters}
    return {places[mark.queue_offset]: treatment_of(mark) for mark in marks if mark.queue_offset in places}


async def treatment_history(requests: BrokerRequests, letter: DeadLetter) -> list[Treated]:
    """Returns all known treatments of a dead letter, latest first."""
    topic = topics.dead_letter_topic(letter.consumer_group)
    header = ListMarksRequestHeader(topic, letter.queue_id, letter.queue_offset, history=True)
    try:
        return [treatment_of(mark) for mark in await requests.marks(header)]
    except NotSupported:
        return [letter.treatment] if letter.treatment is not None else []


def treatment_of(mark: MarkInfo) -> Treated:
    """Converts the broker's mark on a dead letter to a treatment."""
    return Treated(mark.treatment, mark.at_ms, mark.by, mark.reason, mark.retries)


async def _marks(requests: BrokerRequests, letters: list[DeadLetter]) -> list[MarkInfo]:
    topic, queue_id = topics.dead_letter_topic(letters[0].consumer_group), letters[0].queue_id
    offsets = [letter.queue_offset for letter in letters]
    first, count = min(offsets), max(offsets) - min(offsets) + 1
    if count <= _MARKS_AT_ONCE:
        return await requests.marks(ListMarksRequestHeader(topic, queue_id, first, count))
    return [mark for offset in offsets for mark in await requests.marks(ListMarksRequestHeader(topic, queue_id, offset))]


async def _retry_seen(requests: BrokerRequests, letter: DeadLetter) -> Treated | None:
    """Returns the dead letter's latest retry in the group's retry topic, or None. Requires the broker's message index."""
    retried = [
        record
        for record in await requests.query(topics.retry_topic(letter.consumer_group), letter.message_id)
        if record.commit_log_offset > letter.commit_log_offset
        and record.born_timestamp == letter.born_ms
        and record.get_property(RETRIES) is not None
    ]
    if not retried:
        return None
    latest = max(retried, key=lambda record: record.commit_log_offset)
    return Treated("retried", at_ms=latest.store_timestamp, retries=retries_of(latest))
