"""Notifies consumers that their group has changed (part of RocketMQ's DefaultConsumerIdsChangeListener)."""

from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers.group import NotifyConsumerIdsChangedRequestHeader
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.connections.connection import Connection

REST_S: Final = 0.1
"""The pause between two rounds of notices, in seconds. Each notice covers all changes made during the pause."""
MAX_AT_ONCE: Final = 500
"""The maximum number of notices in one round. A round of this size takes about 10 ms."""


class ConsumerNotices:
    """Sends NOTIFY_CONSUMER_IDS_CHANGED, so that the members of a group rebalance.

    Each member receives one notice for all changes that happen while the notice is pending. Without this, 1000 consumers that
    reconnect after a restart would cause a million notices.
    """

    def __init__(self) -> None:
        self.alarm = Alarm()
        """Wakes the task that calls `send_pending` when a notice is pending."""
        self._due: dict[tuple[str, Connection], None] = {}

    def group_changed(self, group: str, connections: list[Connection]) -> None:
        """Schedules notices to the members of the group."""
        self._due.update(dict.fromkeys((group, connection) for connection in connections))
        self.alarm.ring()

    def send_pending(self) -> float | None:
        """Sends the oldest notices. Returns 0 if more notices are pending, or None otherwise."""
        for group, connection in list(self._due)[:MAX_AT_ONCE]:
            del self._due[group, connection]
            if connection.is_writable:
                header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
                connection.invoke_oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header)
        return 0 if self._due else None
