"""The lag and the messages in hand (popped but not acknowledged) of a broker's consumer groups.

The lag is the number of messages that have not been delivered to the group.
"""

from typing import Final

import msgspec
from msgspec import UNSET

from rocketmq_broker.admin.broker_requests.figures import consume_stats, consumer_groups, consumers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.protocol.bodies.group import OffsetWrapper, PopProgress

SAME_SUBSCRIPTIONS: Final = "Give all members of the group the same subscriptions, or each program its own group."


class GroupFigures(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a consumer group on one broker."""

    group: str
    online: int
    """The number of connected members."""
    topics: list[str]
    """The topics in which the group has offsets, without its retry topic."""
    lag: int
    """The number of messages not delivered to the group yet, including those that are waiting for a retry."""
    in_hand: int
    """The number of popped messages without acknowledgement."""
    consumed_ms: int | None
    """The store time of the last consumed message, in milliseconds since the epoch; None if there is none."""
    disagreement: str | None = None
    """A description of how the members' subscriptions differ; None if they are equal, and for Apache's brokers."""


class QueueLag(msgspec.Struct, frozen=True, rename="camel"):
    """A group's progress in one queue."""

    group: str
    topic: str
    queue_id: int
    consumer_offset: int
    end_offset: int
    """The offset after the queue's last message."""
    lag: int
    in_hand: int
    """The number of popped messages without acknowledgement.

    For a group that pulls from an Apache broker, this is the number of pulled messages whose offsets are not committed.
    """
    oldest_ms: int | None
    """The store time of the oldest popped, unacknowledged message, in milliseconds since the epoch.

    None if there is no such message, and for Apache's brokers.
    """
    next_visible_ms: int | None
    """The time at which the next unacknowledged message is redelivered, in milliseconds since the epoch.

    None in the same cases as `oldest_ms`.
    """
    attempts: int
    """The maximum number of deliveries of a message that is unacknowledged or about to be redelivered; at least 1."""
    consumed_ms: int | None
    """The store time of the last consumed message, in milliseconds since the epoch."""


async def groups_of(broker: BrokerRequests, *, every_one: bool) -> list[GroupFigures]:
    """Returns groups that are online or have consumed messages, or all groups if `every_one` is True.

    Raises CannotAsk or Refused.
    """
    found = [
        await _figures(broker, group) for group in await consumer_groups(broker) if every_one or not topics.is_system_group(group)
    ]
    return [group for group in found if every_one or group.online or group.topics]


async def progress_of(broker: BrokerRequests, group: str) -> list[QueueLag]:
    """Returns a group's progress in each queue; an empty list if it has no offsets at this broker.

    Raises CannotAsk or Refused.
    """
    table = (await consume_stats(broker, group)).offset_table
    in_order = sorted(table.items(), key=lambda entry: (entry[0].topic, entry[0].queue_id))
    return [_queue_progress(group, queue, offsets) for queue, offsets in in_order]


async def _figures(broker: BrokerRequests, group: str) -> GroupFigures:
    queues = await progress_of(broker, group)
    retries = topics.pop_retry_topic(group, "")
    members = await consumers(broker, group)
    names = {queue.topic.removeprefix(retries) for queue in queues} - {topics.retry_topic(group)}
    names -= {topics.pop_retry_topic(group, name) for name in names if not name.startswith(topics.RETRY_PREFIX)}
    return GroupFigures(
        group=group,
        online=len(members.connection_set),
        topics=sorted(names),
        lag=sum(queue.lag for queue in queues),
        in_hand=sum(queue.in_hand for queue in queues),
        consumed_ms=max((queue.consumed_ms for queue in queues if queue.consumed_ms is not None), default=None),
        disagreement=members.disagreement,
    )


def _queue_progress(group: str, queue: MessageQueue, offsets: OffsetWrapper) -> QueueLag:
    popped = PopProgress() if offsets.popped is UNSET else offsets.popped
    return QueueLag(
        group=group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        consumer_offset=offsets.consumer_offset,
        end_offset=offsets.broker_offset,
        lag=max(0, offsets.broker_offset - offsets.consumer_offset),
        in_hand=offsets.in_hand,
        oldest_ms=popped.oldest_store_time,
        next_visible_ms=popped.next_visible_time,
        attempts=popped.attempts,
        consumed_ms=offsets.last_timestamp if offsets.last_timestamp > 0 else None,
    )
