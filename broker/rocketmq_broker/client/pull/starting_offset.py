"""Where to begin in a queue (RocketMQ's RebalancePushImpl.computePullFromWhere)."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.client.pull.offset_store import OffsetStore
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere


@dataclass(frozen=True, slots=True)
class StartingOffset:
    """What a group does that has no offset for a queue yet."""

    from_where: ConsumeFromWhere
    timestamp_ms: int

    async def find(self, queue: MessageQueue, store: OffsetStore, requests: QueueRequests) -> int:
        """The offset to begin at. Raises ClientError if it cannot be found out; then the queue must not be begun at all.

        What waits in a retry topic was given back by this very group: it is never skipped.
        """
        kept = await store.read(queue)
        if kept is not None:
            return kept
        if queue.topic.startswith(topics.RETRY_PREFIX) or self.from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return await requests.min_offset(queue)
        if self.from_where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            return await requests.search_offset(queue, self.timestamp_ms)
        return await requests.max_offset(queue)
