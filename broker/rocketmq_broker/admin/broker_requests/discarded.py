"""Reads discarded messages from TRANS_CHECK_MAX_TIME_TOPIC, with requests that Apache's brokers also support."""

from collections.abc import Callable

import msgspec

from rocketmq_broker.admin.broker_requests.queue_pages import pages
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record


class DiscardedMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message that the broker discarded after too many check-backs."""

    message_id: str
    """The offset message id. Pass it to `resume` to resume the check-backs of the message."""
    commit_log_offset: int
    queue_offset: int
    transaction_id: str | None
    producer_group: str
    topic: str
    queue_id: int
    keys: list[str]
    tags: str | None
    checks: int
    body_size: int
    born_ms: int
    discarded_ms: int
    is_resumed: bool = False
    """Whether the check-backs were resumed, so that the message became a half message again."""


async def newest_discarded(
    requests: BrokerRequests, limit: int, is_wanted: Callable[[DiscardedMessage], bool]
) -> list[DiscardedMessage]:
    """Returns up to `limit` discarded messages that `is_wanted` accepts, newest first."""
    found: list[DiscardedMessage] = []
    async for page in pages(requests, topics.CHECK_MAX_TIME_TOPIC):
        for message in filter(is_wanted, map(read_discarded, page)):
            found.append(await with_resumption(requests, message))
            if len(found) == limit:
                return found
    return found


async def discarded_with_id(requests: BrokerRequests, word: str) -> list[DiscardedMessage]:
    """Returns the discarded messages with this transaction id or key, newest first."""
    records = await requests.query(topics.CHECK_MAX_TIME_TOPIC, word)
    messages = [await with_resumption(requests, read_discarded(record)) for record in records]
    return sorted(messages, key=lambda message: message.commit_log_offset, reverse=True)


async def with_resumption(requests: BrokerRequests, message: DiscardedMessage) -> DiscardedMessage:
    """Returns the message with the current value of `is_resumed`. Looks for a later half message in the broker's index."""
    if message.transaction_id is None:
        return message
    halves = await requests.query(topics.HALF_TOPIC, message.transaction_id)
    is_resumed = any(
        half.commit_log_offset > message.commit_log_offset
        and half.born_timestamp == message.born_ms
        and half.get_property(props.PRODUCER_GROUP) == message.producer_group
        for half in halves
    )
    return msgspec.structs.replace(message, is_resumed=is_resumed)


def read_discarded(record: Record) -> DiscardedMessage:
    """Decodes a record of the discard topic."""
    return DiscardedMessage(
        message_id=offset_message_id(record.store_host, record.commit_log_offset),
        commit_log_offset=record.commit_log_offset,
        queue_offset=record.queue_offset,
        transaction_id=record.get_property(props.UNIQUE_KEY),
        producer_group=record.get_property(props.PRODUCER_GROUP) or "",
        topic=record.get_property(props.REAL_TOPIC) or "",
        queue_id=_number(record, props.REAL_QUEUE_ID, -1),
        keys=(record.get_property(props.KEYS) or "").split(),
        tags=record.get_property(props.TAGS),
        checks=_number(record, props.TRANSACTION_CHECK_TIMES, 0),
        body_size=len(record.body),
        born_ms=record.born_timestamp,
        discarded_ms=record.store_timestamp,
    )


def _number(record: Record, name: str, otherwise: int) -> int:
    try:
        return int(record.get_property(name) or otherwise)
    except ValueError:
        return otherwise
