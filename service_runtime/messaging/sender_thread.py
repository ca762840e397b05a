"""A synchronous interface to a producer of plain messages."""

import logging
from typing import Final

from rocketmq_broker.client import ClientError, Message, Producer
from service_runtime.messaging.client_loop import ClientLoop

_WAIT_S: Final = 20.0

logger = logging.getLogger(__name__)


class NotSent(Exception):
    """The broker did not confirm the message, but may have stored it."""


class SenderThread:
    """A producer that runs on an event loop in another thread. Thread-safe. `start` succeeds without a running broker."""

    def __init__(self, producer_group: str, *, namesrv_addr: str, send_timeout_ms: int, loop: ClientLoop) -> None:
        """`send_timeout_ms` is the time-out for storing a message. The producer runs on `loop`, which `start` starts."""
        self._producer = Producer(producer_group, namesrv_addr=namesrv_addr, send_timeout_ms=send_timeout_ms)
        self._loop = loop

    def start(self) -> None:
        """Starts the producer. Raises ClientError."""
        self._loop.start()
        self._loop.run(self._producer.start(), timeout_s=_WAIT_S)

    def stop(self) -> None:
        """Stops the producer."""
        try:
            self._loop.run(self._producer.shutdown(), timeout_s=_WAIT_S)
        except (ClientError, TimeoutError) as error:
            logger.warning("the producer did not shut down cleanly: %s", error)
        self._loop.stop()

    def send(self, message: Message) -> None:
        """Sends the message, which is stored on return. Raises NotSent."""
        try:
            self._loop.run(self._producer.send(message), timeout_s=_WAIT_S)
        except (ClientError, TimeoutError) as error:
            raise NotSent(str(error)) from error
