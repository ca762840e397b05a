"""Resets the offsets of a consumer group in a topic, and plans which messages will be redelivered or skipped."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.figures import consume_stats, consumers, topic_stats
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests, decoding_answer_of
from rocketmq_broker.admin.messages.content import MessageContent, content_of
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.bodies.topic import TopicOffset
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.group import ResetOffsetRequestHeader
from rocketmq_broker.protocol.headers.pull import (
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)

TO_THE_FIRST: Final = 0
TO_THE_END: Final = -1
MAX_SHOWN: Final = 10
"""The maximum number of messages of each queue in a plan."""


class QueueMove(NamedTuple):
    """The change of a group's offset in one queue."""

    queue_id: int
    present: int
    """The group's current offset; 0 if it has none."""
    target: int
    again: int
    """The number of messages that will be delivered again."""
    skipped: int
    """The number of messages that will never be delivered to the group."""
    shown: list[MessageContent]
    """The first messages that will be redelivered or skipped, at most MAX_SHOWN."""


class ResetPlan(NamedTuple):
    """The planned changes of a group's offsets on one broker."""

    broker: str
    members: int
    """The number of online consumers of the group."""
    moves: list[QueueMove]

    @property
    def again(self) -> int:
        """The number of messages that will be delivered again."""
        return sum(move.again for move in self.moves)

    @property
    def skipped(self) -> int:
        """The number of messages that will never be delivered to the group."""
        return sum(move.skipped for move in self.moves)


async def plan_reset(broker: BrokerRequests, group: str, topic: str, time_ms: int) -> ResetPlan | None:
    """Returns the plan of a reset without performing it; None if the group has no offsets in the topic at this broker.

    `time_ms` is TO_THE_FIRST, TO_THE_END, or a time in milliseconds since the epoch. After a reset to a time, the group continues
    with the message stored nearest to that time. Raises CannotAsk or Refused.
    """
    present = (await consume_stats(broker, group, topic)).offset_table
    stats = await topic_stats(broker, topic)
    if not present or stats is None:
        return None
    moves = [
        await _move(broker, queue, offsets.consumer_offset, stats.offset_table.get(queue, TopicOffset()), time_ms)
        for queue, offsets in sorted(present.items())
    ]
    return ResetPlan(broker.address, len((await consumers(broker, group)).connection_set), moves)


async def reset(broker: BrokerRequests, group: str, topic: str, time_ms: int) -> ResetPlan | None:
    """Resets the group as planned by `plan_reset`.

    Returns the plan, or None if the group has no offsets. Raises CannotAsk or Refused.

    Online members receive their new offsets from the broker and commit them within seconds. Without members the new offsets are
    stored immediately.
    """
    plan = await plan_reset(broker, group, topic, time_ms)
    if plan is None:
        return None
    if plan.members:
        header = ResetOffsetRequestHeader(topic=topic, group=group, timestamp=time_ms, is_force=True)
        await broker.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        return plan
    for move in plan.moves:
        commit = UpdateConsumerOffsetRequestHeader(
            consumer_group=group, topic=topic, queue_id=move.queue_id, commit_offset=move.target
        )
        await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, commit)
    return plan


async def _move(broker: BrokerRequests, queue: MessageQueue, present: int, extent: TopicOffset, time_ms: int) -> QueueMove:
    first, end = max(0, extent.min_offset), extent.max_offset
    target = end if time_ms == TO_THE_END else min(max(first, await _offset_at(broker, queue, time_ms)), end)
    here = min(max(first, present), end)
    low, high = sorted((here, target))
    records = (await broker.pull(queue.topic, queue.queue_id, low, min(MAX_SHOWN, high - low)))[0] if low < high else []
    shown = [content_of(record) for record in records if record.queue_offset < high]
    return QueueMove(queue.queue_id, present, target, max(0, here - target), max(0, target - here), shown)


async def _offset_at(broker: BrokerRequests, queue: MessageQueue, time_ms: int) -> int:
    header = SearchOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id, timestamp=time_ms)
    answer = await broker.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
    with decoding_answer_of(broker.address):
        return answer.decode_header(SearchOffsetResponseHeader).offset
