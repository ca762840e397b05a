"""Sends the messages of an outbox: rows of the inbox's table that were written together with the work that they report."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from rocketmq_broker.databases.inbox import BaseInbox
from rocketmq_broker.message import Message
from service_runtime.messaging.sender_thread import NotSent

_MAX_FAILURES: Final = 3

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OutboxDrain:
    """Sends each message at least once. A crash between sending and removing sends it again, so consumers are idempotent."""

    rows: BaseInbox[Any]
    send: Callable[[Message], None]
    """Sends a message, which the broker has stored on return. Raises NotSent."""
    _failed: set[str] = field(default_factory=set)
    """The keys of messages that were not sent. They are tried last, so that three of them do not block all others."""

    def send_due(self) -> bool:
        """Sends the messages that are due. Returns True if more may be due. Raises DatabaseFailure.

        A message that the broker does not confirm stays, and is sent at the next call. After three of them it stops.
        """
        failures = 0
        due = self.rows.due()
        self._failed.intersection_update(row.key for row in due)
        for row in sorted(due, key=lambda row: row.key in self._failed):
            try:
                self.send(Message(topic=row.topic, body=row.body, properties=row.properties))
            except NotSent as error:
                failures += 1
                self._failed.add(row.key)
                logger.warning("a message of topic %s cannot be sent yet: %s", row.topic, error)
                if failures >= _MAX_FAILURES:
                    break
            else:
                self.rows.done([row.key])
        return bool(due) and not failures
