"""Tells consumers that their group changed (the notifying half of RocketMQ's DefaultConsumerIdsChangeListener)."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import NotifyConsumerIdsChangedRequestHeader
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.connections.connection import Connection

REST_S: Final = 0.1
"""The pause between two rounds: each notice covers all changes in it."""
MAX_AT_ONCE: Final = 500
"""Notices of one round: some 10 ms of the event loop. A group of a thousand hears of a change in two rounds."""


class ConsumerNotices:
    """Sends NOTIFY_CONSUMER_IDS_CHANGED, so that a group divides its queues again.

    If each of a thousand changes were sent to a thousand members, as after a restart, there would be a million notices. So each
    member gets one notice for all changes that happen while it waits.
    """

    def __init__(self) -> None:
        self.alarm = Alarm()
        """Rings when a notice is due."""
        self._due: dict[tuple[str, Connection], None] = {}

    def group_changed(self, group: str, connections: list[Connection]) -> None:
        """Schedules notices to the members of the group."""
        self._due.update(dict.fromkeys((group, connection) for connection in connections))
        self.alarm.ring()

    def tell(self) -> float | None:
        """Sends the oldest notices. Returns 0 if others still wait, else None."""
        for group, connection in list(self._due)[:MAX_AT_ONCE]:
            del self._due[group, connection]
            if connection.is_writable:
                header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
                connection.invoke_oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header)
        return 0 if self._due else None
