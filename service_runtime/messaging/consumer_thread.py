"""A synchronous interface to a push consumer, which runs on an event loop in another thread."""

import logging
from collections.abc import Mapping
from typing import Final

from rocketmq_broker.client import ClientError, MessageListener, PushConsumer, QueueProgress
from service_runtime.messaging.client_loop import ClientLoop

_START_TIMEOUT_S: Final = 20.0
_FAREWELL_S: Final = 2.0
"""The time-out in seconds for leaving the group, in addition to the wait for messages that are being processed."""
_HEALTH_TIMEOUT_S: Final = 4.0
_COUNT_TIMEOUT_S: Final = 2.0

logger = logging.getLogger(__name__)


class ConsumerThread:
    """Starts, stops and monitors a push consumer. Thread-safe."""

    def __init__(self, consumer: PushConsumer, loop: ClientLoop, listener: MessageListener, tags: Mapping[str, str]) -> None:
        """Subscribes `consumer` to a tag of each topic. `listener` runs on the consumer's threads.

        The consumer will run on `loop`. Neither the consumer nor the loop may have been started.
        """
        for topic, tag in tags.items():
            consumer.subscribe(topic, tag)
        consumer.register_message_listener(listener)
        self._consumer = consumer
        self._loop = loop

    def start(self) -> None:
        """Joins the consumer group and starts consuming. Raises ClientError."""
        self._loop.start()
        self._loop.run(self._consumer.start(), timeout_s=_START_TIMEOUT_S)

    def stop(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` for messages in process, then leaves the group. Unprocessed messages are redelivered."""
        leaving_s = timeout_s + _FAREWELL_S
        try:
            self._loop.run(self._consumer.shutdown(leaving_s), timeout_s=leaving_s + _FAREWELL_S)
        except (ClientError, TimeoutError) as error:
            logger.warning("the consumer did not shut down cleanly: %s", error)
        self._loop.stop()

    def why_unready(self) -> str | None:
        """Returns the reason why no message can arrive now, in one line; None if at least one broker responds."""
        try:
            is_connected = self._loop.run(self._consumer.is_connected_to_any(), timeout_s=_HEALTH_TIMEOUT_S)
        except (ClientError, TimeoutError) as error:
            return str(error)
        return None if is_connected else "no broker answers this consumer"

    def progress(self) -> list[QueueProgress] | None:
        """Returns the progress of each queue of the consumer, or None if its event loop does not respond."""
        try:
            return self._loop.run(self._progress(), timeout_s=_HEALTH_TIMEOUT_S)
        except (ClientError, TimeoutError):
            return None

    @property
    def group(self) -> str:
        """The name of the consumer group."""
        return self._consumer.group

    def count_dead_letters(self) -> int | None:
        """Returns the number of unhandled dead letters of the group; None if the brokers do not respond."""
        try:
            return self._loop.run(self._consumer.count_dead_letters(), timeout_s=_COUNT_TIMEOUT_S)
        except (ClientError, TimeoutError):
            return None

    async def _progress(self) -> list[QueueProgress]:
        """Returns the progress. Runs on the event loop that owns the queues."""
        return self._consumer.progress
