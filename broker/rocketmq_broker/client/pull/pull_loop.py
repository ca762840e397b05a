"""The pull loop of one queue (RocketMQ's DefaultMQPushConsumerImpl.pullMessage)."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, ClientError, UnreadableAnswer
from rocketmq_broker.client.pull.process_queue import ProcessQueue
from rocketmq_broker.client.pull.queue_requests import PULL_SUSPEND_MS, PullAnswer, QueueRequests
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.message import MessageError, MessageExt, properties, topics
from rocketmq_broker.protocol.bodies.route import MASTER_ID
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.backoff import Backoff

logger = logging.getLogger(__name__)

_QUEUE_FULL_PAUSE_S = 0.05
_BROKER_BUSY_S = 0.02
_FRUITLESS_S = 0.01
_SUBSCRIPTION_UNKNOWN = (
    ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ResponseCode.SUBSCRIPTION_NOT_LATEST,
    ResponseCode.FILTER_DATA_NOT_LATEST,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSettings:
    """The batch size of pulls, and the limits on messages of one queue that are pulled but not yet consumed."""

    batch_size: int = 32
    max_count: int = 1000
    max_bytes: int = 100 * 1024 * 1024
    max_span: int | None = 2000
    sends_expression: bool = False
    commits_offset: bool = True
    suspend_ms: int = PULL_SUSPEND_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class PullEvents:
    """The callbacks of a pull loop."""

    on_messages: Callable[[ProcessQueue, list[MessageExt]], None]
    on_progress: Callable[[ProcessQueue], None]
    """Called when the committable offset may have changed."""
    on_illegal_offset: Callable[[ProcessQueue, int], None]
    """Called with the next valid offset if the broker does not have the requested offset.

    The loop then ends. Restart it at the given offset.
    """
    on_subscription_unknown: Callable[[], None]
    """Called if the broker may not have the group's subscription. The callback must send a heartbeat to the broker."""
    on_pulled: Callable[[str, int, float], None] = lambda topic, messages, took_s: None
    """Called after a pull with the topic, the number of messages and the duration in seconds."""


class PullLoop:
    """Pulls one queue until it is dropped. Waits after failures, and logs only the first failure of a series."""

    def __init__(
        self,
        group: str,
        process_queue: ProcessQueue,
        subscription: Callable[[], Subscription],
        requests: QueueRequests,
        settings: PullSettings,
        events: PullEvents,
    ) -> None:
        """`subscription` is called for each pull."""
        self._group = group
        self._process_queue = process_queue
        self._subscription = subscription
        self._requests = requests
        self._settings = settings
        self._events = events
        self._broker_id = MASTER_ID
        self._backoff = Backoff(0.1, 3.0, in_outages_s=10.0)
        self._failed_before = False

    async def run(self) -> None:
        """Pulls until the queue is dropped or its offset is illegal."""
        loop = asyncio.get_running_loop()
        limits = self._settings
        queue = self._process_queue
        while not queue.is_dropped:
            if queue.is_full(max_count=limits.max_count, max_bytes=limits.max_bytes, max_span=limits.max_span):
                await asyncio.sleep(_QUEUE_FULL_PAUSE_S)
                continue
            offset, began_s = queue.next_offset, loop.time()
            try:
                pulled = await self._pull(offset)
            except (ClientError, ProtocolError, MessageError) as error:
                await asyncio.sleep(self._pause_after(error))
                continue
            self._recovered()
            if queue.is_dropped:
                return
            if pulled.is_offset_illegal:
                logger.warning("%s no longer has offset %d; continuing at %d", queue.queue, offset, pulled.next_offset)
                self._events.on_illegal_offset(queue, pulled.next_offset)
                return
            if pulled.messages:
                self._events.on_pulled(queue.queue.topic, len(pulled.messages), loop.time() - began_s)
            self._take(pulled)
            if queue.next_offset == offset and loop.time() - began_s < _FRUITLESS_S:
                await asyncio.sleep(_FRUITLESS_S)

    async def _pull(self, offset: int) -> PullAnswer:
        limits = self._settings
        commit_offset = self._process_queue.committable_offset if limits.commits_offset else None
        return await self._requests.pull(
            self._group,
            self._process_queue.queue,
            offset,
            subscription=self._subscription(),
            max_messages=limits.batch_size,
            commit_offset=commit_offset or None,
            sends_expression=limits.sends_expression,
            suspend_ms=limits.suspend_ms,
            broker_id=self._broker_id,
        )

    def _take(self, pulled: PullAnswer) -> None:
        self._broker_id = pulled.suggested_broker_id
        fresh = self._process_queue.put(pulled.messages, pulled.next_offset)
        if fresh:
            self._events.on_messages(self._process_queue, [with_real_topic(message) for message in fresh])
        else:
            self._events.on_progress(self._process_queue)

    def _pause_after(self, error: Exception) -> float:
        if isinstance(error, BrokerError) and error.code == ResponseCode.FLOW_CONTROL:
            return _BROKER_BUSY_S
        if isinstance(error, BrokerError) and error.code in _SUBSCRIPTION_UNKNOWN:
            self._events.on_subscription_unknown()
        elif not self._failed_before:
            self._failed_before = True
            level = (
                logging.DEBUG
                if isinstance(error, BrokerUnreachable) and not isinstance(error, UnreadableAnswer)
                else logging.WARNING
            )  # the heartbeats log an unreachable broker once for all queues
            logger.log(level, "%s cannot be pulled: %s; retrying", self._process_queue.queue, error)
        self._broker_id = MASTER_ID
        return self._backoff.next_pause_s()

    def _recovered(self) -> None:
        self._backoff.succeeded()
        if self._failed_before:
            self._failed_before = False
            self._events.on_subscription_unknown()
            logger.debug("%s can be pulled again", self._process_queue.queue)


def with_real_topic(message: MessageExt) -> MessageExt:
    """Returns the message for the listener. A message from a retry topic gets the topic to which it was first sent."""
    real_topic = message.properties.get(properties.RETRY_TOPIC)
    if real_topic and message.topic.startswith(topics.RETRY_PREFIX):
        return replace(message, topic=real_topic)
    return message
