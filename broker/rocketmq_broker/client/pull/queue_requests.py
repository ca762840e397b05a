"""Requests that read a queue and commit a group's offset in it (RocketMQ's MQClientAPIImpl and PullAPIWrapper)."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from rocketmq_broker.client.errors import BrokerError
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.calls import understood
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageExt, MessageQueue, sysflag
from rocketmq_broker.message.errors import BodyTooLong, CorruptRecord
from rocketmq_broker.message.record import MAX_BODY_LENGTH, Record, decode_records, to_message
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.route import MASTER_ID
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.pull import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)

logger = logging.getLogger(__name__)

PULL_SUSPEND_MS = 15_000
PULL_GRACE_MS = 15_000
"""The timeout of a pull in milliseconds, in addition to the time for which the broker may hold the pull."""

_PULLED = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableMessage(MessageExt):
    """A message whose compressed body is damaged or too long for the consumer. `body` is the stored body.

    A push consumer moves it to the dead-letter topic without calling the listener. A pull consumer returns it.
    """

    problem: str
    """The reason why the body cannot be decompressed."""


class PullAnswer(NamedTuple):
    """The response to a pull."""

    messages: list[MessageExt]
    next_offset: int
    min_offset: int
    max_offset: int
    is_offset_illegal: bool
    """True if the requested offset is not in the queue. Continue at `next_offset`."""
    suggested_broker_id: int


class QueueRequests:
    """Sends pull and offset requests. Failures raise BrokerUnreachable, RequestTimedOut, UnreadableAnswer or BrokerError."""

    def __init__(self, calls: BrokerCalls, *, max_body_length: int = MAX_BODY_LENGTH) -> None:
        """`calls` sends the requests. `max_body_length` limits the decompressed body of a message in bytes."""
        self._calls = calls
        self._max_body_length = max_body_length
        self._first_commits: dict[tuple[str, str], asyncio.Lock] = {}
        """Locks keyed by broker name and topic. A lock is held while the first offset of a topic is committed."""

    @understood
    async def pull(
        self,
        group: str,
        queue: MessageQueue,
        offset: int,
        *,
        subscription: Subscription,
        max_messages: int,
        commit_offset: int | None = None,
        sends_expression: bool = False,
        suspend_ms: int = PULL_SUSPEND_MS,
        broker_id: int = MASTER_ID,
    ) -> PullAnswer:
        """Pulls messages at and after `offset` that match the subscription. The broker waits up to `suspend_ms` for a message.

        If `commit_offset` is set, the request also commits this offset for the group. `sends_expression` is for consumers that
        send no heartbeats. The checksum of a body is not verified, as in Apache's client (MessageDecoder with checkCRC=false).
        Checksums protect against disk errors, and the broker verifies them when it recovers a store.
        """
        address = await self._calls.routes.address_of(queue.broker_name, broker_id, or_any=True)
        header = PullMessageRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_messages,
            sys_flag=(pull_sysflag.COMMIT_OFFSET if commit_offset is not None and broker_id == MASTER_ID else 0)
            | (pull_sysflag.SUSPEND if suspend_ms else 0)
            | (pull_sysflag.SUBSCRIPTION if sends_expression else 0),
            commit_offset=commit_offset or 0,
            suspend_timeout_millis=suspend_ms,
            subscription=subscription.expression if sends_expression else None,
            sub_version=subscription.version,
            expression_type=subscription.expression_type,
            broker_name=queue.broker_name,
        )
        answer = await self._calls.ask_at(address, RequestCode.PULL_MESSAGE, header, timeout_ms=suspend_ms + PULL_GRACE_MS)
        if answer.code not in _PULLED:
            raise BrokerError(answer.code, answer.remark, address)
        found = answer.decode_header(PullMessageResponseHeader)
        records = decode_records(answer.body) if answer.code == ResponseCode.SUCCESS else []
        messages, left_for_later = messages_of(records, queue.broker_name, max_body_length=self._max_body_length)
        return PullAnswer(
            subscription.matching(messages),
            found.next_begin_offset if left_for_later is None else left_for_later,
            found.min_offset,
            found.max_offset,
            answer.code == ResponseCode.PULL_OFFSET_MOVED,
            found.suggest_which_broker_id,
        )

    @understood
    async def committed_offset(self, group: str, queue: MessageQueue) -> int | None:
        """Returns the group's offset in the queue; None if the broker has none.

        Reads it from a slave while the master is down. A slave may be some seconds behind, so messages may be redelivered.
        """
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name
        )
        address = await self._calls.routes.address_of(queue.broker_name, or_any=True)
        answer = await self._calls.ask_at(address, RequestCode.QUERY_CONSUMER_OFFSET, header, timeout_ms=5000)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.code, answer.remark, address)
        return answer.decode_header(QueryConsumerOffsetResponseHeader).offset

    async def commit_offsets(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Commits the group's offsets in these queues at the brokers, and waits for the responses.

        Commits one queue of each topic first. If a group's first offsets in a topic arrived concurrently, Apache's broker might
        keep only one of them (ConsumerOffsetManager.commitOffset creates the topic's table without a lock). Attempts all commits
        before it raises the first error.
        """
        topics: dict[tuple[str, str], list[MessageQueue]] = {}
        for queue in offsets:
            topics.setdefault((queue.broker_name, queue.topic), []).append(queue)
        of_topics = (self._commit_in_topic(group, queues, offsets) for queues in topics.values())
        _raise_first(await asyncio.gather(*of_topics, return_exceptions=True))

    async def _commit_in_topic(self, group: str, queues: list[MessageQueue], offsets: Mapping[MessageQueue, int]) -> None:
        async def commit(queue: MessageQueue) -> None:
            header = _offset_header(group, queue, offsets[queue])
            await self._calls.ask_master(queue.broker_name, RequestCode.UPDATE_CONSUMER_OFFSET, header)

        first, *others = queues
        async with self._first_commits.setdefault((first.broker_name, first.topic), asyncio.Lock()):
            ahead = await asyncio.gather(commit(first), return_exceptions=True)
        behind = await asyncio.gather(*map(commit, others), return_exceptions=True)
        _raise_first([*ahead, *behind])

    async def commit_offset_oneway(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Commits the group's offset in the queue one-way, without a response."""
        header = _offset_header(group, queue, offset)
        await self._calls.send_oneway_to_master(queue.broker_name, RequestCode.UPDATE_CONSUMER_OFFSET, header)

    @understood
    async def max_offset(self, queue: MessageQueue) -> int:
        """Returns the end offset of the queue, which the next stored message will get."""
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
        answer = await self._calls.ask_master(queue.broker_name, RequestCode.GET_MAX_OFFSET, header)
        return answer.decode_header(GetMaxOffsetResponseHeader).offset

    @understood
    async def min_offset(self, queue: MessageQueue) -> int:
        """Returns the offset of the queue's oldest message."""
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id, broker_name=queue.broker_name)
        answer = await self._calls.ask_master(queue.broker_name, RequestCode.GET_MIN_OFFSET, header)
        return answer.decode_header(GetMinOffsetResponseHeader).offset

    @understood
    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the queue's first message stored at or after a time."""
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms, broker_name=queue.broker_name
        )
        answer = await self._calls.ask_master(queue.broker_name, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        return answer.decode_header(SearchOffsetResponseHeader).offset


def _raise_first(outcomes: Iterable[BaseException | None]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            raise outcome


def _offset_header(group: str, queue: MessageQueue, offset: int) -> UpdateConsumerOffsetRequestHeader:
    return UpdateConsumerOffsetRequestHeader(
        consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=offset, broker_name=queue.broker_name
    )


def messages_of(records: Iterable[Record], broker_name: str, *, max_body_length: int) -> tuple[list[MessageExt], int | None]:
    """Returns the messages of one pull, and the queue offset of the first message left for the next pull, or None.

    `max_body_length` limits the length of each decompressed body. It also limits their total length in one pull, as a protection
    against many compression bombs.
    """
    messages: list[MessageExt] = []
    room = max_body_length
    for record in records:
        is_compressed = bool(record.sys_flag & sysflag.COMPRESSED)
        try:
            message = to_message(record, broker_name, max_body_length=room)
        except CorruptRecord as error:
            is_too_long = isinstance(error, BodyTooLong)
            if is_too_long and room < max_body_length:
                return messages, record.queue_offset
            message = unreadable(record, broker_name, str(error))
            if is_too_long:
                room = 0  # the part that was decompressed used up the limit
        messages.append(message)
        if is_compressed:
            room -= min(room, len(message.body))
    return messages, None


def unreadable(record: Record, broker_name: str, problem: str) -> UnreadableMessage:
    """Returns the record as an UnreadableMessage, and logs an error."""
    stored = to_message(replace(record, sys_flag=record.sys_flag & ~sysflag.COMPRESSED), broker_name)
    logger.error("message %s of topic %s cannot be read: %s", stored.message_id, stored.topic, problem)
    values = {field.name: getattr(stored, field.name) for field in fields(stored)}
    return UnreadableMessage(**{**values, "sys_flag": record.sys_flag}, problem=problem)
