"""The push consumer of orders and cancellations, behind the synchronous facade. It gets no message before the broker's COMMIT."""

import logging
from typing import Final

from broker.client import ClientError, ConsumeFromWhere, EventLoopThread, MessageListener, PushConsumer, QueueProgress
from order_messages import order_cancelled, order_created

CONSUMER_GROUP: Final = "credit_service"
_START_TIMEOUT_S: Final = 20.0
_FAREWELL_S: Final = 2.0
"""What leaving the group takes on top of waiting for batches."""
_HEALTH_TIMEOUT_S: Final = 4.0

logger = logging.getLogger(__name__)


class OrderConsumer:
    """Consumes orders and cancellations, from the first message of each queue on, in batches, in a bounded pool of threads."""

    def __init__(
        self, listener: MessageListener, *, namesrv_addr: str, threads: int, batch_size: int, max_reconsume_times: int
    ) -> None:
        """`listener` is called in the consumer's threads, with up to `batch_size` messages."""
        self._consumer = PushConsumer(
            CONSUMER_GROUP,
            namesrv_addr=namesrv_addr,
            consume_thread_max=threads,
            consume_message_batch_max_size=batch_size,
            pull_batch_size=batch_size,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            max_reconsume_times=max_reconsume_times,
        )
        for kind in (order_created, order_cancelled):
            self._consumer.subscribe(kind.TOPIC, kind.TAG)
        self._consumer.register_message_listener(listener)
        self._loop = EventLoopThread()

    def start(self) -> None:
        """Joins the consumer group; messages come from now on."""
        self._loop.start()
        self._loop.run(self._consumer.start(), timeout_s=_START_TIMEOUT_S)

    def stop(self, timeout_s: float) -> None:
        """Leaves the group, after up to `timeout_s` for batches whose task is under way. What is held will be delivered again."""
        leaving_s = timeout_s + _FAREWELL_S
        try:
            self._loop.run(self._consumer.shutdown(leaving_s), timeout_s=leaving_s + _FAREWELL_S)
        except (ClientError, TimeoutError) as error:
            logger.warning("the consumer did not shut down cleanly: %s", error)
        self._loop.stop()

    def is_reachable(self) -> bool:
        """Whether the brokers answer now."""
        try:
            return self._loop.run(self._consumer.is_heard(), timeout_s=_HEALTH_TIMEOUT_S)
        except (ClientError, TimeoutError):
            return False

    def progress(self) -> list[QueueProgress]:
        """The progress of each queue that the consumer has now; none if its event loop does not answer."""
        try:
            return self._loop.run(self._progress(), timeout_s=_HEALTH_TIMEOUT_S)
        except (ClientError, TimeoutError):
            return []

    async def _progress(self) -> list[QueueProgress]:
        """On the event loop, to which the queues belong."""
        return self._consumer.progress
