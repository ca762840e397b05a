"""The offset at which a group starts consuming a queue (RocketMQ's RebalancePushImpl.computePullFromWhere)."""

from dataclasses import dataclass

from rocketmq_broker.client.pull.offset_store import OffsetStore
from rocketmq_broker.client.pull.queue_requests import QueueRequests
from rocketmq_broker.message import MessageQueue, topics
from rocketmq_broker.protocol.bodies.heartbeat import ConsumeFromWhere


@dataclass(frozen=True, slots=True)
class StartingOffset:
    """Finds the offset at which a group starts to consume a queue in which it has no offset."""

    from_where: ConsumeFromWhere
    timestamp_ms: int

    async def find(self, queue: MessageQueue, store: OffsetStore, requests: QueueRequests) -> int:
        """Returns the first offset to consume. Raises ClientError if it cannot be read; do not consume the queue in that case.

        A retry topic is always consumed from its first message, because this group returned the messages.
        """
        kept = await store.read(queue)
        if kept is not None:
            return kept
        if queue.topic.startswith(topics.RETRY_PREFIX) or self.from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return await requests.min_offset(queue)
        if self.from_where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            return await requests.search_offset(queue, self.timestamp_ms)
        return await requests.max_offset(queue)
