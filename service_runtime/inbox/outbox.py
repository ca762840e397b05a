"""Sends the messages of an outbox, which are rows of the inbox's table.

Each row is written in the same database transaction as the work that it reports.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rocketmq_broker.client import ClientError, Message, Producer
from rocketmq_broker.databases.inbox import BaseInbox
from service_runtime.messaging.client_loop import ClientLoop

_MAX_FAILURES: Final = 3
_WAIT_S: Final = 20.0

logger = logging.getLogger(__name__)


class NotSent(Exception):
    """The broker did not confirm the message, but may have stored it."""


class SenderThread:
    """A producer that runs on an event loop in another thread. Thread-safe. `start` succeeds without a running broker."""

    def __init__(self, producer_group: str, *, namesrv_addr: str, send_timeout_ms: int, loop: ClientLoop) -> None:
        """Creates a producer that will run on `loop`. `send_timeout_ms` is the timeout for storing a message.

        `start` starts the loop and the producer.
        """
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
        """Sends the message, and returns when the broker has stored it. Raises NotSent."""
        try:
            self._loop.run(self._producer.send(message), timeout_s=_WAIT_S)
        except (ClientError, TimeoutError) as error:
            raise NotSent(str(error)) from error


@dataclass(frozen=True, slots=True)
class OutboxDrain:
    """Sends each message at least once.

    Consumers must be idempotent. After a crash between sending and removing a message, the message is sent again.
    """

    rows: BaseInbox[Any]
    send: Callable[[Message], None]
    """Sends a message, and returns when the broker has stored it. Raises NotSent."""
    _failed: set[str] = field(default_factory=set)
    """The keys of messages that could not be sent. They are tried last, so that they do not block all other messages."""

    def send_due(self) -> bool:
        """Sends the messages that are due. Returns True if more may be due. Raises DatabaseFailure.

        Raises the last NotSent if messages could not be sent. They remain in the outbox, and are sent again on the next call.
        The method stops after three such messages.
        """
        failures: list[NotSent] = []
        due = self.rows.due()
        self._failed.intersection_update(row.key for row in due)
        for row in sorted(due, key=lambda row: row.key in self._failed):
            try:
                self.send(Message(topic=row.topic, body=row.body, properties=row.properties))
            except NotSent as error:
                failures.append(error)
                self._failed.add(row.key)
                if len(failures) >= _MAX_FAILURES:
                    break
            else:
                self.rows.done([row.key])
        if failures:
            raise failures[-1]
        return bool(due)
